package millstream;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import org.apache.spark.util.AccumulatorV2;

/**
 * Lines about traced records, noted by tasks and taken by the driver after each epoch. Per node it takes a number of lines, which grows with
 * the time since the last epoch up to a limit; a task takes a limited number of characters, as its lines come back with its result.
 */
public class TraceLog extends AccumulatorV2 {
    private static final long serialVersionUID = 1L;

    private static final int TASKS = 16;
    private static final double NANOS = 1e9;

    private final int limit;
    private final int perSecond;
    private final int characters;
    private double room;
    private long filledAt = System.nanoTime();
    private int noted = 0;
    private List lines = new ArrayList();
    private Map counts = new HashMap();

    /** The driver's: it holds as many characters as some tasks together. */
    public TraceLog(int limit, int perSecond, int characters) {
        this.limit = limit;
        this.perSecond = perSecond;
        this.characters = characters;
        this.room = limit;
    }

    /** Note a line, unless the node has enough. */
    public synchronized void note(String node, String line) {
        if (takes(node)) {
            lines.add(new String[] {node, line});
            counts.put(node, Integer.valueOf(count(node) + 1));
            noted += line.length();
        }
    }

    public synchronized boolean takes(String node) {
        return count(node) < (int) room && noted < (isAtDriverSide() ? TASKS * characters : characters);
    }

    /** All lines so far, which are then forgotten. */
    public synchronized String take() {
        StringBuilder text = new StringBuilder();
        for (int i = 0; i < lines.size(); i++) {
            String[] noted = (String[]) lines.get(i);
            text.append(i == 0 ? "" : "\n").append(noted[0]).append('\t').append(noted[1]);
        }
        refill();
        reset();
        return text.toString();
    }

    private void refill() {
        int most = 0;
        for (Iterator each = counts.values().iterator(); each.hasNext(); ) {
            most = Math.max(most, ((Integer) each.next()).intValue());
        }
        long now = System.nanoTime();
        room = Math.min(limit, room - most + perSecond * (now - filledAt) / NANOS);
        filledAt = now;
    }

    @Override
    public synchronized boolean isZero() {
        return lines.isEmpty();
    }

    @Override
    public synchronized AccumulatorV2 copy() {
        TraceLog copied = (TraceLog) copyAndReset();
        copied.merge(this);
        return copied;
    }

    @Override
    public synchronized AccumulatorV2 copyAndReset() {
        TraceLog copied = new TraceLog(limit, perSecond, characters);
        copied.room = room;
        return copied;
    }

    @Override
    public synchronized void reset() {
        lines = new ArrayList();
        counts = new HashMap();
        noted = 0;
    }

    @Override
    public void add(Object noted) {
        String[] pair = (String[]) noted;
        note(pair[0], pair[1]);
    }

    @Override
    public void merge(AccumulatorV2 other) {
        List noted = (List) other.value();
        for (int i = 0; i < noted.size(); i++) {
            add(noted.get(i));
        }
    }

    @Override
    public synchronized Object value() {
        return new ArrayList(lines);
    }

    private int count(String node) {
        Integer found = (Integer) counts.get(node);
        return found == null ? 0 : found.intValue();
    }
}

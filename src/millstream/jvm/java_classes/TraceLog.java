package millstream;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.spark.util.AccumulatorV2;

/**
 * Lines about traced records, noted by tasks and taken by the driver after each epoch. It holds a limited number of lines per node, and a task
 * a limited number of characters: its lines come back with its result.
 */
public class TraceLog extends AccumulatorV2 {
    private static final long serialVersionUID = 1L;

    private static final int TASKS = 16;

    private final int limit;
    private final int characters;
    private int noted = 0;
    private List lines = new ArrayList();
    private Map counts = new HashMap();

    /** The driver's: as large as that of some tasks together. */
    public TraceLog(int limit, int characters) {
        this.limit = limit;
        this.characters = characters;
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
        return count(node) < limit && noted < (isAtDriverSide() ? TASKS * characters : characters);
    }

    /** All lines so far, which are then forgotten. */
    public synchronized String take() {
        StringBuilder text = new StringBuilder();
        for (int i = 0; i < lines.size(); i++) {
            String[] noted = (String[]) lines.get(i);
            text.append(i == 0 ? "" : "\n").append(noted[0]).append('\t').append(noted[1]);
        }
        reset();
        return text.toString();
    }

    @Override
    public synchronized boolean isZero() {
        return lines.isEmpty();
    }

    @Override
    public synchronized AccumulatorV2 copy() {
        TraceLog copied = new TraceLog(limit, characters);
        copied.merge(this);
        return copied;
    }

    @Override
    public AccumulatorV2 copyAndReset() {
        return new TraceLog(limit, characters);
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

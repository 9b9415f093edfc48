package millstream;

import java.time.Instant;
import org.apache.spark.sql.api.java.UDF3;

/** A condition that is always true. It notes that a traced record has passed a node: when, whose span it continues, and a preview. */
public class TraceTap implements UDF3 {
    private static final long serialVersionUID = 1L;

    private final TraceLog log;
    private final String node;

    public TraceTap(TraceLog log, String node) {
        this.log = log;
        this.node = node;
    }

    public Object call(Object trace, Object parent, Object preview) {
        if (log.takes(node)) {
            Instant now = Instant.now();
            long nanos = now.getEpochSecond() * 1000000000L + now.getNano();
            log.note(node, nanos + "\t" + trace + "\t" + (parent == null ? "" : parent) + "\t" + (preview == null ? "" : preview));
        }
        return Boolean.TRUE;
    }
}

package millstream;

import java.time.Instant;
import org.apache.spark.sql.api.java.UDF3;
import org.apache.spark.sql.expressions.UserDefinedFunction;
import org.apache.spark.sql.functions;
import org.apache.spark.sql.types.DataTypes;

/** A condition that is always true. It notes that a traced record has passed a node: when, whose span it continues, and a preview. */
public class TraceTap implements UDF3 {
    private static final long serialVersionUID = 1L;

    private static final String SAMPLED = "-01";

    private final TraceLog log;
    private final String node;

    public TraceTap(TraceLog log, String node) {
        this.log = log;
        this.node = node;
    }

    /** The tap as a function of Spark, which neither moves nor copies it. Made here, as Py4J may take another `udf` of the same name. */
    public UserDefinedFunction function() {
        return functions.udf((UDF3) this, DataTypes.BooleanType).asNondeterministic();
    }

    public Object call(Object trace, Object parent, Object preview) {
        if (((String) trace).endsWith(SAMPLED) && log.takes(node)) {
            Instant now = Instant.now();
            long nanos = now.getEpochSecond() * 1000000000L + now.getNano();
            log.note(node, nanos + "\t" + trace + "\t" + (parent == null ? "" : parent) + "\t" + (preview == null ? "" : preview));
        }
        return Boolean.TRUE;
    }
}

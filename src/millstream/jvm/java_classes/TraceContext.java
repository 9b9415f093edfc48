package millstream;

import org.apache.spark.sql.api.java.UDF2;
import org.apache.spark.sql.expressions.UserDefinedFunction;
import org.apache.spark.sql.functions;
import org.apache.spark.sql.types.DataTypes;

/**
 * The trace context of a record: it continues the one that came with the record, or begins a trace. Its ids follow from a hash of the
 * record's position alone.
 */
public class TraceContext implements UDF2 {
    private static final long serialVersionUID = 1L;

    private static final int TRACE = 3;
    private static final int TRACE_END = 35;
    private static final int LAST = 54;

    public UserDefinedFunction function() {
        return functions.udf((UDF2) this, DataTypes.StringType);
    }

    public Object call(Object position, Object given) {
        long seed = ((Long) position).longValue();
        String parent = (String) given;
        if (parent != null) {
            boolean sampled = (Character.digit(parent.charAt(LAST), 16) & 1) == 1;
            return sampled ? context(parent.substring(TRACE, TRACE_END), seed) : parent;
        }
        return context(digits(seed, 1) + digits(seed, 2), seed);
    }

    private static String context(String trace, long seed) {
        return "00-" + trace + "-" + digits(seed, 3) + "-01";
    }

    /** 16 hexadecimal digits, the n-th number of the generator SplitMix64 that begins with the seed. */
    private static String digits(long seed, int n) {
        long mixed = seed + n * 0x9E3779B97F4A7C15L;
        mixed = (mixed ^ (mixed >>> 30)) * 0xBF58476D1CE4E5B9L;
        mixed = (mixed ^ (mixed >>> 27)) * 0x94D049BB133111EBL;
        String hexadecimal = Long.toHexString(mixed ^ (mixed >>> 31));
        return "0000000000000000".substring(hexadecimal.length()) + hexadecimal;
    }
}

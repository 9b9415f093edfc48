package millstream;

import java.util.Collections;
import org.apache.spark.QueryContext;
import org.apache.spark.SparkRuntimeException;
import scala.collection.immutable.Map;
import scala.collection.immutable.Map$;
import scala.jdk.javaapi.CollectionConverters;

/** An argument that a function cannot take, or a result that does not fit: the same error as that of Spark's `raise_error`. */
final class Refusal {
    private Refusal() {}

    static RuntimeException of(String message) {
        Map details = Map$.MODULE$.from(CollectionConverters.asScala(Collections.singletonMap("errorMessage", message)));
        return new SparkRuntimeException("USER_RAISED_EXCEPTION", details, null, new QueryContext[0], "");
    }
}

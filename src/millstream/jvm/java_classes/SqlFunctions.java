package millstream;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import org.apache.spark.sql.SparkSessionExtensions;
import org.apache.spark.sql.catalyst.FunctionIdentifier;
import org.apache.spark.sql.catalyst.expressions.ExpressionInfo;
import scala.Option;
import scala.Tuple3;
import scala.runtime.AbstractFunction1;
import scala.runtime.BoxedUnit;

/** Adds Millstream's functions to each session. They are listed in a file of the archive, which is made from the Python package. */
public class SqlFunctions extends AbstractFunction1 {
    @Override
    public Object apply(Object given) {
        SparkSessionExtensions extensions = (SparkSessionExtensions) given;
        try {
            BufferedReader lines =
                    new BufferedReader(new InputStreamReader(SqlFunctions.class.getResourceAsStream("functions.tsv"), StandardCharsets.UTF_8));
            for (String line = lines.readLine(); line != null; line = lines.readLine()) {
                String[] fields = line.split("\t", -1);
                ExpressionInfo info = new ExpressionInfo(SqlFunctions.class.getName(), fields[0]);
                extensions.injectFunction(new Tuple3(new FunctionIdentifier(fields[0], Option.empty()), info, new SqlFunction(fields)));
            }
            lines.close();
        } catch (IOException error) {
            throw new IllegalStateException(error);
        }
        return BoxedUnit.UNIT;
    }
}

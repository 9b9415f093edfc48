package millstream;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import org.apache.spark.sql.AnalysisException;
import org.apache.spark.sql.catalyst.analysis.UnresolvedAttribute;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.UnresolvedNamedLambdaVariable;
import org.apache.spark.sql.catalyst.expressions.objects.StaticInvoke;
import org.apache.spark.sql.catalyst.parser.CatalystSqlParser$;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.unsafe.Platform;
import scala.Function1;
import scala.Option;
import scala.collection.immutable.Map;
import scala.collection.immutable.Map$;
import scala.collection.immutable.Seq;
import scala.jdk.javaapi.CollectionConverters;
import scala.runtime.AbstractFunction1;
import scala.runtime.AbstractPartialFunction;

/** Makes the expression of a call: a native one, in which `_1` is the first argument, or a call of a Java method. */
public class SqlFunction extends AbstractFunction1 {
    private static final String EACH = "_each:";

    private final String name;
    private final int least;
    private final int most;
    private final String made;
    private final String types;

    /** Name, the least and the most arguments, an expression or `Class.method`, and the types of the method: of its arguments, its result. */
    public SqlFunction(String[] fields) {
        this.name = fields[0];
        this.least = Integer.parseInt(fields[1]);
        this.most = fields[2].isEmpty() ? Integer.MAX_VALUE : Integer.parseInt(fields[2]);
        this.made = fields[3];
        this.types = fields[4];
    }

    @Override
    public Object apply(Object given) {
        List arguments = CollectionConverters.asJava((Seq) given);
        if (arguments.size() < least || arguments.size() > most) {
            String wanted = least == most ? String.valueOf(least) : least + (most == Integer.MAX_VALUE ? " or more" : " to " + most);
            Platform.throwException(new AnalysisException("WRONG_NUM_ARGS.WITHOUT_SUGGESTION", described(wanted, arguments.size())));
        }
        return types.isEmpty() ? expression(arguments) : method(arguments);
    }

    private Map described(String wanted, int actual) {
        HashMap found = new HashMap();
        found.put("functionName", "`" + name + "`");
        found.put("expectedNum", wanted);
        found.put("actualNum", String.valueOf(actual));
        found.put("docroot", "https://spark.apache.org/docs/latest");
        return (Map) Map$.MODULE$.from(CollectionConverters.asScala(found));
    }

    private Object expression(List arguments) {
        String text = made.replace("_all", list(arguments.size(), ""));
        int each = text.indexOf(EACH);
        if (each >= 0) {
            int end = text.indexOf(')', each);
            text = text.substring(0, each) + list(arguments.size(), text.substring(each + EACH.length(), end)) + text.substring(end);
        }
        return ((Expression) CatalystSqlParser$.MODULE$.parseExpression(text)).transformUp(new Arguments(arguments));
    }

    /** `_1, _2`, or `f(_1), f(_2)`. */
    private static String list(int length, String function) {
        StringBuilder text = new StringBuilder();
        for (int i = 1; i <= length; i++) {
            text.append(i == 1 ? "" : ", ").append(function.isEmpty() ? "_" + i : function + "(_" + i + ")");
        }
        return text.toString();
    }

    private Object method(List arguments) {
        String[] kinds = types.split(";");
        List inputs = new ArrayList();
        for (int i = 0; i < kinds.length - 1; i++) {
            inputs.add(DataType.fromDDL(kinds[i]));
        }
        int dot = made.indexOf('.');
        try {
            Class owner = Class.forName("millstream." + made.substring(0, dot), true, SqlFunction.class.getClassLoader());
            DataType result = DataType.fromDDL(kinds[kinds.length - 1]);
            Seq given = CollectionConverters.asScala(arguments).toSeq();
            Seq wanted = CollectionConverters.asScala(inputs).toSeq();
            return new StaticInvoke(owner, result, made.substring(dot + 1), given, wanted, true, true, true, Option.empty());
        } catch (ClassNotFoundException error) {
            throw new IllegalStateException(error);
        }
    }

    /** Puts the arguments in the place of `_1`, `_2` and so on. */
    public static class Arguments extends AbstractPartialFunction {
        private final List given;

        public Arguments(List given) {
            this.given = given;
        }

        @Override
        public boolean isDefinedAt(Object node) {
            return number(node) > 0;
        }

        @Override
        public Object applyOrElse(Object node, Function1 otherwise) {
            int number = number(node);
            return number > 0 ? given.get(number - 1) : otherwise.apply(node);
        }

        private int number(Object node) {
            boolean inLambda = node instanceof UnresolvedNamedLambdaVariable;
            if (!inLambda && !(node instanceof UnresolvedAttribute)) {
                return 0;
            }
            String name = inLambda ? ((UnresolvedNamedLambdaVariable) node).name() : ((UnresolvedAttribute) node).name();
            int number = name.matches("_[1-9][0-9]{0,3}") ? Integer.parseInt(name.substring(1)) : 0;
            return number <= given.size() ? number : 0;
        }
    }
}

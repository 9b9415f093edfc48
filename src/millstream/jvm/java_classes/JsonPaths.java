package millstream;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.DeserializationFeature;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import java.util.ArrayList;
import java.util.Collections;
import java.util.Iterator;
import java.util.List;
import org.apache.spark.unsafe.types.UTF8String;

/** The functions of standard SQL that find a part of a JSON text: `$`, `.name`, `['name']`, `[0]`, `[*]` and `.*`. */
public final class JsonPaths {
    private static final ObjectMapper MAPPER = new ObjectMapper()
            .enable(DeserializationFeature.FAIL_ON_TRAILING_TOKENS)
            .enable(DeserializationFeature.USE_BIG_DECIMAL_FOR_FLOATS)
            .setNodeFactory(JsonNodeFactory.withExactBigDecimals(true));
    private static final String NUMBERS = "0123456789";

    private JsonPaths() {}

    /** The text of the one scalar that is found. */
    public static UTF8String value(UTF8String json, UTF8String path) {
        JsonNode found = one(find(json, path, "json_value"));
        return found == null || found.isContainerNode() || found.isNull() ? null : UTF8String.fromString(found.asText());
    }

    /** The one object or array that is found. */
    public static UTF8String query(UTF8String json, UTF8String path) {
        JsonNode found = one(find(json, path, "json_query"));
        return found == null || !found.isContainerNode() ? null : UTF8String.fromString(found.toString());
    }

    public static boolean exists(UTF8String json, UTF8String path) {
        return !find(json, path, "json_exists").isEmpty();
    }

    private static JsonNode one(List found) {
        return found.size() == 1 ? (JsonNode) found.get(0) : null;
    }

    private static List find(UTF8String json, UTF8String path, String function) {
        String text = path.toString().trim();
        String way = text.startsWith("lax ") ? text.substring(4).trim() : text;
        if (!way.startsWith("$")) {
            throw wrong(function, text);
        }
        List found = new ArrayList();
        try {
            JsonNode root = MAPPER.readTree(json.toString());
            if (root != null && !root.isMissingNode()) {
                found.add(root);
            }
        } catch (JsonProcessingException error) {
            found = Collections.emptyList();
        }
        for (int at = 1; at < way.length(); ) {
            int end = endOfStep(way, at);
            if (end < 0) {
                throw wrong(function, text);
            }
            found = step(found, way.substring(at, end).trim());
            at = end;
        }
        return found;
    }

    /** Where a step ends that begins with a dot or a bracket; -1 if it is none. */
    private static int endOfStep(String way, int at) {
        if (way.charAt(at) == '.') {
            int end = at + 1;
            while (end < way.length() && way.charAt(end) != '.' && way.charAt(end) != '[') {
                end++;
            }
            return end > at + 1 ? end : -1;
        }
        if (way.charAt(at) != '[' || at + 1 >= way.length()) {
            return -1;
        }
        char quote = way.charAt(at + 1);
        if (quote == '\'' || quote == '"') {
            int closed = way.indexOf(quote, at + 2);
            return closed > 0 && closed + 1 < way.length() && way.charAt(closed + 1) == ']' ? closed + 2 : -1;
        }
        int closed = way.indexOf(']', at);
        return closed > 0 && isIndex(way.substring(at + 1, closed).trim()) ? closed + 1 : -1;
    }

    private static boolean isIndex(String text) {
        for (int i = 0; i < text.length(); i++) {
            if (NUMBERS.indexOf(text.charAt(i)) < 0) {
                return text.equals("*");
            }
        }
        return text.length() > 0 && text.length() < 10;
    }

    private static List step(List nodes, String step) {
        List found = new ArrayList();
        for (int i = 0; i < nodes.size(); i++) {
            JsonNode node = (JsonNode) nodes.get(i);
            if (step.startsWith(".")) {
                add(found, node, step.substring(1));
            } else if (step.charAt(1) == '\'' || step.charAt(1) == '"') {
                addIfThere(found, node.get(step.substring(2, step.length() - 2)));
            } else if (step.indexOf('*') > 0) {
                addAll(found, node.isArray() ? node.elements() : Collections.singletonList(node).iterator());
            } else {
                int index = Integer.parseInt(step.substring(1, step.length() - 1).trim());
                addIfThere(found, node.isArray() ? node.get(index) : index == 0 ? node : null);
            }
        }
        return found;
    }

    /** A field, or all of them; of the elements, if the node is an array. */
    private static void add(List found, JsonNode node, String name) {
        Iterator owners = node.isArray() ? node.elements() : Collections.singletonList(node).iterator();
        while (owners.hasNext()) {
            JsonNode owner = (JsonNode) owners.next();
            if (name.equals("*")) {
                addAll(found, owner.isObject() ? owner.elements() : Collections.emptyList().iterator());
            } else {
                addIfThere(found, owner.get(name));
            }
        }
    }

    private static void addAll(List found, Iterator nodes) {
        while (nodes.hasNext()) {
            found.add(nodes.next());
        }
    }

    private static void addIfThere(List found, Object node) {
        if (node != null) {
            found.add(node);
        }
    }

    private static RuntimeException wrong(String function, String path) {
        return Refusal.of(function + ": '" + path + "' is no path such as $.name, $['name'], $[0] or $[*]");
    }
}

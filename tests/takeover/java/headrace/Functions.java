package headrace;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.function.BiFunction;
import java.util.function.Function;
import org.apache.kafka.streams.KeyValue;
import org.apache.kafka.streams.kstream.Windowed;

/** The named functions of the golden cases, as {@code functions.py} defines them. */
final class Functions {
    static final Map<String, BiFunction<String, String, Boolean>> PREDICATES = Map.of(
        "value_len_even", (k, v) -> s(v).length() % 2 == 0,
        "value_not_null", (k, v) -> v != null,
        "value_has_a", (k, v) -> s(v).contains("a"),
        "value_lt_m", (k, v) -> s(v).compareTo("m") < 0,
        "key_is_a_or_b", (k, v) -> "a".equals(k) || "b".equals(k),
        "always", (k, v) -> true,
        "never", (k, v) -> false);
    static final Map<String, Function<Object, String>> VALUE_MAPPERS = Map.of(
        "upper", v -> v == null ? null : v.toString().toUpperCase(),
        "append_x", v -> s(v) + "x",
        "first_two", v -> v == null ? null : head(v.toString(), 2),
        "null_if_has_b", v -> v == null || v.toString().contains("b") ? null : v.toString(),
        "str", v -> v == null ? null : v.toString());
    static final Map<String, BiFunction<String, Object, String>> VALUE_MAPPERS_WITH_KEY = Map.of(
        "key_colon", (k, v) -> s(k) + ":" + s(v),
        "null_if_key_c", (k, v) -> "c".equals(k) || v == null ? null : v.toString());
    static final Map<String, Function<String, List<String>>> FLAT_VALUE_MAPPERS = Map.of(
        "chars", v -> v == null ? List.of() : characters(v, 3),
        "twice", v -> Arrays.asList(v, v),
        "none_or_one", v -> v == null || v.length() % 2 == 1 ? List.of() : List.of(v),
        "words", v -> v == null || v.isBlank() ? List.of() : List.of(v.toLowerCase().trim().split("\\s+")));
    static final Map<String, BiFunction<String, String, KeyValue<String, String>>> PAIR_MAPPERS = Map.of(
        "swap", (k, v) -> KeyValue.pair(v, k),
        "key_from_first_char", (k, v) -> KeyValue.pair(head(s(v), 1), v),
        "tag", (k, v) -> KeyValue.pair(k, s(k) + ":" + s(v)));
    static final Map<String, BiFunction<String, String, List<KeyValue<String, String>>>> FLAT_PAIR_MAPPERS = Map.of(
        "both_ways", (k, v) -> List.of(KeyValue.pair(k, v), KeyValue.pair(v, k)),
        "by_char", (k, v) -> characters(s(v), 2).stream().map(c -> KeyValue.pair(c, v)).toList());
    static final Map<String, BiFunction<String, String, String>> KEY_SELECTORS = Map.of(
        "first_char", (k, v) -> v == null ? null : head(v, 1),
        "last_char", (k, v) -> v == null ? null : v.substring(Math.max(0, v.length() - 1)),
        "value", (k, v) -> v,
        "key_and_len", (k, v) -> s(k) + s(v).length() % 2,
        "const", (k, v) -> "k",
        "key", (k, v) -> k,
        "after_comma", (k, v) -> v == null ? null : v.substring(v.lastIndexOf(',') + 1));
    static final Map<String, BiFunction<String, String, String>> REDUCERS = Map.of(
        "concat", (a, v) -> tail(s(a) + "+" + s(v)),
        "latest", (a, v) -> v,
        "max", (a, v) -> s(a).compareTo(s(v)) >= 0 ? s(a) : s(v),
        "null_if_equal", (a, v) -> Objects.equals(a, v) ? null : v);
    static final Map<String, BiFunction<String, String, String>> SUBTRACTORS = Map.of(
        "minus", (a, v) -> tail(s(a) + "-" + s(v)), "keep", (a, v) -> a);
    static final Map<String, String> INITIALIZERS = Map.of("zero", "0", "empty", "");
    static final Map<String, BiFunction<String, String, String>> AGGREGATORS = Map.of(
        "append", (v, a) -> tail(s(a) + "+" + s(v)),
        "remove", (v, a) -> tail(s(a) + "-" + s(v)),
        "length", (v, a) -> String.valueOf(s(a).length() + s(v).length()),
        "null_when_long", (v, a) -> s(a).length() > 6 ? null : s(a) + s(v));
    static final Map<String, BiFunction<String, String, String>> SESSION_MERGERS = Map.of(
        "join", (a, b) -> tail(s(a) + "&" + s(b)));
    static final Map<String, BiFunction<String, String, String>> JOINERS = Map.of(
        "pair", (l, r) -> s(l) + "," + s(r), "left_or_right", (l, r) -> l != null ? l : r);
    static final Map<String, Function<String, String>> FOREIGN_KEYS = Map.of(
        "first_char", v -> v == null ? null : head(v, 1), "value", v -> v);
    static final Map<String, BiFunction<String, String, String>> FOREIGN_KEYS_WITH_KEY = Map.of(
        "key_or_first_char", (k, v) -> v == null ? null : v.length() > 1 ? k : head(v, 1));

    private Functions() { }

    static String s(Object value) {
        return value == null ? "null" : value.toString();
    }

    static String printed(Object key) {
        if (!(key instanceof Windowed<?> windowed)) {
            return (String) key;
        }
        return windowed.key() + "@" + windowed.window().start() + "/" + windowed.window().end();
    }

    private static String head(String text, int length) {
        return text.substring(0, Math.min(length, text.length()));
    }

    private static String tail(String text) {
        return text.substring(Math.max(0, text.length() - 24));
    }

    private static List<String> characters(String text, int most) {
        List<String> found = new ArrayList<>();
        for (int at = 0; at < Math.min(most, text.length()); at++) {
            found.add(text.substring(at, at + 1));
        }
        return found;
    }
}

package headrace;

import static headrace.Functions.printed;
import static headrace.Functions.s;

import com.fasterxml.jackson.databind.JsonNode;
import java.time.Duration;
import java.util.HashMap;
import java.util.Map;
import java.util.Properties;
import java.util.function.BiFunction;
import java.util.function.Function;
import org.apache.kafka.common.serialization.Serde;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.KeyValue;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.Topology;
import org.apache.kafka.streams.kstream.*;
import org.apache.kafka.streams.processor.api.ContextualFixedKeyProcessor;
import org.apache.kafka.streams.processor.api.ContextualProcessor;
import org.apache.kafka.streams.processor.api.FixedKeyProcessorContext;
import org.apache.kafka.streams.processor.api.FixedKeyRecord;
import org.apache.kafka.streams.processor.api.ProcessorContext;
import org.apache.kafka.streams.processor.api.Record;
import org.apache.kafka.streams.state.KeyValueIterator;
import org.apache.kafka.streams.state.KeyValueStore;
import org.apache.kafka.streams.state.Stores;

/** Builds the topology of a golden case: one call of the DSL for each of its nodes, in their order. */
@SuppressWarnings({"rawtypes", "unchecked"})
final class CaseTopology {
    private static final Serde<String> STRING = Serdes.String();

    private final StreamsBuilder builder = new StreamsBuilder();
    private final Map<String, Object> handles = new HashMap<>();

    static Topology build(JsonNode steps, Properties properties) {
        CaseTopology making = new CaseTopology();
        for (JsonNode node : steps) {
            Object handle = making.add(node);
            if (handle != null) {
                making.handles.put(node.get("id").asText(), handle);
            }
        }
        return making.builder.build(properties);
    }

    private Object add(JsonNode node) {
        String op = node.get("op").asText();
        Object parent = node.get("of").isEmpty() ? null : parent(node, 0);
        if (parent instanceof KStream stream) {
            Object found = ofStream(op, node, stream);
            if (found != null) {
                return found;
            }
        }
        return switch (op) {
            case "stream" -> builder.stream(text(node, "topic"), consumed(node));
            case "table" -> node.has("store")
                ? builder.table(text(node, "topic"), consumed(node), materialized(node, STRING))
                : builder.table(text(node, "topic"), consumed(node));
            case "to", "for_each" -> null;
            case "count", "reduce", "aggregate" -> aggregation(op, node, parent);
            case "cogroup" -> cogroup(node);
            case "table_group_by" -> {
                var mapper = Functions.PAIR_MAPPERS.get(text(node, "fn"));
                KeyValueMapper<String, String, KeyValue<String, String>> pairs = mapper::apply;
                yield ((KTable<String, String>) parent).groupBy(pairs, grouped(node));
            }
            case "table_reduce" -> ((KGroupedTable<String, String>) parent).reduce(
                Functions.REDUCERS.get(text(node, "add"))::apply, Functions.SUBTRACTORS.get(text(node, "sub"))::apply,
                materialized(node, STRING));
            case "table_aggregate" -> ((KGroupedTable<String, String>) parent).aggregate(
                initializer(node), aggregator(text(node, "add")), aggregator(text(node, "sub")),
                materialized(node, STRING));
            case "table_filter", "table_filter_not" -> tableFilter(op, node, (KTable) parent);
            case "table_map_values" -> tableMapValues(node, (KTable) parent);
            case "suppress" -> ((KTable) parent).suppress(suppressed(node));
            case "to_stream" -> node.has("fn")
                ? ((KTable<String, String>) parent).toStream(
                    Functions.KEY_SELECTORS.get(text(node, "fn"))::apply, named(node))
                : ((KTable) parent).toStream(named(node));
            case "to_stream_windowed" ->
                ((KTable) parent).toStream((key, value) -> printed(key), named(node));
            case "join", "left_join", "outer_join" -> tableJoin(op, node, (KTable) parent);
            case "fk_join", "fk_left_join" -> foreignKeyJoin(op, node, (KTable) parent);
            default -> throw new IllegalArgumentException("no operation " + op);
        };
    }

    private Object ofStream(String op, JsonNode node, KStream<String, String> stream) {
        return switch (op) {
            case "to" -> {
                stream.to(text(node, "topic"), Produced.with(STRING, STRING));
                yield "";
            }
            case "peek" -> stream.peek((key, value) -> { }, named(node));
            case "for_each" -> {
                stream.foreach((key, value) -> { }, named(node));
                yield "";
            }
            case "filter" -> stream.filter(Functions.PREDICATES.get(text(node, "fn"))::apply, named(node));
            case "filter_not" -> stream.filterNot(Functions.PREDICATES.get(text(node, "fn"))::apply, named(node));
            case "map_values" -> stream.mapValues(valueMapper(node), named(node));
            case "flat_map_values" ->
                stream.flatMapValues((ValueMapper) v ->
                    Functions.FLAT_VALUE_MAPPERS.get(text(node, "fn")).apply((String) v), named(node));
            case "map" -> stream.map(Functions.PAIR_MAPPERS.get(text(node, "fn"))::apply, named(node));
            case "flat_map" -> stream.flatMap(Functions.FLAT_PAIR_MAPPERS.get(text(node, "fn"))::apply, named(node));
            case "select_key" -> stream.selectKey(Functions.KEY_SELECTORS.get(text(node, "fn"))::apply, named(node));
            case "merge" -> stream.merge((KStream) parent(node, 1), named(node));
            case "repartition" -> {
                Repartitioned<String, String> how = Repartitioned.with(STRING, STRING);
                yield stream.repartition(node.has("name") ? how.withName(text(node, "name")) : how);
            }
            case "process" -> node.has("name")
                ? stream.process(() -> new PerKey(node), named(node), store(node))
                : stream.process(() -> new PerKey(node), store(node));
            case "process_values" -> node.has("name")
                ? stream.processValues(() -> new PerValue(node), named(node), store(node))
                : stream.processValues(() -> new PerValue(node), store(node));
            case "to_table" -> stream.toTable(named(node), materialized(node, STRING));
            case "group_by_key" -> stream.groupByKey(grouped(node));
            case "group_by" -> stream.groupBy(Functions.KEY_SELECTORS.get(text(node, "fn"))::apply, grouped(node));
            case "join", "left_join", "outer_join" -> streamJoin(op, node, stream);
            default -> null;
        };
    }

    private Object aggregation(String op, JsonNode node, Object group) {
        Serde values = op.equals("count") ? Serdes.Long() : STRING;
        Materialized store = materialized(node, values);
        if (group instanceof KGroupedTable table) {
            return table.count(named(node), store);
        }
        KGroupedStream<String, String> grouped = (KGroupedStream<String, String>) group;
        if (!node.has("windows")) {
            return switch (op) {
                case "count" -> grouped.count(named(node), store);
                case "reduce" -> grouped.reduce(reducer(node), named(node), store);
                default -> grouped.aggregate(initializer(node), aggregator(text(node, "fn")), named(node), store);
            };
        }
        if (windows(node) instanceof SessionWindows sessions) {
            SessionWindowedKStream<String, String> windowed = grouped.windowedBy(sessions);
            windowed = node.has("emit") ? windowed.emitStrategy(EmitStrategy.onWindowClose()) : windowed;
            return switch (op) {
                case "count" -> windowed.count(named(node), store);
                case "reduce" -> windowed.reduce(reducer(node), named(node), store);
                default -> windowed.aggregate(
                    initializer(node), aggregator(text(node, "fn")), merger(node), named(node), store);
            };
        }
        TimeWindowedKStream<String, String> windowed = windows(node) instanceof SlidingWindows sliding
            ? grouped.windowedBy(sliding) : grouped.windowedBy((TimeWindows) windows(node));
        windowed = node.has("emit") ? windowed.emitStrategy(EmitStrategy.onWindowClose()) : windowed;
        return switch (op) {
            case "count" -> windowed.count(named(node), store);
            case "reduce" -> windowed.reduce(reducer(node), named(node), store);
            default -> windowed.aggregate(initializer(node), aggregator(text(node, "fn")), named(node), store);
        };
    }

    private Object cogroup(JsonNode node) {
        CogroupedKStream<String, String> groups =
            ((KGroupedStream<String, String>) parent(node, 0)).cogroup(aggregator(node.get("fns").get(0).asText()));
        for (int at = 1; at < node.get("fns").size(); at++) {
            groups = groups.cogroup(
                (KGroupedStream<String, String>) parent(node, at), aggregator(node.get("fns").get(at).asText()));
        }
        Materialized store = materialized(node, STRING);
        if (!node.has("windows")) {
            return groups.aggregate(initializer(node), named(node), store);
        }
        Object windows = windows(node);
        if (windows instanceof SessionWindows sessions) {
            return groups.windowedBy(sessions).aggregate(initializer(node), merger(node), named(node), store);
        }
        return windows instanceof SlidingWindows sliding
            ? groups.windowedBy(sliding).aggregate(initializer(node), named(node), store)
            : groups.windowedBy((TimeWindows) windows).aggregate(initializer(node), named(node), store);
    }

    private Object tableFilter(String op, JsonNode node, KTable table) {
        var predicate = Functions.PREDICATES.get(text(node, "fn"));
        Predicate keeps = (key, value) -> predicate.apply(printed(key), (String) value);
        if (op.equals("table_filter")) {
            return node.has("store")
                ? table.filter(keeps, named(node), materialized(node, STRING)) : table.filter(keeps, named(node));
        }
        return node.has("store")
            ? table.filterNot(keeps, named(node), materialized(node, STRING)) : table.filterNot(keeps, named(node));
    }

    private Object tableMapValues(JsonNode node, KTable table) {
        return node.has("store")
            ? table.mapValues(valueMapper(node), named(node), materialized(node, STRING))
            : table.mapValues(valueMapper(node), named(node));
    }

    private Object streamJoin(String op, JsonNode node, KStream<String, String> left) {
        BiFunction<String, String, String> function = Functions.JOINERS.get(text(node, "fn"));
        ValueJoiner<String, String, String> joiner = function::apply;
        if (text(node, "right").equals("S")) {
            JsonNode spec = node.get("windows");
            JoinWindows windows = JoinWindows.ofTimeDifferenceAndGrace(ms(spec, "after_ms"), ms(spec, "grace_ms"))
                .before(ms(spec, "before_ms"));
            StreamJoined<String, String, String> both = StreamJoined.with(STRING, STRING, STRING);
            both = node.has("name") ? both.withName(text(node, "name")) : both;
            both = node.has("join_store") ? both.withStoreName(text(node, "join_store")) : both;
            KStream<String, String> right = (KStream) parent(node, 1);
            return switch (op) {
                case "join" -> left.join(right, joiner, windows, both);
                case "left_join" -> left.leftJoin(right, joiner, windows, both);
                default -> left.outerJoin(right, joiner, windows, both);
            };
        }
        Joined<String, String, String> joined = Joined.with(STRING, STRING, STRING);
        joined = node.has("name") ? joined.withName(text(node, "name")) : joined;
        joined = node.has("grace_ms") ? joined.withGracePeriod(ms(node, "grace_ms")) : joined;
        KTable<String, String> right = (KTable) parent(node, 1);
        return op.equals("join") ? left.join(right, joiner, joined) : left.leftJoin(right, joiner, joined);
    }

    private Object tableJoin(String op, JsonNode node, KTable<String, String> left) {
        BiFunction<String, String, String> function = Functions.JOINERS.get(text(node, "fn"));
        ValueJoiner<String, String, String> joiner = function::apply;
        KTable<String, String> right = (KTable) parent(node, 1);
        if (node.has("store")) {
            Materialized store = materialized(node, STRING);
            return switch (op) {
                case "join" -> left.join(right, joiner, named(node), store);
                case "left_join" -> left.leftJoin(right, joiner, named(node), store);
                default -> left.outerJoin(right, joiner, named(node), store);
            };
        }
        return switch (op) {
            case "join" -> left.join(right, joiner, named(node));
            case "left_join" -> left.leftJoin(right, joiner, named(node));
            default -> left.outerJoin(right, joiner, named(node));
        };
    }

    private Object foreignKeyJoin(String op, JsonNode node, KTable<String, String> left) {
        ValueJoiner<String, String, String> joiner = Functions.JOINERS.get(text(node, "fn"))::apply;
        KTable<String, String> right = (KTable) parent(node, 1);
        TableJoined<String, String> joined = TableJoined.as(node.has("name") ? text(node, "name") : null);
        Materialized store = node.has("store") ? materialized(node, STRING) : Materialized.with(STRING, STRING);
        if (node.has("with_key")) {
            BiFunction<String, String, String> key = Functions.FOREIGN_KEYS_WITH_KEY.get(text(node, "key_fn"));
            return op.equals("fk_join")
                ? (node.has("store") ? left.join(right, key, joiner, joined, store) : left.join(right, key, joiner, joined))
                : (node.has("store") ? left.leftJoin(right, key, joiner, joined, store)
                    : left.leftJoin(right, key, joiner, joined));
        }
        Function<String, String> key = Functions.FOREIGN_KEYS.get(text(node, "key_fn"));
        return op.equals("fk_join")
            ? (node.has("store") ? left.join(right, key, joiner, joined, store) : left.join(right, key, joiner, joined))
            : (node.has("store") ? left.leftJoin(right, key, joiner, joined, store)
                : left.leftJoin(right, key, joiner, joined));
    }

    private static Suppressed suppressed(JsonNode node) {
        boolean strict = text(node, "until").equals("window_closes");
        Suppressed found;
        if (strict) {
            found = Suppressed.untilWindowCloses(node.has("max_records")
                ? Suppressed.BufferConfig.maxRecords(node.get("max_records").asLong()).shutDownWhenFull()
                : Suppressed.BufferConfig.unbounded());
        } else {
            Suppressed.BufferConfig buffer = Suppressed.BufferConfig.unbounded();
            if (node.has("max_records")) {
                var most = Suppressed.BufferConfig.maxRecords(node.get("max_records").asLong());
                buffer = node.path("full").asText().equals("shut_down")
                    ? most.shutDownWhenFull() : most.emitEarlyWhenFull();
            }
            found = Suppressed.untilTimeLimit(ms(node, "limit_ms"), buffer);
        }
        return node.has("name") ? (Suppressed) found.withName(text(node, "name")) : found;
    }

    private static Object windows(JsonNode node) {
        JsonNode spec = node.get("windows");
        Duration grace = ms(spec, "grace_ms");
        return switch (text(spec, "type")) {
            case "sliding" -> SlidingWindows.ofTimeDifferenceAndGrace(ms(spec, "difference_ms"), grace);
            case "session" -> SessionWindows.ofInactivityGapAndGrace(ms(spec, "gap_ms"), grace);
            case "hopping" -> TimeWindows.ofSizeAndGrace(ms(spec, "size_ms"), grace).advanceBy(ms(spec, "advance_ms"));
            default -> TimeWindows.ofSizeAndGrace(ms(spec, "size_ms"), grace);
        };
    }

    private static Materialized materialized(JsonNode node, Serde values) {
        if (!node.has("store")) {
            return Materialized.with(STRING, values);
        }
        String store = text(node, "store");
        Materialized found = node.has("versioned_ms")
            ? Materialized.as(Stores.persistentVersionedKeyValueStore(store, ms(node, "versioned_ms")))
            : Materialized.as(store);
        found = found.withKeySerde(STRING).withValueSerde(values);
        return node.has("retention_ms") ? found.withRetention(ms(node, "retention_ms")) : found;
    }

    private static ValueMapperWithKey valueMapper(JsonNode node) {
        String function = text(node, "fn");
        return node.has("with_key")
            ? (key, value) -> Functions.VALUE_MAPPERS_WITH_KEY.get(function).apply(printed(key), value)
            : (key, value) -> Functions.VALUE_MAPPERS.get(function).apply(value);
    }

    private static Reducer<String> reducer(JsonNode node) {
        return Functions.REDUCERS.get(text(node, "fn"))::apply;
    }

    private static Initializer<String> initializer(JsonNode node) {
        return () -> Functions.INITIALIZERS.get(text(node, "init"));
    }

    private static Aggregator<String, String, String> aggregator(String name) {
        return (key, value, aggregate) -> Functions.AGGREGATORS.get(name).apply(value, aggregate);
    }

    private static Merger<String, String> merger(JsonNode node) {
        return (key, one, other) -> Functions.SESSION_MERGERS.get(text(node, "merger")).apply(one, other);
    }

    private static Consumed<String, String> consumed(JsonNode node) {
        Consumed<String, String> found = Consumed.with(STRING, STRING);
        return node.has("name") ? found.withName(text(node, "name")) : found;
    }

    private static Grouped<String, String> grouped(JsonNode node) {
        return node.has("name") ? Grouped.with(text(node, "name"), STRING, STRING) : Grouped.with(STRING, STRING);
    }

    private static Named named(JsonNode node) {
        return node.has("name") ? Named.as(text(node, "name")) : org.apache.kafka.streams.kstream.internals.NamedInternal.empty();
    }

    private String[] store(JsonNode node) {
        if (!node.has("store")) {
            return new String[0];
        }
        String store = text(node, "store");
        builder.addStateStore(Stores.keyValueStoreBuilder(Stores.inMemoryKeyValueStore(store), STRING, STRING));
        return new String[] {store};
    }

    private Object parent(JsonNode node, int index) {
        return handles.get(node.get("of").get(index).asText());
    }

    private static String text(JsonNode node, String field) {
        return node.get(field).asText();
    }

    private static Duration ms(JsonNode node, String field) {
        return Duration.ofMillis(node.get(field).asLong());
    }

    /** Returns what a processor forwards for a record, or nothing. */
    private static String[] answers(String processor, KeyValueStore<String, String> store, Object key, String value) {
        switch (processor) {
            case "count_per_key": {
                String found = store.get(s(key));
                int count = (found == null ? 0 : Integer.parseInt(found)) + 1;
                store.put(s(key), String.valueOf(count));
                return new String[] {count + ":" + s(value)};
            }
            case "dedup":
                if (s(value).equals(store.get(s(key)))) {
                    return new String[0];
                }
                store.put(s(key), s(value));
                return new String[] {value};
            case "scan": {
                store.put(s(key), value);
                StringBuilder all = new StringBuilder();
                try (KeyValueIterator<String, String> rows = store.all()) {
                    rows.forEachRemaining(row ->
                        all.append(all.isEmpty() ? "" : ",").append(row.key).append("=").append(row.value));
                }
                return new String[] {all.toString()};
            }
            case "pass":
                return new String[] {value};
            default:
                throw new IllegalArgumentException("no processor " + processor);
        }
    }

    private static final class PerKey extends ContextualProcessor<String, String, String, String> {
        private final JsonNode node;
        private KeyValueStore<String, String> store;

        PerKey(JsonNode node) {
            this.node = node;
        }

        @Override
        public void init(ProcessorContext<String, String> context) {
            super.init(context);
            store = node.has("store") ? context.getStateStore(text(node, "store")) : null;
        }

        @Override
        public void process(Record<String, String> record) {
            for (String answer : answers(text(node, "processor"), store, record.key(), record.value())) {
                context().forward(record.withValue(answer));
            }
        }
    }

    private static final class PerValue extends ContextualFixedKeyProcessor<String, String, String> {
        private final JsonNode node;
        private KeyValueStore<String, String> store;

        PerValue(JsonNode node) {
            this.node = node;
        }

        @Override
        public void init(FixedKeyProcessorContext<String, String> context) {
            super.init(context);
            store = node.has("store") ? context.getStateStore(text(node, "store")) : null;
        }

        @Override
        public void process(FixedKeyRecord<String, String> record) {
            for (String answer : answers(text(node, "processor"), store, record.key(), record.value())) {
                context().forward(record.withValue(answer));
            }
        }
    }
}

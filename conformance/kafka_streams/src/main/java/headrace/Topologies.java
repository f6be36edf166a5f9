package headrace;

import static java.time.Duration.ofMillis;

import java.time.Instant;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.TreeMap;
import java.util.regex.Pattern;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.KeyValue;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.kstream.Branched;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.kstream.EmitStrategy;
import org.apache.kafka.streams.kstream.GlobalKTable;
import org.apache.kafka.streams.kstream.Grouped;
import org.apache.kafka.streams.kstream.JoinWindows;
import org.apache.kafka.streams.kstream.Joined;
import org.apache.kafka.streams.kstream.KGroupedStream;
import org.apache.kafka.streams.kstream.KStream;
import org.apache.kafka.streams.kstream.KTable;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.kstream.Named;
import org.apache.kafka.streams.kstream.Printed;
import org.apache.kafka.streams.kstream.Produced;
import org.apache.kafka.streams.kstream.Repartitioned;
import org.apache.kafka.streams.kstream.SessionWindows;
import org.apache.kafka.streams.kstream.SlidingWindows;
import org.apache.kafka.streams.kstream.StreamJoined;
import org.apache.kafka.streams.kstream.Suppressed.BufferConfig;
import org.apache.kafka.streams.kstream.Suppressed;
import org.apache.kafka.streams.kstream.TableJoined;
import org.apache.kafka.streams.kstream.TimeWindows;
import org.apache.kafka.streams.kstream.UnlimitedWindows;
import org.apache.kafka.streams.kstream.ValueTransformerWithKey;
import org.apache.kafka.streams.processor.ProcessorContext;
import org.apache.kafka.streams.processor.StreamPartitioner;
import org.apache.kafka.streams.processor.api.ContextualFixedKeyProcessor;
import org.apache.kafka.streams.processor.api.ContextualProcessor;
import org.apache.kafka.streams.processor.api.FixedKeyProcessor;
import org.apache.kafka.streams.processor.api.FixedKeyProcessorSupplier;
import org.apache.kafka.streams.processor.api.FixedKeyRecord;
import org.apache.kafka.streams.processor.api.Processor;
import org.apache.kafka.streams.processor.api.ProcessorSupplier;
import org.apache.kafka.streams.processor.api.Record;
import org.apache.kafka.streams.state.BuiltInDslStoreSuppliers;
import org.apache.kafka.streams.state.KeyValueStore;
import org.apache.kafka.streams.state.StoreBuilder;
import org.apache.kafka.streams.state.Stores;

/** Topologies of which only the description is recorded: names and structure. */
final class Topologies {
    static final Map<String, Case.Build> ALL = new LinkedHashMap<>();
    static final Map<String, Case.Build> EXPLICIT = new LinkedHashMap<>();

    private static final TimeWindows TUMBLING = TimeWindows.ofSizeAndGrace(ofMillis(10), ofMillis(5));
    private static final SessionWindows SESSIONS = SessionWindows.ofInactivityGapAndGrace(ofMillis(10), ofMillis(5));
    private static final SlidingWindows SLIDING =
        SlidingWindows.ofTimeDifferenceAndGrace(ofMillis(10), ofMillis(5));
    private static final JoinWindows WITHIN = JoinWindows.ofTimeDifferenceAndGrace(ofMillis(10), ofMillis(5));

    private static final Optional<Set<Integer>> FIRST = Optional.of(Set.of(0));

    private Topologies() { }

    static class Pass extends ContextualProcessor<String, String, String, String> {
        @Override
        public void process(final Record<String, String> record) {
            context().forward(record);
        }
    }

    static class PassValues extends ContextualFixedKeyProcessor<String, String, String> {
        @Override
        public void process(final FixedKeyRecord<String, String> record) {
            context().forward(record);
        }
    }

    static class PassWithStores implements ProcessorSupplier<String, String, String, String> {
        @Override
        public Processor<String, String, String, String> get() {
            return new Pass();
        }

        @Override
        public Set<StoreBuilder<?>> stores() {
            return Set.of(store("own"));
        }
    }

    static class PassValuesWithStores implements FixedKeyProcessorSupplier<String, String, String> {
        @Override
        public FixedKeyProcessor<String, String, String> get() {
            return new PassValues();
        }

        @Override
        public Set<StoreBuilder<?>> stores() {
            return Set.of(store("own"));
        }
    }

    static class Tag implements ValueTransformerWithKey<String, String, String> {
        @Override
        public void init(final ProcessorContext context) { }

        @Override
        public String transform(final String key, final String value) {
            return key + value;
        }

        @Override
        public void close() { }
    }

    static StoreBuilder<KeyValueStore<String, String>> store(final String name) {
        return Stores.keyValueStoreBuilder(Stores.inMemoryKeyValueStore(name), Serdes.String(), Serdes.String());
    }

    private static KStream<String, String> stream(final StreamsBuilder b, final String topic) {
        return b.stream(topic);
    }

    private static KTable<String, String> table(final StreamsBuilder b, final String topic) {
        return b.table(topic);
    }

    private static KStream<String, String> rekeyed(final StreamsBuilder b, final String topic) {
        return stream(b, topic).selectKey((k, v) -> v);
    }

    private static String join(final String left, final String right) {
        return left + right;
    }

    static {
        ALL.put("source_pattern", (b, e) -> b.<String, String>stream(Pattern.compile("in-.*")).to("out"));
        ALL.put("source_pattern_named_and_topic", (b, e) -> {
            final KStream<String, String> all = b.stream(Pattern.compile("in-.*"), Consumed.as("many"));
            all.merge(b.stream("other")).to("out");
        });
        ALL.put("source_pattern_twice", (b, e) -> {
            b.<String, String>stream(Pattern.compile("in-.*")).to("out-1");
            b.<String, String>stream(Pattern.compile("in-.*")).to("out-2");
        });
        ALL.put("source_pattern_counted", (b, e) ->
            b.<String, String>stream(Pattern.compile("in-.*")).groupBy((k, v) -> v).count().toStream().to("out"));
        ALL.put("source_same_topic_twice", (b, e) -> {
            stream(b, "in").filter((k, v) -> true).to("out-1");
            stream(b, "in").mapValues(v -> v).to("out-2");
        });
        ALL.put("source_overlapping_topics", (b, e) -> {
            b.<String, String>stream(List.of("a", "b")).to("out-1");
            b.<String, String>stream(List.of("b")).to("out-2");
        });
        ALL.put("print", (b, e) -> stream(b, "in").print(Printed.toSysOut()));
        ALL.put("print_named", (b, e) ->
            stream(b, "in").print(Printed.<String, String>toSysOut().withName("show").withLabel("label")));

        ALL.put("transform_values", (b, e) -> table(b, "in").transformValues(Tag::new).toStream().to("out"));
        ALL.put("transform_values_named", (b, e) ->
            table(b, "in").transformValues(Tag::new, Named.as("tag")).toStream().to("out"));
        ALL.put("transform_values_store", (b, e) -> {
            b.addStateStore(store("seen"));
            table(b, "in").transformValues(Tag::new, "seen").toStream().to("out");
        });
        ALL.put("transform_values_materialized", (b, e) -> {
            b.addStateStore(store("seen"));
            table(b, "in").transformValues(Tag::new, Materialized.as("tagged"), Named.as("tag"), "seen")
                .toStream().to("out");
        });
        ALL.put("transform_values_materialized_with", (b, e) ->
            table(b, "in").transformValues(Tag::new, Materialized.with(Serdes.String(), Serdes.String()))
                .toStream().to("out"));
        ALL.put("transform_values_joined", (b, e) ->
            table(b, "a").transformValues(Tag::new).join(table(b, "b"), Topologies::join).toStream().to("out"));
        ALL.put("map_values_materialized_with", (b, e) ->
            table(b, "in").mapValues(v -> v, Materialized.with(Serdes.String(), Serdes.String()))
                .filter((k, v) -> true, Materialized.with(Serdes.String(), Serdes.String())).toStream().to("out"));

        ALL.put("suppress_session", (b, e) -> stream(b, "in").groupByKey().windowedBy(SESSIONS).count()
            .suppress(Suppressed.untilWindowCloses(BufferConfig.unbounded())).toStream().to("out"));
        ALL.put("suppress_session_named", (b, e) -> stream(b, "in").groupByKey().windowedBy(SESSIONS)
            .count(Named.as("count"), Materialized.as("sessions"))
            .suppress(Suppressed.untilWindowCloses(BufferConfig.unbounded()).withName("final")).toStream().to("out"));
        ALL.put("suppress_sliding", (b, e) -> stream(b, "in").groupByKey().windowedBy(SLIDING).count()
            .suppress(Suppressed.untilWindowCloses(BufferConfig.unbounded())).toStream().to("out"));
        ALL.put("suppress_sliding_named_after_map", (b, e) -> stream(b, "in").groupByKey().windowedBy(SLIDING).count()
            .mapValues(v -> v).suppress(Suppressed.untilWindowCloses(BufferConfig.unbounded()).withName("final"))
            .toStream().to("out"));
        ALL.put("suppress_twice", (b, e) -> table(b, "in")
            .suppress(Suppressed.untilTimeLimit(ofMillis(5), BufferConfig.maxRecords(5)))
            .suppress(Suppressed.untilTimeLimit(ofMillis(5), BufferConfig.maxBytes(500))).toStream().to("out"));

        ALL.put("unlimited_count", (b, e) ->
            stream(b, "in").groupByKey().windowedBy(UnlimitedWindows.of()).count().toStream().to("out"));
        ALL.put("unlimited_reduce_named", (b, e) -> rekeyed(b, "in").groupByKey(Grouped.as("group"))
            .windowedBy(UnlimitedWindows.of().startOn(Instant.ofEpochMilli(5)))
            .reduce(Topologies::join, Named.as("reduce"), Materialized.as("all")).toStream().to("out"));

        ALL.put("table_joined_named", (b, e) -> table(b, "a").join(
            table(b, "b"), v -> v, Topologies::join, TableJoined.as("fk"), Materialized.as("joined"))
            .toStream().to("out"));
        ALL.put("table_joined_partitioners", (b, e) -> table(b, "a").leftJoin(
            table(b, "b"), v -> v, Topologies::join, TableJoined.<String, String>with(
                (topic, k, v, n) -> FIRST, (topic, k, v, n) -> FIRST)).toStream().to("out"));
        ALL.put("table_joined_self", (b, e) -> {
            final KTable<String, String> users = table(b, "a");
            users.join(users, v -> v, Topologies::join).toStream().to("out");
        });
        ALL.put("table_joined_of_aggregates", (b, e) -> {
            final KTable<String, String> left = stream(b, "a").groupBy((k, v) -> v).reduce(Topologies::join);
            final KTable<String, String> right = table(b, "b").filter((k, v) -> true);
            left.leftJoin(right, v -> v, Topologies::join).toStream().to("out");
        });

        ALL.put("repartition_partitions", (b, e) ->
            stream(b, "in").repartition(Repartitioned.numberOfPartitions(3)).to("out"));
        ALL.put("repartition_partitioner_named", (b, e) -> stream(b, "in").repartition(
            Repartitioned.<String, String>streamPartitioner((topic, k, v, n) -> FIRST).withName("spread")).to("out"));
        ALL.put("repartition_of_repartition", (b, e) -> rekeyed(b, "in").repartition(Repartitioned.as("one"))
            .selectKey((k, v) -> v).repartition().groupByKey().count().toStream().to("out"));
        ALL.put("repartition_join_partitions", (b, e) -> rekeyed(b, "a")
            .repartition(Repartitioned.<String, String>as("left").withNumberOfPartitions(4))
            .join(rekeyed(b, "b"), Topologies::join, WITHIN).to("out"));
        ALL.put("repartition_merged", (b, e) -> rekeyed(b, "a").repartition(Repartitioned.as("one"))
            .merge(rekeyed(b, "b").repartition(), Named.as("both")).groupByKey().count().toStream().to("out"));
        ALL.put("rekeyed_merged_counted", (b, e) ->
            rekeyed(b, "a").merge(rekeyed(b, "b")).groupByKey().count().toStream().to("out"));

        ALL.put("split_function", (b, e) -> {
            final Map<String, KStream<String, String>> branches = stream(b, "in").split()
                .branch((k, v) -> true, Branched.withFunction(s -> s.mapValues(v -> v)))
                .branch((k, v) -> true, Branched.withFunction(s -> s.filter((k, v) -> true), "second"))
                .defaultBranch(Branched.withFunction(s -> s));
            new TreeMap<>(branches).forEach((name, branch) -> branch.to("out-" + name));
        });
        ALL.put("split_consumer", (b, e) -> stream(b, "in").split(Named.as("split-"))
            .branch((k, v) -> true, Branched.withConsumer(s -> s.to("one")))
            .branch((k, v) -> true, Branched.withConsumer(s -> s.mapValues(v -> v).to("two"), "two"))
            .defaultBranch(Branched.withConsumer(s -> s.to("rest"), "rest")));
        ALL.put("split_nested", (b, e) -> stream(b, "in").split(Named.as("outer-"))
            .branch((k, v) -> true, Branched.withConsumer(s -> s.split(Named.as("inner-"))
                .branch((k, v) -> true, Branched.withConsumer(i -> i.to("one"), "one"))
                .defaultBranch(Branched.withConsumer(i -> i.to("two"), "two")), "nested"))
            .branch((k, v) -> true, Branched.withConsumer(s -> s.split()
                .branch((k, v) -> true, Branched.withConsumer(i -> i.to("three")))
                .noDefaultBranch()))
            .noDefaultBranch());
        ALL.put("split_rekeyed_counted", (b, e) -> rekeyed(b, "in").split()
            .branch((k, v) -> true, Branched.withConsumer(s -> s.groupByKey().count().toStream().to("one")))
            .defaultBranch(Branched.withConsumer(s -> s.repartition().to("two"))));

        ALL.put("cogroup_named_repartitions", (b, e) -> {
            final KGroupedStream<String, String> one = rekeyed(b, "a").groupByKey(Grouped.as("one"));
            final KGroupedStream<String, String> two = stream(b, "b").groupBy((k, v) -> v, Grouped.as("two"));
            final KGroupedStream<String, String> three = stream(b, "c").groupByKey();
            one.<String>cogroup((k, v, a) -> a + v).cogroup(two, (k, v, a) -> a + v).cogroup(three, (k, v, a) -> a + v)
                .aggregate(() -> "", Named.as("cogroup"), Materialized.as("groups")).toStream().to("out");
        });
        ALL.put("cogroup_windowed_named", (b, e) -> {
            final KGroupedStream<String, String> one = rekeyed(b, "a").groupByKey(Grouped.as("one"));
            final KGroupedStream<String, String> two = rekeyed(b, "b").groupByKey(Grouped.as("two"));
            one.<String>cogroup((k, v, a) -> a + v).cogroup(two, (k, v, a) -> a + v).windowedBy(TUMBLING)
                .aggregate(() -> "", Named.as("cogroup")).toStream().to("out");
        });
        ALL.put("cogroup_sessions", (b, e) -> stream(b, "a").groupByKey().<String>cogroup((k, v, a) -> a + v)
            .cogroup(stream(b, "b").groupByKey(), (k, v, a) -> a + v).windowedBy(SESSIONS)
            .aggregate(() -> "", (k, x, y) -> x + y, Materialized.as("sessions")).toStream().to("out"));
        ALL.put("cogroup_same_group_twice", (b, e) -> {
            final KGroupedStream<String, String> one = rekeyed(b, "a").groupByKey(Grouped.as("one"));
            one.count().toStream().mapValues(v -> "" + v).to("counts");
            one.<String>cogroup((k, v, a) -> a + v).aggregate(() -> "").toStream().to("out");
        });

        ALL.put("process_connected_stores", (b, e) -> stream(b, "in").process(new PassWithStores()).to("out"));
        ALL.put("process_connected_stores_named", (b, e) -> {
            b.addStateStore(store("extra"));
            stream(b, "in").process(new PassWithStores(), Named.as("pass"), "extra").to("out");
        });
        ALL.put("process_values_connected_stores", (b, e) -> {
            final KStream<String, String> passed = stream(b, "in").processValues(new PassValuesWithStores());
            passed.groupByKey().count().toStream().to("out");
        });
        ALL.put("process_then_group", (b, e) ->
            stream(b, "in").process(Pass::new).groupByKey().count().toStream().to("out"));
        ALL.put("process_shared_store", (b, e) -> {
            b.addStateStore(store("shared"));
            stream(b, "a").process(Pass::new, "shared").to("out-a");
            stream(b, "b").process(Pass::new, Named.as("second"), "shared").to("out-b");
        });
        ALL.put("global_store", (b, e) -> {
            b.<String, String>addGlobalStore(store("global"), "facts", Consumed.with(Serdes.String(), Serdes.String()),
                () -> new PassVoid());
            stream(b, "in").to("out");
        });
        ALL.put("global_store_named", (b, e) -> {
            stream(b, "in").to("out");
            b.<String, String>addGlobalStore(store("global"), "facts", Consumed.as("facts"), () -> new PassVoid());
        });
        ALL.put("global_table_join", (b, e) -> {
            final GlobalKTable<String, String> facts = b.globalTable("facts", Materialized.as("facts-store"));
            stream(b, "in").join(facts, (k, v) -> v, Topologies::join, Named.as("enrich"))
                .leftJoin(facts, (k, v) -> v, Topologies::join).to("out");
        });

        ALL.put("table_materialized_with", (b, e) ->
            b.table("in", Materialized.with(Serdes.String(), Serdes.String())).toStream().to("out"));
        ALL.put("table_in_memory", (b, e) -> b.table(
            "in", Materialized.<String, String>as(Stores.inMemoryKeyValueStore("rows"))).toStream().to("out"));
        ALL.put("table_no_caching_no_logging", (b, e) -> b.table("in", Consumed.<String, String>as("rows"),
            Materialized.<String, String, KeyValueStore<org.apache.kafka.common.utils.Bytes, byte[]>>as("store")
                .withCachingDisabled().withLoggingDisabled()).toStream(Named.as("stream")).to("out"));
        ALL.put("count_in_memory", (b, e) -> stream(b, "in").groupByKey().count(
            Materialized.<String, Long>as(Stores.inMemoryKeyValueStore("counts"))).toStream().to("out"));
        ALL.put("count_in_memory_unnamed", (b, e) -> stream(b, "in").groupByKey().count(
            Materialized.as(BuiltInDslStoreSuppliers.IN_MEMORY)).toStream().to("out"));
        ALL.put("window_count_supplier", (b, e) -> stream(b, "in").groupByKey().windowedBy(TUMBLING).count(
            Materialized.<String, Long>as(
                Stores.inMemoryWindowStore("counts", ofMillis(20), ofMillis(10), false))).toStream().to("out"));
        ALL.put("session_count_supplier", (b, e) -> stream(b, "in").groupByKey().windowedBy(SESSIONS)
            .emitStrategy(EmitStrategy.onWindowClose()).count(
                Materialized.<String, Long>as(Stores.inMemorySessionStore("counts", ofMillis(20)))).toStream().to("out"));
        ALL.put("to_table_named", (b, e) -> stream(b, "in").toTable(Named.as("rows")).toStream().to("out"));
        ALL.put("to_table_rekeyed_named", (b, e) ->
            rekeyed(b, "in").toTable(Named.as("rows"), Materialized.as("store")).toStream().to("out"));
        ALL.put("to_table_materialized_with", (b, e) -> rekeyed(b, "in").toTable(
            Materialized.with(Serdes.String(), Serdes.String())).filter((k, v) -> true).toStream().to("out"));
        ALL.put("to_table_joined", (b, e) -> stream(b, "a").toTable()
            .outerJoin(rekeyed(b, "b").toTable(), Topologies::join, Named.as("both")).toStream().to("out"));

        ALL.put("stream_joined_named", (b, e) -> stream(b, "a").join(stream(b, "b"), Topologies::join, WITHIN,
            StreamJoined.<String, String, String>as("stores").withName("pair")).to("out"));
        ALL.put("stream_joined_left_named_rekeyed", (b, e) -> rekeyed(b, "a").leftJoin(
            rekeyed(b, "b"), Topologies::join, WITHIN,
            StreamJoined.<String, String, String>as("stores").withName("pair")).to("out"));
        ALL.put("stream_joined_outer_name_only", (b, e) -> rekeyed(b, "a").outerJoin(
            stream(b, "b"), Topologies::join, WITHIN,
            StreamJoined.<String, String, String>with(null, null, null).withName("pair")).to("out"));
        ALL.put("stream_joined_suppliers", (b, e) -> stream(b, "a").join(stream(b, "b"), Topologies::join, WITHIN,
            StreamJoined.<String, String, String>with(
                Stores.inMemoryWindowStore("mine", ofMillis(25), ofMillis(20), true),
                Stores.inMemoryWindowStore("yours", ofMillis(25), ofMillis(20), true))).to("out"));
        ALL.put("stream_joined_outer_suppliers_named", (b, e) -> stream(b, "a").outerJoin(
            stream(b, "b"), Topologies::join, WITHIN, StreamJoined.<String, String, String>with(
                Stores.inMemoryWindowStore("mine", ofMillis(25), ofMillis(20), true),
                Stores.inMemoryWindowStore("yours", ofMillis(25), ofMillis(20), true))
                .withName("pair").withStoreName("stores")).to("out"));
        ALL.put("stream_joined_one_supplier", (b, e) -> stream(b, "a").leftJoin(
            stream(b, "b"), Topologies::join, WITHIN, StreamJoined.<String, String, String>with(null, null, null)
                .withOtherStoreSupplier(Stores.inMemoryWindowStore("yours", ofMillis(25), ofMillis(20), true)))
            .to("out"));
        ALL.put("stream_joined_in_memory", (b, e) -> stream(b, "a").leftJoin(
            stream(b, "b"), Topologies::join, WITHIN, StreamJoined.<String, String, String>with(
                BuiltInDslStoreSuppliers.IN_MEMORY).withLoggingDisabled()).to("out"));
        ALL.put("joined_named_rekeyed", (b, e) -> rekeyed(b, "a").join(table(b, "b"), Topologies::join,
            Joined.<String, String, String>as("enrich")).to("out"));
        ALL.put("joined_left_rekeyed", (b, e) ->
            rekeyed(b, "a").leftJoin(table(b, "b"), Topologies::join).to("out"));
        ALL.put("joined_grace_named", (b, e) -> rekeyed(b, "a").join(
            b.table("b", Materialized.<String, String>as(Stores.persistentVersionedKeyValueStore("versions", ofMillis(100)))),
            Topologies::join, Joined.<String, String, String>as("enrich").withGracePeriod(ofMillis(10))).to("out"));
        ALL.put("joined_twice", (b, e) -> {
            final KStream<String, String> left = rekeyed(b, "a");
            left.join(table(b, "b"), Topologies::join).to("out-1");
            left.join(table(b, "c"), Topologies::join).to("out-2");
        });
        ALL.put("self_join", (b, e) -> {
            final KStream<String, String> one = stream(b, "a");
            one.join(one, Topologies::join, WITHIN).to("out");
        });
        ALL.put("self_join_named", (b, e) -> {
            final KStream<String, String> one = stream(b, "a");
            one.join(one, Topologies::join, WITHIN, StreamJoined.<String, String, String>as("stores").withName("pair"))
                .to("out");
        });
        ALL.put("self_join_two_handles", (b, e) ->
            stream(b, "a").join(stream(b, "a"), Topologies::join, WITHIN).to("out"));
        ALL.put("self_join_filtered", (b, e) -> {
            final KStream<String, String> one = stream(b, "a").filter((k, v) -> true);
            one.join(one, Topologies::join, WITHIN).to("out");
        });
        ALL.put("self_join_of_mapped", (b, e) -> {
            final KStream<String, String> one = stream(b, "a");
            one.mapValues(v -> v).join(one, Topologies::join, WITHIN).to("out");
        });
        ALL.put("self_join_rekeyed", (b, e) -> {
            final KStream<String, String> one = rekeyed(b, "a");
            one.join(one, Topologies::join, WITHIN).to("out");
        });
        ALL.put("self_join_three_way", (b, e) -> {
            final KStream<String, String> one = stream(b, "a");
            one.join(one, Topologies::join, WITHIN).join(one, Topologies::join, WITHIN).to("out");
        });

        ALL.put("several_subtopologies", (b, e) -> {
            stream(b, "a").groupBy((k, v) -> v).count().toStream().to("out-1");
            table(b, "b").groupBy((k, v) -> KeyValue.pair(v, k)).reduce(Topologies::join, Topologies::join)
                .toStream().to("out-2");
            stream(b, "c").repartition(Repartitioned.as("again")).to("out-3");
            stream(b, "d").to("out-4");
        });
        ALL.put("optimized_many_groups", (b, e) -> {
            final KStream<String, String> one = rekeyed(b, "a");
            one.groupByKey().count().toStream().to("out-1");
            one.mapValues(v -> v).filter((k, v) -> true).groupByKey().reduce(Topologies::join).toStream().to("out-2");
            one.groupByKey(Grouped.as("third")).windowedBy(TUMBLING).count().toStream().to("out-3");
        });
        ALL.put("optimized_group_and_join", (b, e) -> {
            final KStream<String, String> one = rekeyed(b, "a");
            final KTable<String, String> sums = one.groupByKey().reduce(Topologies::join);
            one.join(sums, Topologies::join).to("out-1");
            one.join(stream(b, "b"), Topologies::join, WITHIN).to("out-2");
            one.to("out-3");
        });
        ALL.put("optimized_table_source", (b, e) -> {
            final KTable<String, String> rows = b.table("a", Materialized.as("rows"));
            rows.filter((k, v) -> true).toStream().to("out-1");
            table(b, "b").join(rows, Topologies::join).toStream().to("out-2");
        });
        ALL.put("optimized_merge_after_rekey", (b, e) -> {
            final KStream<String, String> one = rekeyed(b, "a");
            final KStream<String, String> two = one.merge(stream(b, "b"));
            two.groupByKey().count().toStream().to("out-1");
            two.mapValues(v -> v).groupByKey().count().toStream().to("out-2");
        });
        ALL.put("optimized_explicit_repartition", (b, e) -> {
            final KStream<String, String> one = rekeyed(b, "a").repartition(Repartitioned.as("spread"));
            one.groupByKey().count().toStream().to("out-1");
            one.selectKey((k, v) -> v).groupByKey(Grouped.as("again")).count().toStream().to("out-2");
        });
        ALL.put("optimized_process_between", (b, e) -> {
            final KStream<String, String> one = rekeyed(b, "a").processValues(PassValues::new);
            one.groupByKey().count().toStream().to("out-1");
            one.flatMapValues(v -> List.of(v)).groupByKey().count().toStream().to("out-2");
        });
        ALL.put("optimized_everything", (b, e) -> {
            final KStream<String, String> one = rekeyed(b, "a");
            final KTable<String, String> rows = b.table("rows");
            final KTable<String, Long> counts = one.groupByKey().count(Materialized.as("counts"));
            one.join(rows, Topologies::join).to("out-1");
            counts.toStream().mapValues(v -> "" + v).join(rows, Topologies::join).to("out-2");
            final KStream<String, String> two = stream(b, "b");
            two.join(two, Topologies::join, WITHIN).groupByKey().windowedBy(SLIDING).count().toStream().to("out-3");
            rows.groupBy((k, v) -> KeyValue.pair(v, k), Grouped.as("by-value")).count().toStream().to("out-4");
        });
        ALL.put("sink_named_partitioner", (b, e) -> stream(b, "in").to("out",
            Produced.<String, String>as("sink").withStreamPartitioner(
                (StreamPartitioner<String, String>) (topic, k, v, n) -> FIRST)));

        EXPLICIT.put("count", (b, e) -> stream(b, "in").groupByKey().count().toStream().to("out"));
        EXPLICIT.put("count_named", (b, e) ->
            stream(b, "in").groupByKey().count(Materialized.as("counts")).toStream().to("out"));
        EXPLICIT.put("rekeyed_count", (b, e) -> rekeyed(b, "in").groupByKey().count().toStream().to("out"));
        EXPLICIT.put("rekeyed_count_store_named", (b, e) ->
            rekeyed(b, "in").groupByKey().count(Materialized.as("counts")).toStream().to("out"));
        EXPLICIT.put("rekeyed_count_group_named", (b, e) ->
            rekeyed(b, "in").groupByKey(Grouped.as("group")).count().toStream().to("out"));
        EXPLICIT.put("rekeyed_count_named", (b, e) -> rekeyed(b, "in").groupByKey(Grouped.as("group"))
            .count(Materialized.as("counts")).toStream().to("out"));
        EXPLICIT.put("table", (b, e) -> table(b, "in").toStream().to("out"));
        EXPLICIT.put("table_joined", (b, e) ->
            table(b, "a").join(table(b, "b"), Topologies::join).toStream().to("out"));
        EXPLICIT.put("table_group", (b, e) ->
            table(b, "a").groupBy((k, v) -> KeyValue.pair(v, k)).count().toStream().to("out"));
        EXPLICIT.put("table_group_named", (b, e) -> table(b, "a").groupBy((k, v) -> KeyValue.pair(v, k),
            Grouped.as("group")).count(Materialized.as("counts")).toStream().to("out"));
        EXPLICIT.put("repartition", (b, e) -> stream(b, "in").repartition().to("out"));
        EXPLICIT.put("repartition_named", (b, e) -> stream(b, "in").repartition(Repartitioned.as("again")).to("out"));
        EXPLICIT.put("stream_join", (b, e) ->
            stream(b, "a").join(stream(b, "b"), Topologies::join, WITHIN).to("out"));
        EXPLICIT.put("stream_outer_join", (b, e) ->
            rekeyed(b, "a").outerJoin(stream(b, "b"), Topologies::join, WITHIN).to("out"));
        EXPLICIT.put("stream_join_name_only", (b, e) -> rekeyed(b, "a").leftJoin(stream(b, "b"), Topologies::join,
            WITHIN, StreamJoined.<String, String, String>with(null, null, null).withName("pair")).to("out"));
        EXPLICIT.put("stream_join_named", (b, e) -> rekeyed(b, "a").leftJoin(stream(b, "b"), Topologies::join, WITHIN,
            StreamJoined.<String, String, String>as("stores").withName("pair")).to("out"));
        EXPLICIT.put("stream_table_join", (b, e) ->
            rekeyed(b, "a").join(table(b, "b"), Topologies::join).to("out"));
        EXPLICIT.put("stream_table_join_named", (b, e) -> rekeyed(b, "a").join(
            b.table("b", Materialized.as("rows")), Topologies::join, Joined.<String, String, String>as("enrich"))
            .to("out"));
        EXPLICIT.put("suppress", (b, e) -> table(b, "in").suppress(
            Suppressed.untilTimeLimit(ofMillis(5), BufferConfig.unbounded())).toStream().to("out"));
        EXPLICIT.put("suppress_named", (b, e) -> b.<String, String>table("in", Materialized.as("rows")).suppress(
            Suppressed.<String>untilTimeLimit(ofMillis(5), BufferConfig.unbounded()).withName("wait"))
            .toStream().to("out"));
        EXPLICIT.put("to_table", (b, e) -> rekeyed(b, "in").toTable().toStream().to("out"));
        EXPLICIT.put("to_table_named", (b, e) ->
            rekeyed(b, "in").toTable(Named.as("rows"), Materialized.as("store")).toStream().to("out"));
        EXPLICIT.put("foreign_key_join", (b, e) ->
            table(b, "a").join(table(b, "b"), v -> v, Topologies::join).toStream().to("out"));
        EXPLICIT.put("cogroup", (b, e) -> rekeyed(b, "a").groupByKey().<String>cogroup((k, v, a) -> a + v)
            .aggregate(() -> "").toStream().to("out"));
        EXPLICIT.put("global_table", (b, e) -> {
            final GlobalKTable<String, String> facts = b.globalTable("facts");
            stream(b, "in").join(facts, (k, v) -> v, Topologies::join).to("out");
        });
        EXPLICIT.put("window_count", (b, e) ->
            stream(b, "in").groupByKey().windowedBy(TUMBLING).count().toStream().to("out"));
        EXPLICIT.put("map_values_materialized_with", (b, e) -> b.<String, String>table("in", Materialized.as("rows"))
            .mapValues(v -> v, Materialized.with(Serdes.String(), Serdes.String())).toStream().to("out"));
    }

    static class PassVoid implements Processor<String, String, Void, Void> {
        @Override
        public void process(final Record<String, String> record) { }
    }
}

package headrace;

import static java.time.Duration.ofMillis;

import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.regex.Pattern;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.kstream.Branched;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.kstream.EmitStrategy;
import org.apache.kafka.streams.kstream.Grouped;
import org.apache.kafka.streams.kstream.JoinWindows;
import org.apache.kafka.streams.kstream.Joined;
import org.apache.kafka.streams.kstream.KStream;
import org.apache.kafka.streams.kstream.KTable;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.kstream.Named;
import org.apache.kafka.streams.kstream.Produced;
import org.apache.kafka.streams.kstream.Repartitioned;
import org.apache.kafka.streams.kstream.SessionWindows;
import org.apache.kafka.streams.kstream.StreamJoined;
import org.apache.kafka.streams.kstream.Suppressed.BufferConfig;
import org.apache.kafka.streams.kstream.Suppressed;
import org.apache.kafka.streams.kstream.TimeWindows;
import org.apache.kafka.streams.kstream.UnlimitedWindows;
import org.apache.kafka.streams.state.Stores;

/** Calls that may be wrong: recorded is whether Kafka Streams refuses them, and with which exception. */
final class BuildErrors {
    static final Map<String, Case.Build> ALL = new LinkedHashMap<>();

    private static final TimeWindows TUMBLING = TimeWindows.ofSizeAndGrace(ofMillis(10), ofMillis(5));
    private static final JoinWindows WITHIN = JoinWindows.ofTimeDifferenceAndGrace(ofMillis(10), ofMillis(5));

    private BuildErrors() { }

    private static KStream<String, String> stream(final StreamsBuilder b, final String topic) {
        return b.stream(topic);
    }

    private static KTable<String, String> table(final StreamsBuilder b, final String topic) {
        return b.table(topic);
    }

    private static String join(final String left, final String right) {
        return left + right;
    }

    static {
        ALL.put("name_with_space", (b, e) -> stream(b, "in").filter((k, v) -> true, Named.as("a b")));
        ALL.put("name_empty", (b, e) -> stream(b, "in").filter((k, v) -> true, Named.as("")));
        ALL.put("name_dot", (b, e) -> stream(b, "in").filter((k, v) -> true, Named.as(".")));
        ALL.put("name_too_long", (b, e) -> stream(b, "in").filter((k, v) -> true, Named.as("n".repeat(250))));
        ALL.put("name_longest", (b, e) -> stream(b, "in").filter((k, v) -> true, Named.as("n".repeat(249))));
        ALL.put("name_twice", (b, e) ->
            stream(b, "in").filter((k, v) -> true, Named.as("a")).filter((k, v) -> true, Named.as("a")));
        ALL.put("store_name_with_space", (b, e) -> stream(b, "in").groupByKey().count(Materialized.as("a b")));
        ALL.put("store_name_twice", (b, e) -> {
            stream(b, "in").groupByKey().count(Materialized.as("a"));
            stream(b, "in").groupByKey().count(Materialized.as("a"));
        });
        ALL.put("store_added_twice", (b, e) -> {
            b.addStateStore(Topologies.store("a"));
            b.addStateStore(Topologies.store("a"));
            stream(b, "in").process(Topologies.Pass::new, "a");
        });
        ALL.put("store_unknown", (b, e) -> stream(b, "in").process(Topologies.Pass::new, "missing"));
        ALL.put("store_unused", (b, e) -> {
            b.addStateStore(Topologies.store("a"));
            stream(b, "in").to("out");
        });
        ALL.put("global_store_connected", (b, e) -> {
            b.globalTable("facts", Materialized.as("facts-store"));
            stream(b, "in").process(Topologies.Pass::new, "facts-store");
        });
        ALL.put("topic_as_stream_and_table", (b, e) -> {
            stream(b, "in").to("out-1");
            table(b, "in").toStream().to("out-2");
        });
        ALL.put("topic_as_table_twice", (b, e) -> {
            table(b, "in").toStream().to("out-1");
            table(b, "in").toStream().to("out-2");
        });
        ALL.put("topic_as_table_and_global_table", (b, e) -> {
            table(b, "in").toStream().to("out-1");
            b.globalTable("in");
        });
        ALL.put("topic_written_and_read", (b, e) -> {
            stream(b, "in").to("middle");
            stream(b, "middle").to("out");
        });
        ALL.put("topic_written_to_itself", (b, e) -> stream(b, "in").to("in"));
        ALL.put("topic_twice_in_list", (b, e) -> b.stream(List.of("in", "in")).to("out"));
        ALL.put("no_topics", (b, e) -> b.stream(List.of()).to("out"));
        ALL.put("pattern_and_its_topic", (b, e) -> {
            b.stream(Pattern.compile("in-.*")).to("out-1");
            stream(b, "in-1").to("out-2");
        });
        ALL.put("offset_resets_differ", (b, e) -> {
            b.stream("in", Consumed.with(org.apache.kafka.streams.AutoOffsetReset.earliest())).to("out-1");
            b.stream("in", Consumed.with(org.apache.kafka.streams.AutoOffsetReset.latest())).to("out-2");
        });
        ALL.put("same_topic_other_names", (b, e) -> {
            b.stream("in", Consumed.as("one")).to("out-1");
            b.stream("in", Consumed.as("two")).to("out-2");
        });
        ALL.put("repartition_names_twice", (b, e) -> {
            stream(b, "a").repartition(Repartitioned.as("again")).to("out-1");
            stream(b, "b").repartition(Repartitioned.as("again")).to("out-2");
        });
        ALL.put("grouped_names_twice", (b, e) -> {
            stream(b, "a").groupBy((k, v) -> v, Grouped.as("again")).count();
            stream(b, "b").groupBy((k, v) -> v, Grouped.as("again")).count();
        });
        ALL.put("grouped_stream_twice_named", (b, e) -> {
            final var grouped = stream(b, "a").groupBy((k, v) -> v, Grouped.as("again"));
            grouped.count();
            grouped.windowedBy(TUMBLING).count();
        });
        ALL.put("joined_names_twice", (b, e) -> {
            final KStream<String, String> one = stream(b, "a").selectKey((k, v) -> v);
            one.join(stream(b, "b"), BuildErrors::join, WITHIN,
                StreamJoined.<String, String, String>with(null, null, null).withName("pair")).to("out-1");
            one.join(stream(b, "c"), BuildErrors::join, WITHIN,
                StreamJoined.<String, String, String>with(null, null, null).withName("pair")).to("out-2");
        });
        ALL.put("join_stores_of_other_windows", (b, e) -> stream(b, "a").join(stream(b, "b"), BuildErrors::join, WITHIN,
            StreamJoined.<String, String, String>with(
                Stores.inMemoryWindowStore("mine", ofMillis(50), ofMillis(40), true),
                Stores.inMemoryWindowStore("yours", ofMillis(50), ofMillis(40), true))).to("out"));
        ALL.put("join_stores_without_duplicates", (b, e) -> stream(b, "a").join(stream(b, "b"), BuildErrors::join,
            WITHIN, StreamJoined.<String, String, String>with(
                Stores.inMemoryWindowStore("mine", ofMillis(25), ofMillis(20), false),
                Stores.inMemoryWindowStore("yours", ofMillis(25), ofMillis(20), false))).to("out"));
        ALL.put("join_stores_of_one_name", (b, e) -> stream(b, "a").join(stream(b, "b"), BuildErrors::join, WITHIN,
            StreamJoined.<String, String, String>with(
                Stores.inMemoryWindowStore("mine", ofMillis(25), ofMillis(20), true),
                Stores.inMemoryWindowStore("mine", ofMillis(25), ofMillis(20), true))).to("out"));
        ALL.put("window_store_retention_too_short", (b, e) -> stream(b, "in").groupByKey().windowedBy(TUMBLING)
            .count(Materialized.<String, Long>as(
                Stores.inMemoryWindowStore("counts", ofMillis(12), ofMillis(10), false))));
        ALL.put("window_store_of_other_size", (b, e) -> stream(b, "in").groupByKey().windowedBy(TUMBLING)
            .count(Materialized.<String, Long>as(
                Stores.inMemoryWindowStore("counts", ofMillis(100), ofMillis(20), false))));
        ALL.put("window_retention_too_short", (b, e) -> stream(b, "in").groupByKey().windowedBy(TUMBLING)
            .count(Materialized.<String, Long, org.apache.kafka.streams.state.WindowStore<
                org.apache.kafka.common.utils.Bytes, byte[]>>as("counts").withRetention(ofMillis(14))));
        ALL.put("session_store_retention_too_short", (b, e) -> stream(b, "in").groupByKey()
            .windowedBy(SessionWindows.ofInactivityGapAndGrace(ofMillis(10), ofMillis(5)))
            .count(Materialized.<String, Long>as(Stores.inMemorySessionStore("counts", ofMillis(14)))));
        ALL.put("window_store_that_forgets_at_once", (b, e) ->
            Stores.inMemoryWindowStore("counts", ofMillis(5), ofMillis(10), false));
        ALL.put("unlimited_on_window_close", (b, e) -> stream(b, "in").groupByKey().windowedBy(UnlimitedWindows.of())
            .emitStrategy(EmitStrategy.onWindowClose()).count());
        ALL.put("suppress_table_until_window_closes", (b, e) -> {
            final KTable windowless = table(b, "in");
            windowless.suppress(Suppressed.untilWindowCloses(BufferConfig.unbounded())).toStream().to("out");
        });
        ALL.put("suppress_unlimited_until_window_closes", (b, e) -> stream(b, "in").groupByKey()
            .windowedBy(UnlimitedWindows.of()).count()
            .suppress(Suppressed.untilWindowCloses(BufferConfig.unbounded())).toStream().to("out"));
        ALL.put("suppress_versioned", (b, e) -> b.table("in", Materialized.as(
            Stores.persistentVersionedKeyValueStore("versions", ofMillis(50))))
            .suppress(Suppressed.untilTimeLimit(ofMillis(5), BufferConfig.unbounded())).toStream().to("out"));
        ALL.put("suppress_of_filtered_versioned", (b, e) -> b.table("in", Materialized.as(
            Stores.persistentVersionedKeyValueStore("versions", ofMillis(50)))).filter((k, v) -> true)
            .suppress(Suppressed.untilTimeLimit(ofMillis(5), BufferConfig.unbounded())).toStream().to("out"));
        ALL.put("joined_grace_unversioned", (b, e) -> stream(b, "a").join(table(b, "b"), BuildErrors::join,
            Joined.<String, String, String>as("join").withGracePeriod(ofMillis(5))).to("out"));
        ALL.put("joined_grace_too_long", (b, e) -> stream(b, "a").join(
            b.table("b", Materialized.<String, String>as(Stores.persistentVersionedKeyValueStore("v", ofMillis(50)))),
            BuildErrors::join, Joined.<String, String, String>as("join").withGracePeriod(ofMillis(51))).to("out"));
        ALL.put("global_table_versioned", (b, e) -> b.globalTable("in", Materialized.<String, String>as(
            Stores.persistentVersionedKeyValueStore("v", ofMillis(50)))));
        ALL.put("branch_names_twice", (b, e) -> stream(b, "in").split().branch((k, v) -> true, Branched.as("a"))
            .branch((k, v) -> true, Branched.as("a")).noDefaultBranch());
        ALL.put("sink_name_twice", (b, e) -> {
            stream(b, "in").to("out-1", Produced.as("sink"));
            stream(b, "in").to("out-2", Produced.as("sink"));
        });
        ALL.put("windows_advance_too_long", (b, e) -> TUMBLING.advanceBy(ofMillis(11)));
        ALL.put("windows_advance_zero", (b, e) -> TUMBLING.advanceBy(ofMillis(0)));
        ALL.put("windows_size_zero", (b, e) -> TimeWindows.ofSizeWithNoGrace(ofMillis(0)));
        ALL.put("windows_grace_negative", (b, e) -> TimeWindows.ofSizeAndGrace(ofMillis(1), ofMillis(-1)));
        ALL.put("sessions_gap_zero", (b, e) -> SessionWindows.ofInactivityGapWithNoGrace(ofMillis(0)));
        ALL.put("join_windows_empty", (b, e) ->
            JoinWindows.ofTimeDifferenceWithNoGrace(ofMillis(5)).before(ofMillis(-6)));
        ALL.put("join_windows_in_the_past", (b, e) ->
            JoinWindows.ofTimeDifferenceWithNoGrace(ofMillis(5)).after(ofMillis(-5)));
        ALL.put("repartition_zero_partitions", (b, e) ->
            stream(b, "in").repartition(Repartitioned.numberOfPartitions(0)).to("out"));
        ALL.put("repartitions_of_different_numbers", (b, e) ->
            stream(b, "a").repartition(Repartitioned.numberOfPartitions(2)).join(
                stream(b, "b").repartition(Repartitioned.numberOfPartitions(3)), BuildErrors::join, WITHIN).to("out"));
        ALL.put("lru_of_nothing", (b, e) -> Stores.lruMap("lru", 0));
        ALL.put("versioned_negative_retention", (b, e) ->
            Stores.persistentVersionedKeyValueStore("v", ofMillis(-1)));
        ALL.put("nothing", (b, e) -> { });
    }
}

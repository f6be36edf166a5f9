package headrace;

import static java.time.Duration.ofMillis;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.UUID;
import java.util.function.Function;
import org.apache.kafka.common.header.internals.RecordHeaders;
import org.apache.kafka.common.serialization.Serde;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.KeyValue;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.Topology;
import org.apache.kafka.streams.errors.LogAndContinueProcessingExceptionHandler;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.kstream.Grouped;
import org.apache.kafka.streams.kstream.KStream;
import org.apache.kafka.streams.kstream.KTable;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.kstream.Named;
import org.apache.kafka.streams.kstream.Produced;
import org.apache.kafka.streams.kstream.SessionWindows;
import org.apache.kafka.streams.kstream.Suppressed.BufferConfig;
import org.apache.kafka.streams.kstream.Suppressed;
import org.apache.kafka.streams.kstream.TimeWindows;
import org.apache.kafka.streams.kstream.Windowed;
import org.apache.kafka.streams.kstream.WindowedSerdes;
import org.apache.kafka.streams.kstream.internals.SessionWindow;
import org.apache.kafka.streams.processor.LogAndSkipOnInvalidTimestamp;
import org.apache.kafka.streams.processor.PunctuationType;
import org.apache.kafka.streams.processor.TimestampExtractor;
import org.apache.kafka.streams.processor.TopicNameExtractor;
import org.apache.kafka.streams.processor.UsePartitionTimeOnInvalidTimestamp;
import org.apache.kafka.streams.processor.api.ContextualProcessor;
import org.apache.kafka.streams.processor.api.ProcessorContext;
import org.apache.kafka.streams.processor.api.Record;
import org.apache.kafka.streams.state.KeyValueStore;
import org.apache.kafka.streams.state.SessionStore;
import org.apache.kafka.streams.state.Stores;
import org.apache.kafka.streams.state.TimestampedKeyValueStore;
import org.apache.kafka.streams.state.TimestampedWindowStore;
import org.apache.kafka.streams.state.ValueAndTimestamp;
import org.apache.kafka.streams.state.VersionedKeyValueStore;

/** More topologies that are run: stores as processors see them, contexts, serdes, timestamps, windowed tables. */
final class MoreRuns {
    private static final Serde<String> STRING = Serdes.String();
    private static final Serde<Long> LONG = Serdes.Long();
    private static final TimeWindows TUMBLING = TimeWindows.ofSizeAndGrace(ofMillis(10), ofMillis(5));
    private static final SessionWindows SESSIONS = SessionWindows.ofInactivityGapAndGrace(ofMillis(10), ofMillis(5));
    private static final Serde<Windowed<String>> WINDOWED = WindowedSerdes.timeWindowedSerdeFrom(String.class, 10L);

    private MoreRuns() { }

    private static KStream<String, String> stream(final StreamsBuilder b, final String topic) {
        return b.stream(topic);
    }

    private static String join(final Object left, final Object right) {
        return left + "+" + right;
    }

    private static String fail(final String bad, final String value) {
        if (value.startsWith(bad)) {
            throw new IllegalStateException(bad);
        }
        return value;
    }

    /** Calls every method of its stores in turn and notes what they return. */
    static final class Calls extends ContextualProcessor<String, String, String, String> {
        private final List<String> effects;

        Calls(final List<String> effects) {
            this.effects = effects;
        }

        private void note(final Object value) {
            effects.add(String.valueOf(Queries.plain(value)));
        }

        @Override
        public void process(final Record<String, String> record) {
            final String key = record.key();
            final String value = record.value();
            final long ts = record.timestamp();
            final KeyValueStore<String, String> plain = context().getStateStore("plain");
            note(plain.putIfAbsent(key, value));
            note(plain.putIfAbsent(key, "other"));
            plain.put(key + "1", value);
            plain.put(key + "0", value);
            note(plain.all());
            note(plain.range(key + "0", key + "1"));
            note(plain.reverseRange(null, key + "0"));
            note(plain.delete(key + "0"));
            note(plain.delete(key + "0"));
            note(plain.get(key + "0"));
            note(plain.reverseAll());
            note(plain.prefixScan(key, STRING.serializer()));
            final TimestampedKeyValueStore<String, String> stamped = context().getStateStore("stamped");
            note(stamped.putIfAbsent(key, ValueAndTimestamp.make(value, ts)));
            note(stamped.putIfAbsent(key, ValueAndTimestamp.make("other", ts + 1)));
            stamped.put(key + "1", ValueAndTimestamp.make(value, ts + 5));
            note(stamped.all());
            note(stamped.delete(key));
            final VersionedKeyValueStore<String, String> versioned = context().getStateStore("versioned");
            note(versioned.put(key, value, ts));
            note(versioned.put(key, value + "!", ts + 10));
            note(versioned.put(key, value + "?", ts + 5));
            note(versioned.delete(key, ts + 7));
            note(versioned.get(key));
            note(versioned.get(key, ts + 8));
            note(versioned.get(key, ts + 6));
            note(versioned.get(key, ts - 1));
            note(versioned.put(key, null, ts + 20));
            note(versioned.get(key));
            note(versioned.put(key, "expired", ts - 200));
            final TimestampedWindowStore<String, String> windows = context().getStateStore("windows");
            windows.put(key, ValueAndTimestamp.make(value, ts), ts - ts % 10);
            windows.put(key + "1", ValueAndTimestamp.make(value, ts), ts - ts % 10);
            note(windows.fetch(key, ts - ts % 10));
            note(windows.fetchAll(0, ts));
            windows.put(key + "1", null, ts - ts % 10);
            note(windows.all());
            final SessionStore<String, String> sessions = context().getStateStore("sessions");
            sessions.put(new Windowed<>(key, new SessionWindow(ts, ts + 3)), value);
            sessions.put(new Windowed<>(key, new SessionWindow(ts + 1, ts + 2)), value);
            note(sessions.fetch(key));
            sessions.remove(new Windowed<>(key, new SessionWindow(ts, ts + 3)));
            note(sessions.findSessions(key, 0, 1000));
            context().forward(record);
        }
    }

    /** Notes what the context says, in a record and in a punctuation. */
    static final class Context extends ContextualProcessor<String, String, String, String> {
        private final List<String> effects;

        Context(final List<String> effects) {
            this.effects = effects;
        }

        private void note(final String what) {
            final ProcessorContext<String, String> c = context();
            effects.add(what + " " + c.applicationId() + " " + c.taskId() + " "
                // Where there is no record, Kafka's is empty, or has no topic.
                + c.recordMetadata().filter(m -> m.topic() != null)
                    .map(m -> m.topic() + "-" + m.partition() + "@" + m.offset()).orElse("none")
                + " stream=" + c.currentStreamTimeMs() + " wall=" + c.currentSystemTimeMs());
        }

        @Override
        public void init(final ProcessorContext<String, String> context) {
            super.init(context);
            note("init");
            context.schedule(ofMillis(10), PunctuationType.WALL_CLOCK_TIME, time -> {
                note("wall");
                context().forward(new Record<>("wall", "" + time, time));
            });
            context.schedule(ofMillis(10), PunctuationType.STREAM_TIME, time -> {
                note("stream");
                context().forward(new Record<>("stream", "" + time, time, new RecordHeaders().add("p", new byte[] {1})),
                    "right");
            });
        }

        @Override
        public void process(final Record<String, String> record) {
            note("record");
            context().forward(record);
            context().forward(record.withValue("right only").withTimestamp(record.timestamp() + 1), "right");
            context().forward(record.withKey("new").withHeaders(new RecordHeaders().add("n", new byte[] {2})), "left");
        }

        @Override
        public void close() {
            effects.add("close");
        }
    }

    /** Reads the time from the value; values that are no numbers have none. */
    private static long timeOf(final Object value) {
        try {
            return Long.parseLong((String) value);
        } catch (final NumberFormatException error) {
            return -1;
        }
    }

    private static Case timestamps(final TimestampExtractor extractor) {
        return Case.dsl((b, e) -> {
            b.stream("in", Consumed.with(STRING, STRING).withTimestampExtractor(extractor)).to("out");
        }).in("in", "a", "5", 1).in("in", "b", "bad", 2).in("in", "c", "3", 3).in("in", "d", "bad", 90).advance(50)
            .in("in", "e", "7", 4).in("in", "f", "bad", 6);
    }

    static void add(final Map<String, Case> all) {
        all.put("store_calls", Case.papi(e -> new Topology()
            .addSource("source", STRING.deserializer(), STRING.deserializer(), "in")
            .addProcessor("calls", () -> new Calls(e), "source")
            .addStateStore(Stores.keyValueStoreBuilder(
                Stores.persistentKeyValueStore("plain"), STRING, STRING).withCachingEnabled(), "calls")
            .addStateStore(Stores.timestampedKeyValueStoreBuilder(
                Stores.persistentTimestampedKeyValueStore("stamped"), STRING, STRING), "calls")
            .addStateStore(Stores.versionedKeyValueStoreBuilder(
                Stores.persistentVersionedKeyValueStore("versioned", ofMillis(100)), STRING, STRING), "calls")
            .addStateStore(Stores.timestampedWindowStoreBuilder(
                Stores.persistentTimestampedWindowStore("windows", ofMillis(100), ofMillis(10), false),
                STRING, STRING).withCachingEnabled(), "calls")
            .addStateStore(Stores.sessionStoreBuilder(
                Stores.persistentSessionStore("sessions", ofMillis(100)), STRING, STRING).withCachingEnabled(), "calls")
            .addSink("sink", "out", STRING.serializer(), STRING.serializer(), "calls"))
            .in("in", "k", "a", 310).in("in", "k", "b", 312).in("in", "j", "c", 330).in("in", "k", "d", 305)
            .ask("plain", "all").ask("stamped", "all").ask("windows", "all").ask("sessions", "fetch_keys", null, null)
            .ask("versioned", "get", "j", 339));
        all.put("contexts", Case.papi(e -> new Topology()
            .addSource("source", STRING.deserializer(), STRING.deserializer(), "in")
            .addProcessor("context", () -> new Context(e), "source")
            .addSink("left", "left", STRING.serializer(), STRING.serializer(), "context")
            .addSink("right", new TopicNameExtractor<String, String>() {
                @Override
                public String extract(final String key, final String value,
                                      final org.apache.kafka.streams.processor.RecordContext c) {
                    e.add("extract " + c.topic() + " " + c.partition() + " " + c.offset() + " " + c.timestamp());
                    return "right";
                }

                @Override
                public String toString() {
                    return "to_right";
                }
            }, STRING.serializer(), STRING.serializer(), "context"))
            .in("in", "a", "x", 15, "h", "1").advance(12).in("in", "a", "y", 14).in("in", "b", "z", 27).advance(30));
        all.put("serdes", Case.dsl((b, e) -> {
            final KStream<String, String> one = stream(b, "in");
            to(one, "short", Serdes.Short(), Short::parseShort);
            to(one, "integer", Serdes.Integer(), Integer::parseInt);
            to(one, "long", Serdes.Long(), Long::parseLong);
            to(one, "float", Serdes.Float(), Float::parseFloat);
            to(one, "double", Serdes.Double(), Double::parseDouble);
            to(one, "boolean", Serdes.Boolean(), v -> v.startsWith("-"));
            to(one, "uuid", Serdes.UUID(), v -> UUID.fromString("00000000-0000-0000-0000-0000000000" + v.length() + "0"));
            to(one, "bytes", Serdes.ByteArray(), v -> v.getBytes());
            to(one, "list", Serdes.ListSerde(ArrayList.class, Serdes.Integer()), v -> new ArrayList<>(
                Arrays.asList(Integer.parseInt(v), null, 7)));
            to(one, "strings", Serdes.ListSerde(ArrayList.class, Serdes.String()), v -> new ArrayList<>(
                Arrays.asList(v, null, "")));
            to(one, "void", Serdes.Void(), v -> null);
        }).in("in", "a", "0", 1).in("in", "a", "-1", 2).in("in", "a", "32767", 3).in("in", "a", "-32768", 4));
        all.put("timestamps_skipped", timestamps(new LogAndSkipOnInvalidTimestamp() {
            @Override
            public long extract(final org.apache.kafka.clients.consumer.ConsumerRecord<Object, Object> r, final long p) {
                final long time = timeOf(r.value());
                return time < 0 ? onInvalidTimestamp(r, time, p) : time;
            }
        }));
        all.put("timestamps_of_partition", timestamps(new UsePartitionTimeOnInvalidTimestamp() {
            @Override
            public long extract(final org.apache.kafka.clients.consumer.ConsumerRecord<Object, Object> r, final long p) {
                final long time = timeOf(r.value());
                return time < 0 ? onInvalidTimestamp(r, time, p) : time;
            }
        }));
        all.put("timestamps_wall_clock", timestamps((r, p) -> p < 0 ? 1 : p + 10));
        all.put("timestamps_negative", timestamps((r, p) -> timeOf(r.value())));

        all.put("windowed_tables_joined", Case.dsl((b, e) -> {
            final KTable<Windowed<String>, Long> left =
                stream(b, "left").groupByKey().windowedBy(TUMBLING).count(Materialized.as("left"));
            final KTable<Windowed<String>, Long> right =
                stream(b, "right").groupByKey().windowedBy(TUMBLING).count(Materialized.as("right"));
            left.join(right, MoreRuns::join, Materialized.with(WINDOWED, STRING)).toStream()
                .to("inner", Produced.with(WINDOWED, STRING));
            left.outerJoin(right.mapValues(v -> v * 10), MoreRuns::join).toStream()
                .to("outer", Produced.with(WINDOWED, STRING));
        }).in("left", "a", "x", 1).in("right", "a", "x", 3).in("left", "a", "x", 4).in("right", "b", "x", 12)
            .in("left", "b", "x", 11).in("right", "a", "x", 5).in("left", "c", "x", 40).in("right", "a", "x", 6));
        all.put("windowed_table_regrouped", Case.dsl((b, e) -> {
            final KTable<Windowed<String>, Long> counts =
                stream(b, "in").groupByKey(Grouped.with(STRING, STRING)).windowedBy(TUMBLING)
                    .count(Materialized.as("counts"));
            counts.groupBy((k, v) -> KeyValue.pair("" + k.window().start(), v), Grouped.with("per-window", STRING, LONG))
                .reduce(Long::sum, (total, old) -> total - old, Materialized.as("totals")).toStream()
                .to("totals-out", Produced.with(STRING, LONG));
            counts.filter((k, v) -> v > 1, Materialized.<Windowed<String>, Long, KeyValueStore<
                org.apache.kafka.common.utils.Bytes, byte[]>>as("many").withKeySerde(WINDOWED).withValueSerde(LONG)).toStream()
                .to("many-out", Produced.with(WINDOWED, LONG));
            counts.suppress(Suppressed.untilWindowCloses(BufferConfig.unbounded()).withName("closed"))
                .groupBy((k, v) -> KeyValue.pair(k.key(), v), Grouped.with("per-key", STRING, LONG))
                .reduce(Long::sum, (total, old) -> total - old, Materialized.as("finals")).toStream()
                .to("finals-out", Produced.with(STRING, LONG));
        }).in("in", "a", "x", 1).in("in", "b", "x", 3).in("in", "a", "x", 4).in("in", "a", "x", 12)
            .in("in", "a", "x", 26).in("in", "a", "x", 13).in("in", "c", "x", 60)
            .ask("totals", "all").ask("many", "all").ask("finals", "all"));
        all.put("sessions_joined_and_grouped", Case.dsl((b, e) -> {
            final KTable<Windowed<String>, Long> sessions =
                stream(b, "in").groupByKey().windowedBy(SESSIONS).count(Materialized.as("sessions"));
            sessions.groupBy((k, v) -> KeyValue.pair(k.key(), v), Grouped.with("per-key", STRING, LONG))
                .reduce(Long::sum, (total, old) -> total - old, Materialized.as("totals")).toStream()
                .to("totals-out", Produced.with(STRING, LONG));
            sessions.mapValues(v -> v + "!", Materialized.<Windowed<String>, String, KeyValueStore<
                org.apache.kafka.common.utils.Bytes, byte[]>>as("mapped")
                .withKeySerde(WindowedSerdes.sessionWindowedSerdeFrom(String.class)).withValueSerde(STRING)).toStream()
                .to("mapped-out", Produced.with(WindowedSerdes.sessionWindowedSerdeFrom(String.class), STRING));
        }).in("in", "a", "x", 1).in("in", "a", "x", 20).in("in", "a", "x", 10).in("in", "b", "x", 21)
            .in("in", "a", "x", 60).ask("totals", "all"));
        all.put("versioned_tables_joined", Case.dsl((b, e) -> {
            final KTable<String, String> left = b.table("left", Materialized.as(
                Stores.persistentVersionedKeyValueStore("left", ofMillis(50))));
            final KTable<String, String> right = b.table("right", Materialized.as(
                Stores.persistentVersionedKeyValueStore("right", ofMillis(50))));
            left.join(right, MoreRuns::join).toStream().to("inner");
            left.leftJoin(right, v -> v.substring(0, 1), MoreRuns::join).toStream().to("foreign");
            left.filter((k, v) -> !v.endsWith("0")).toStream().to("filtered");
        }).in("left", "a", "b1", 10).in("right", "a", "x", 5).in("left", "a", "b2", 8).in("right", "b", "y", 20)
            .in("right", "b", "z", 15).in("left", "a", "b0", 30).in("left", "a", null, 25).in("right", "a", null, 40)
            .in("left", "a", "c3", 100).in("left", "a", "c4", 20));

        all.put("suppress_byte_limits", Case.dsl((b, e) -> {
            final KTable<String, String> rows = b.table("in", Materialized.as("rows"));
            for (int limit = 40; limit <= 260; limit += 20) {
                rows.suppress(Suppressed.<String>untilTimeLimit(ofMillis(1000), BufferConfig.maxBytes(limit)
                    .withLoggingDisabled()).withName("wait-" + limit)).toStream().to("out-" + limit);
            }
        }).in("in", "a", "1", 1).in("in", "b", "22", 2, "h", "x").in("in", "a", "333", 3).in("in", "c", null, 4)
            .in("in", "ddd", "0123456789", 5).in("in", "b", null, 6).in("in", "e", "", 7).in("in", "f", "6", 8));
        all.put("suppress_full_shuts_down", Case.dsl((b, e) -> b.<String, String>table("in").suppress(
            Suppressed.<String>untilTimeLimit(ofMillis(1000), BufferConfig.maxBytes(100).shutDownWhenFull())
                .withName("wait")).toStream().to("out"))
            .in("in", "a", "1", 1).in("in", "b", "22", 2).in("in", "c", "3", 3).in("in", "d", "4", 4));
        all.put("failures_in_tables", Case.dsl((b, e) -> {
            final KTable<String, String> rows = b.table("in", Materialized.as("rows"));
            rows.mapValues(v -> fail("map", v)).toStream().to("mapped");
            rows.filter((k, v) -> !fail("filter", v).isEmpty(), Materialized.as("filtered")).toStream().to("filtered-out");
            rows.groupBy((k, v) -> KeyValue.pair(fail("group", v), v), Grouped.as("group"))
                .aggregate(() -> "", (k, v, a) -> a + fail("add", v), (k, v, a) -> a + "-", Materialized.as("sums"))
                .toStream().to("sums-out");
            stream(b, "stream").join(rows, (l, r) -> fail("join", l) + r).to("joined");
        }).config(StreamsConfig.PROCESSING_EXCEPTION_HANDLER_CLASS_CONFIG,
            LogAndContinueProcessingExceptionHandler.class.getName())
            .in("in", "a", "x", 1).in("in", "a", "map", 2).in("in", "a", "filter", 3).in("in", "a", "group", 4)
            .in("in", "a", "add", 5).in("in", "a", "y", 6).in("stream", "a", "join", 7).in("stream", "a", "ok", 8)
            .in("in", "a", null, 9).ask("rows", "all").ask("filtered", "all").ask("sums", "all"));
        all.put("failures_in_windows", Case.dsl((b, e) -> {
            stream(b, "in").groupByKey().windowedBy(TUMBLING)
                .aggregate(() -> "", (k, v, a) -> a + fail("add", v), Materialized.as("windows")).toStream()
                .map((k, v) -> KeyValue.pair(k.key(), fail("out", v))).to("out");
            stream(b, "in").groupByKey().windowedBy(SESSIONS)
                .aggregate(() -> "", (k, v, a) -> a + fail("add", v), (k, l, r) -> fail("merge", l) + r,
                    Materialized.as("sessions")).toStream().map((k, v) -> KeyValue.pair(k.key(), v)).to("sessions-out");
        }).config(StreamsConfig.PROCESSING_EXCEPTION_HANDLER_CLASS_CONFIG,
            LogAndContinueProcessingExceptionHandler.class.getName())
            .in("in", "a", "x", 1).in("in", "a", "add", 2).in("in", "a", "y", 3).in("in", "b", "out", 4)
            .in("in", "b", "z", 5).in("in", "a", "merge", 20).in("in", "a", "w", 26).in("in", "a", "v", 40));
        all.put("keys_of_streams", Case.dsl((b, e) -> {
            final KStream<String, String> one = stream(b, "in");
            one.repartition(org.apache.kafka.streams.kstream.Repartitioned.as("again")).to("again-out");
            one.toTable(Materialized.as("rows")).toStream((k, v) -> k + v, Named.as("rekey")).to("rows-out");
            one.flatMap((k, v) -> v == null ? List.<KeyValue<String, String>>of()
                : List.of(KeyValue.pair(v, k), KeyValue.pair((String) null, v))).to("flat");
            one.filter((k, v) -> v != null).groupBy((k, v) -> v.equals("none") ? null : v, Grouped.as("group"))
                .count(Materialized.as("counts")).toStream().to("counts-out");
        }).in("in", "a", "x", 1, "h", "1").in("in", null, "y", 2).in("in", "b", null, 3).in("in", "c", "none", 4)
            .in("in", null, null, 5).ask("rows", "all").ask("counts", "all"));
    }

    private static <T> void to(
        final KStream<String, String> stream, final String topic, final Serde<T> serde, final Function<String, T> read) {
        stream.mapValues(v -> read.apply(v)).to(topic, Produced.with(STRING, serde));
    }
}

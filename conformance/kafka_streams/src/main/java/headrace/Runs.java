package headrace;

import static java.time.Duration.ofMillis;

import java.time.Instant;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.TreeMap;
import java.util.regex.Pattern;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.serialization.Serde;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.KeyValue;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.Topology;
import org.apache.kafka.streams.errors.LogAndContinueExceptionHandler;
import org.apache.kafka.streams.errors.LogAndContinueProcessingExceptionHandler;
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
import org.apache.kafka.streams.kstream.Windowed;
import org.apache.kafka.streams.kstream.WindowedSerdes;
import org.apache.kafka.streams.kstream.internals.SessionWindow;
import org.apache.kafka.streams.processor.Cancellable;
import org.apache.kafka.streams.processor.ProcessorContext;
import org.apache.kafka.streams.processor.PunctuationType;
import org.apache.kafka.streams.processor.TopicNameExtractor;
import org.apache.kafka.streams.processor.api.ContextualFixedKeyProcessor;
import org.apache.kafka.streams.processor.api.ContextualProcessor;
import org.apache.kafka.streams.processor.api.FixedKeyRecord;
import org.apache.kafka.streams.processor.api.Processor;
import org.apache.kafka.streams.processor.api.Record;
import org.apache.kafka.streams.state.KeyValueStore;
import org.apache.kafka.streams.state.SessionStore;
import org.apache.kafka.streams.state.Stores;
import org.apache.kafka.streams.state.WindowStore;

/** Topologies that are run: every topic they write is recorded, byte by byte. */
final class Runs {
    static final Map<String, Case> ALL = new LinkedHashMap<>();

    private static final Serde<String> STRING = Serdes.String();
    private static final Serde<Long> LONG = Serdes.Long();
    private static final Serde<Integer> INTEGER = Serdes.Integer();
    private static final Serde<Double> DOUBLE = Serdes.Double();
    private static final TimeWindows TUMBLING = TimeWindows.ofSizeAndGrace(ofMillis(10), ofMillis(5));
    private static final SessionWindows SESSIONS = SessionWindows.ofInactivityGapAndGrace(ofMillis(10), ofMillis(5));
    private static final SlidingWindows SLIDING =
        SlidingWindows.ofTimeDifferenceAndGrace(ofMillis(10), ofMillis(5));
    private static final JoinWindows WITHIN = JoinWindows.ofTimeDifferenceAndGrace(ofMillis(10), ofMillis(5));

    private Runs() { }

    private static KStream<String, String> stream(final StreamsBuilder b, final String topic) {
        return b.stream(topic);
    }

    private static KTable<String, String> table(final StreamsBuilder b, final String topic) {
        return b.table(topic);
    }

    private static String join(final String left, final String right) {
        return left + "+" + right;
    }

    /** Counts the calls for each key in a store, so that a lookup that calls again is seen. */
    static final class Seen implements ValueTransformerWithKey<String, String, String> {
        private final List<String> effects;
        private KeyValueStore<String, String> store;
        private ProcessorContext context;

        Seen(final List<String> effects) {
            this.effects = effects;
        }

        @Override
        public void init(final ProcessorContext context) {
            this.context = context;
            store = context.getStateStore("seen");
        }

        @Override
        public String transform(final String key, final String value) {
            final String before = store.get(key);
            final String now = before == null ? "1" : "" + (Integer.parseInt(before) + 1);
            store.put(key, now);
            effects.add(key + " " + value + " " + context.timestamp());
            return value == null ? ("2".equals(now) ? "kept" : null) : value + now;
        }

        @Override
        public void close() { }
    }

    /** Adds the time of the row at hand to its value. */
    static final class Stamp implements ValueTransformerWithKey<String, String, String> {
        private final List<String> effects;
        private ProcessorContext context;

        Stamp(final List<String> effects) {
            this.effects = effects;
        }

        @Override
        public void init(final ProcessorContext context) {
            this.context = context;
        }

        @Override
        public String transform(final String key, final String value) {
            effects.add(key + " " + value + " " + context.timestamp() + " " + headers(context.headers()));
            return value == null ? null : value + context.timestamp();
        }

        @Override
        public void close() { }
    }

    /** Schedules punctuations and cancels them after some calls. */
    static final class Ticking extends ContextualProcessor<String, String, String, String> {
        private final List<String> effects;
        private final String name;
        private final long interval;
        private final int most;

        Ticking(final List<String> effects, final String name, final long interval, final int most) {
            this.effects = effects;
            this.name = name;
            this.interval = interval;
            this.most = most;
        }

        @Override
        public void init(final org.apache.kafka.streams.processor.api.ProcessorContext<String, String> context) {
            super.init(context);
            schedule("stream", PunctuationType.STREAM_TIME);
            schedule("wall", PunctuationType.WALL_CLOCK_TIME);
        }

        private void schedule(final String kind, final PunctuationType type) {
            final int[] calls = {0};
            final Cancellable[] scheduled = {null};
            scheduled[0] = context().schedule(ofMillis(interval), type, time -> {
                calls[0]++;
                effects.add(name + " " + kind + " " + time + " stream=" + context().currentStreamTimeMs()
                    + " wall=" + context().currentSystemTimeMs());
                context().forward(new Record<>(name, kind + calls[0], time));
                if (calls[0] == most) {
                    scheduled[0].cancel();
                }
            });
        }

        @Override
        public void process(final Record<String, String> record) {
            context().forward(record.withValue(record.value() + name));
        }
    }

    /** put, delete or get in a key-value store, as the value says; forwards what was there. */
    static final class Store extends ContextualProcessor<String, String, String, String> {
        private final String name;
        private KeyValueStore<String, String> store;

        Store(final String name) {
            this.name = name;
        }

        @Override
        public void init(final org.apache.kafka.streams.processor.api.ProcessorContext<String, String> context) {
            super.init(context);
            store = context.getStateStore(name);
        }

        @Override
        public void process(final Record<String, String> record) {
            final String before = store.get(record.key());
            if (record.value() == null) {
                store.delete(record.key());
            } else if (record.value().equals("absent")) {
                store.putIfAbsent(record.key(), "new");
            } else if (record.value().equals("many")) {
                store.putAll(Arrays.asList(KeyValue.pair(record.key(), "x"), KeyValue.pair(record.key() + "2", "y")));
            } else if (!record.value().equals("get")) {
                store.put(record.key(), record.value());
            }
            context().forward(record.withValue(before));
        }
    }

    /** Keeps what it reads: for global and read-only stores. */
    static final class Keep implements Processor<String, String, Void, Void> {
        private final String name;
        private KeyValueStore<String, String> store;

        Keep(final String name) {
            this.name = name;
        }

        @Override
        public void init(final org.apache.kafka.streams.processor.api.ProcessorContext<Void, Void> context) {
            store = context.getStateStore(name);
        }

        @Override
        public void process(final Record<String, String> record) {
            store.put(record.key(), record.value());
        }
    }

    static final class Lookup extends ContextualFixedKeyProcessor<String, String, String> {
        private final String name;
        private KeyValueStore<String, String> store;

        Lookup(final String name) {
            this.name = name;
        }

        @Override
        public void init(
            final org.apache.kafka.streams.processor.api.FixedKeyProcessorContext<String, String> context) {
            super.init(context);
            store = context.getStateStore(name);
        }

        @Override
        public void process(final FixedKeyRecord<String, String> record) {
            context().forward(record.withValue(record.value() + "/" + store.get(record.value())));
        }
    }

    /** Puts each record into a window store and a session store, at its own time. */
    static final class Windows extends ContextualProcessor<String, String, String, String> {
        private WindowStore<String, String> windows;
        private WindowStore<String, String> duplicates;
        private SessionStore<String, String> sessions;

        @Override
        public void init(final org.apache.kafka.streams.processor.api.ProcessorContext<String, String> context) {
            super.init(context);
            windows = context.getStateStore("windows");
            duplicates = context.getStateStore("duplicates");
            sessions = context.getStateStore("sessions");
        }

        @Override
        public void process(final Record<String, String> record) {
            windows.put(record.key(), record.value(), record.timestamp());
            if (record.value() != null) {
                duplicates.put(record.key(), record.value(), record.timestamp());
            }
            sessions.put(new Windowed<>(record.key(), new SessionWindow(record.timestamp() / 2, record.timestamp())),
                record.value());
        }
    }

    private static Case fetches(final boolean persistent) {
        final Case one = Case.papi(e -> new Topology()
            .addSource("source", STRING.deserializer(), STRING.deserializer(), "in")
            .addProcessor("windows", Windows::new, "source")
            .addStateStore(Stores.windowStoreBuilder(persistent
                ? Stores.persistentWindowStore("windows", ofMillis(100), ofMillis(10), false)
                : Stores.inMemoryWindowStore("windows", ofMillis(100), ofMillis(10), false), STRING, STRING), "windows")
            .addStateStore(Stores.windowStoreBuilder(persistent
                ? Stores.persistentWindowStore("duplicates", ofMillis(100), ofMillis(10), true)
                : Stores.inMemoryWindowStore("duplicates", ofMillis(100), ofMillis(10), true),
                STRING, STRING), "windows")
            .addStateStore(Stores.sessionStoreBuilder(persistent
                ? Stores.persistentSessionStore("sessions", ofMillis(100))
                : Stores.inMemorySessionStore("sessions", ofMillis(100)), STRING, STRING).withCachingEnabled(),
                "windows"));
        one.in("in", "b", "1", 10).in("in", "a", "2", 10).in("in", "aa", "3", 12).in("in", "a", "4", 10)
            .in("in", "a", "5", 30).in("in", "b", "6", 20).in("in", "a", null, 30).in("in", "c", "7", 25)
            .in("in", "a", "8", 26);
        for (final String store : List.of("windows", "duplicates")) {
            one.ask(store, "fetch_range", "a", 0, 100).ask(store, "backward_fetch_range", "a", 0, 100)
                .ask(store, "fetch_range", "a", 11, 26).ask(store, "fetch_keys", "a", "b", 0, 100)
                .ask(store, "backward_fetch_keys", "a", "b", 0, 100).ask(store, "fetch_keys", null, "aa", 0, 100)
                .ask(store, "fetch_keys", "aa", null, 0, 100).ask(store, "fetch_all", 10, 25)
                .ask(store, "backward_fetch_all", 10, 25).ask(store, "all").ask(store, "backward_all");
        }
        one.ask("windows", "fetch", "a", 10).ask("windows", "fetch", "a", 30);
        return one.ask("sessions", "fetch", "a").ask("sessions", "backward_fetch", "a")
            .ask("sessions", "fetch_keys", "a", "b").ask("sessions", "backward_fetch_keys", "a", "b")
            .ask("sessions", "fetch_keys", null, null).ask("sessions", "fetch_session", "a", 5, 10)
            .ask("sessions", "find_sessions", "a", 11, 13).ask("sessions", "backward_find_sessions", "a", 0, 100)
            .ask("sessions", "find_sessions_keys", "a", "b", 11, 12)
            .ask("sessions", "backward_find_sessions_keys", "a", "c", 5, 13);
    }

    static {
        ALL.put("transform_values_store", Case.dsl((b, e) -> {
            b.addStateStore(Topologies.store("seen"));
            table(b, "in").transformValues(() -> new Seen(e), "seen").toStream().to("out");
        }).in("in", "a", "x", 1).in("in", "a", null, 2).in("in", "b", null, 3).in("in", "b", "y", 4)
            .in("in", null, "z", 5).in("in", "a", "w", 1).ask("seen", "all"));
        ALL.put("transform_values_materialized", Case.dsl((b, e) -> {
            b.addStateStore(Topologies.store("seen"));
            table(b, "in").transformValues(() -> new Seen(e), Materialized.<String, String>as(
                Stores.persistentKeyValueStore("rows")).withKeySerde(STRING).withValueSerde(STRING), "seen")
                .filter((k, v) -> !v.startsWith("n")).toStream().to("out");
        }).in("in", "a", "x", 1).in("in", "a", null, 2).in("in", "a", null, 3).in("in", "b", "n", 4)
            .in("in", "b", "y", 3).in("in", "b", null, 6).ask("rows", "all").ask("seen", "all"));
        ALL.put("transform_values_store_of_lookup", Case.dsl((b, e) -> {
            b.addStateStore(Topologies.store("seen"));
            table(b, "left").transformValues(() -> new Seen(e), "seen")
                .join(table(b, "right"), Runs::join).toStream().to("out");
        }).in("left", "a", "x", 1));
        ALL.put("transform_values_looked_up", Case.dsl((b, e) -> {
            table(b, "left").transformValues(() -> new Stamp(e))
                .leftJoin(table(b, "right"), Runs::join).toStream().to("out");
        }).in("left", "a", "x", 1).in("right", "a", "r", 2).in("right", "a", null, 3).in("right", "b", "s", 4)
            .in("left", "b", "y", 5).in("left", "b", null, 6).in("right", "b", "t", 7));
        ALL.put("transform_values_grouped", Case.dsl((b, e) -> {
            b.addStateStore(Topologies.store("seen"));
            table(b, "in").transformValues(() -> new Seen(e), "seen")
                .groupBy((k, v) -> KeyValue.pair(v.substring(0, 1), v), Grouped.as("group"))
                .reduce(Runs::join, (total, old) -> total + "-" + old, Materialized.as("sums")).toStream().to("out");
        }).in("in", "a", "x", 1).in("in", "b", "x", 2).in("in", "a", "y", 3).in("in", "b", null, 4)
            .ask("sums", "all"));

        ALL.put("unlimited_count", Case.dsl((b, e) -> stream(b, "in").groupByKey()
            .windowedBy(UnlimitedWindows.of().startOn(Instant.ofEpochMilli(5)))
            .count(Materialized.as("counts")).toStream()
            .to("out", Produced.with(WindowedSerdes.timeWindowedSerdeFrom(String.class, Long.MAX_VALUE), LONG)))
            .in("in", "a", "x", 4).in("in", "a", "x", 5).in("in", "a", "x", 900000).in("in", "b", "x", 6)
            .in("in", "a", "x", 7).in("in", null, "x", 8).ask("counts", "fetch", "a", 5).ask("counts", "all"));
        ALL.put("numbers", Case.dsl((b, e) -> {
            final KStream<Long, Integer> numbers = b.stream("in", Consumed.with(LONG, INTEGER));
            numbers.mapValues(v -> v == null ? null : v / 4.0).to("halves", Produced.with(LONG, DOUBLE));
            numbers.groupByKey(Grouped.with(LONG, INTEGER)).aggregate(() -> 0.5, (k, v, a) -> a + v,
                Materialized.<Long, Double>as(Stores.persistentKeyValueStore("sums")).withKeySerde(LONG)
                    .withValueSerde(DOUBLE)).toStream().to("sums-out", Produced.with(LONG, DOUBLE));
            numbers.selectKey((k, v) -> v).groupByKey(Grouped.with("by-value", INTEGER, INTEGER))
                .count(Materialized.as("counts")).toStream().to("counts-out");
        }).in("in", 1L, 10, 1).in("in", -1L, 7, 2).in("in", 256L, -7, 3).in("in", 1L, 10, 4).in("in", 2L, null, 5)
            .in("in", Long.MIN_VALUE, Integer.MAX_VALUE, 6)
            .ask("sums", "all").ask("sums", "reverse_all").ask("sums", "range", 0L, 300L).ask("sums", "get", -1L));
        ALL.put("windowed_serdes", Case.dsl((b, e) -> {
            final KGroupedStream<Long, Integer> grouped =
                b.stream("in", Consumed.with(LONG, INTEGER)).groupByKey(Grouped.with(LONG, INTEGER));
            grouped.windowedBy(TUMBLING).count(Materialized.as("tumbling")).toStream()
                .to("tumbling-out", Produced.with(WindowedSerdes.timeWindowedSerdeFrom(Long.class, 10L), LONG));
            grouped.windowedBy(TUMBLING.advanceBy(ofMillis(5))).reduce(Integer::sum, Materialized.as("hopping"))
                .toStream().to("hopping-out");
            grouped.windowedBy(SESSIONS).count(Materialized.as("sessions")).toStream()
                .to("sessions-out", Produced.with(WindowedSerdes.sessionWindowedSerdeFrom(Long.class), LONG));
            grouped.windowedBy(SLIDING).reduce(Integer::sum, Materialized.as("sliding")).toStream().to("sliding-out");
        }).in("in", 1L, 10, 1).in("in", 1L, 20, 8).in("in", -5L, 1, 12).in("in", 1L, 5, 12).in("in", 1L, 2, 30)
            .in("in", 1L, 2, 3).in("in", 1L, 4, 29).ask("tumbling", "all").ask("hopping", "all")
            .ask("sliding", "all").ask("sessions", "fetch", 1L));
        ALL.put("windowed_keys_read_back", Case.dsl((b, e) -> {
            stream(b, "in").groupByKey().windowedBy(TUMBLING).count(Materialized.as("counts")).toStream()
                .repartition(Repartitioned.<Windowed<String>, Long>as("windows")
                    .withKeySerde(WindowedSerdes.timeWindowedSerdeFrom(String.class, 10L)).withValueSerde(LONG))
                .peek((k, v) -> e.add(k + " " + v))
                .map((k, v) -> KeyValue.pair(k.key() + k.window().start(), "" + v)).to("out");
            stream(b, "in").groupByKey().windowedBy(SESSIONS).reduce(Runs::join).toStream()
                .groupBy((k, v) -> k, Grouped.with("again", WindowedSerdes.sessionWindowedSerdeFrom(String.class),
                    STRING)).count().toStream().peek((k, v) -> e.add(k + " " + v))
                .to("sessions-out", Produced.with(WindowedSerdes.sessionWindowedSerdeFrom(String.class), LONG));
        }).in("in", "a", "x", 1).in("in", "a", "y", 8).in("in", "b", "z", 12));

        ALL.put("partitioner", Case.dsl((b, e) -> {
            stream(b, "in").repartition(Repartitioned.<String, String>streamPartitioner((topic, k, v, n) -> {
                e.add("repartition " + topic + " " + k + " " + v + " " + n);
                return Optional.of(Set.of(0));
            }).withName("spread").withKeySerde(STRING).withValueSerde(STRING))
                .to("out", Produced.<String, String>with(STRING, STRING).withStreamPartitioner((topic, k, v, n) -> {
                    e.add("sink " + topic + " " + k + " " + v + " " + n);
                    return Optional.empty();
                }));
        }).in("in", "a", "x", 1).in("in", null, "y", 2).in("in", "b", null, 3));
        ALL.put("topic_extractor", Case.dsl((b, e) -> {
            final TopicNameExtractor<String, String> byContext = (k, v, context) -> {
                e.add(context.topic() + " " + context.partition() + " " + context.offset() + " " + context.timestamp()
                    + " " + headers(context.headers()));
                return "out-" + context.topic() + "-" + context.offset();
            };
            stream(b, "a").merge(stream(b, "b")).flatMapValues(v -> Arrays.asList(v.split(" "))).to(
                new TopicNameExtractor<String, String>() {
                    @Override
                    public String extract(
                        final String key, final String value, final org.apache.kafka.streams.processor.RecordContext c) {
                        return byContext.extract(key, value, c);
                    }

                    @Override
                    public String toString() {
                        return "by_context";
                    }
                });
        }).in("a", "k", "x y", 5, "h", "1").in("b", "k", "z", 3).in("a", "k", "w", 1, "h", "1", "h", "2"));
        ALL.put("headers", Case.dsl((b, e) -> {
            final KStream<String, String> left = stream(b, "left");
            final KTable<String, String> right = b.table("right", Materialized.as("rows"));
            left.join(right, Runs::join).to("stream-table");
            left.leftJoin(stream(b, "other"), Runs::join, WITHIN).to("stream-stream");
            right.mapValues(v -> v + "!").suppress(Suppressed.<String>untilTimeLimit(
                ofMillis(5), BufferConfig.unbounded()).withName("wait")).toStream().to("suppressed");
            left.groupBy((k, v) -> v, Grouped.as("by-value")).count(Materialized.as("counts")).toStream().to("counted");
            right.groupBy((k, v) -> KeyValue.pair(v, k), Grouped.as("table-by-value"))
                .aggregate(() -> "", (k, v, a) -> a + v, (k, v, a) -> a.replace(v, ""), Materialized.as("groups"))
                .toStream().to("grouped");
        }).in("right", "a", "r", 1, "h", "r1").in("left", "a", "l", 2, "h", "l1").in("other", "a", "o", 3, "h", "o1")
            .in("right", "a", "s", 4, "h", "r2", "g", "r2").in("left", "b", "m", 6, "h", "l2")
            .in("right", "b", "t", 9).in("other", "c", "p", 40, "h", "o2").in("left", "c", "n", 41));
        ALL.put("punctuation", Case.dsl((b, e) -> {
            stream(b, "in").process(() -> new Ticking(e, "fast", 5, 2), Named.as("fast"))
                .process(() -> new Ticking(e, "slow", 10, 3), Named.as("slow"))
                .groupByKey().count(Materialized.as("counts")).toStream().to("out");
        }).in("in", "k", "x", 3).in("in", "k", "x", 4).advance(5).in("in", "k", "x", 12).advance(2).advance(13)
            .in("in", "k", "x", 40).advance(100).in("in", "k", "x", 41).in("in", "k", "x", 60).advance(10)
            .ask("counts", "all"));

        ALL.put("suppress_max_bytes", Case.dsl((b, e) -> table(b, "in").suppress(Suppressed.<String>untilTimeLimit(
            ofMillis(1000), BufferConfig.maxBytes(150).emitEarlyWhenFull()).withName("wait")).toStream().to("out"))
            .in("in", "a", "1", 1).in("in", "b", "22", 2).in("in", "c", "3", 3, "h", "x").in("in", "a", "longer", 4)
            .in("in", "d", "0123456789012345678901234567890123456789", 5).in("in", "a", null, 6).in("in", "e", "", 7)
            .in("in", "f", "6", 8));
        ALL.put("suppress_max_bytes_shut_down", Case.dsl((b, e) -> table(b, "in").suppress(
            Suppressed.<String>untilTimeLimit(ofMillis(1000), BufferConfig.maxBytes(150).shutDownWhenFull())
                .withName("wait")).toStream().to("out"))
            .in("in", "a", "1", 1).in("in", "b", "22", 2).in("in", "c", "3", 3).in("in", "d", "4", 4));
        ALL.put("suppress_windows", Case.dsl((b, e) -> {
            final KGroupedStream<String, String> grouped = stream(b, "in").groupByKey(Grouped.with(STRING, STRING));
            grouped.windowedBy(TUMBLING).count(Materialized.as("tumbling"))
                .suppress(Suppressed.untilWindowCloses(BufferConfig.unbounded()).withName("closed"))
                .toStream().to("tumbling-out", Produced.with(
                    WindowedSerdes.timeWindowedSerdeFrom(String.class, 10L), LONG));
            grouped.windowedBy(SESSIONS).reduce(Runs::join, Materialized.as("sessions"))
                .suppress(Suppressed.untilWindowCloses(BufferConfig.unbounded().withLoggingDisabled()))
                .toStream().to("sessions-out");
            grouped.windowedBy(SLIDING).reduce(Runs::join, Materialized.as("sliding"))
                .suppress(Suppressed.untilWindowCloses(BufferConfig.unbounded()).withName("slid"))
                .toStream().to("sliding-out");
        }).in("in", "a", "1", 1, "h", "1").in("in", "a", "2", 8, "h", "2").in("in", "b", "3", 14).in("in", "a", "4", 9)
            .in("in", "a", "5", 26).in("in", "b", "6", 60, "h", "6").in("in", "c", "7", 100));

        ALL.put("versioned", Case.dsl((b, e) -> {
            final KTable<String, String> rows = b.table("table", Consumed.with(STRING, STRING), Materialized.as(
                Stores.persistentVersionedKeyValueStore("versions", ofMillis(50), ofMillis(20))));
            rows.toStream().to("changes");
            stream(b, "stream").join(rows, Runs::join).to("joined");
            rows.mapValues(v -> v + "!").groupBy((k, v) -> KeyValue.pair("all", v), Grouped.as("group"))
                .reduce(Runs::join, (total, old) -> total + "-" + old, Materialized.as("sums")).toStream().to("sums-out");
        }).in("table", "a", "10", 10).in("table", "a", "30", 30).in("table", "a", "20", 20).in("stream", "a", "s25", 25)
            .in("stream", "a", "s5", 5).in("table", "a", null, 40).in("stream", "a", "s45", 45).in("table", "b", "b", 41)
            .in("table", "a", null, 25).in("stream", "a", "s27", 27).in("table", "a", "60", 60)
            .in("table", "c", "100", 100).in("table", "c", "late", 20).in("stream", "c", "s101", 101)
            .ask("versions", "get", "a").ask("versions", "get", "a", 65).ask("versions", "get", "a", 55)
            .ask("versions", "get", "a", 45).ask("versions", "get", "b", 99).ask("versions", "get", "c", 99)
            .ask("versions", "get", "c").ask("versions", "get", "b"));
        ALL.put("joined_with_grace", Case.dsl((b, e) -> {
            final KTable<String, String> rows = b.table("table", Materialized.as(
                Stores.persistentVersionedKeyValueStore("versions", ofMillis(100))));
            stream(b, "stream").leftJoin(rows, Runs::join,
                Joined.with(STRING, STRING, STRING, "join", ofMillis(10))).to("out");
        }).in("stream", "a", "1", 1, "h", "1").in("table", "a", "x", 5).in("stream", "a", "2", 8)
            .in("table", "a", "y", 7).in("stream", "b", "3", 12, "h", "3").in("stream", "a", "late", 1)
            .in("stream", "a", "4", 40).in("table", "b", "z", 41).in("stream", "b", "5", 60));

        ALL.put("lru_processor", Case.papi(e -> new Topology()
            .addSource("source", STRING.deserializer(), STRING.deserializer(), "in")
            .addProcessor("store", () -> new Store("lru"), "source")
            .addStateStore(Stores.keyValueStoreBuilder(Stores.lruMap("lru", 2), STRING, STRING), "store")
            .addSink("sink", "out", STRING.serializer(), STRING.serializer(), "store"))
            .in("in", "a", "1", 1).in("in", "b", "2", 2).in("in", "a", "get", 3).in("in", "c", "3", 4)
            .in("in", "b", "get", 5).in("in", "a", null, 6).in("in", "d", "4", 7).in("in", "e", "many", 8)
            .in("in", "d", "absent", 9).ask("lru", "get", "a").ask("lru", "get", "d").ask("lru", "get", "e2"));
        ALL.put("lru_table", Case.dsl((b, e) -> stream(b, "in").groupByKey().count(
            Materialized.<String, Long>as(Stores.lruMap("lru", 2)).withKeySerde(STRING)).toStream().to("out"))
            .in("in", "a", "x", 1).in("in", "b", "x", 2).in("in", "a", "x", 3).in("in", "c", "x", 4)
            .in("in", "b", "x", 5).in("in", "a", "x", 6));
        ALL.put("stores_in_memory", Case.papi(e -> new Topology()
            .addSource("source", STRING.deserializer(), STRING.deserializer(), "in")
            .addProcessor("store", () -> new Store("plain"), "source")
            .addStateStore(Stores.keyValueStoreBuilder(Stores.inMemoryKeyValueStore("plain"), STRING, STRING), "store")
            .addProcessor("quiet", () -> new Store("silent"), "source")
            .addStateStore(Stores.keyValueStoreBuilder(
                Stores.persistentKeyValueStore("silent"), STRING, STRING).withLoggingDisabled(), "quiet")
            .addProcessor("cached", () -> new Store("buffered"), "source")
            .addStateStore(Stores.keyValueStoreBuilder(
                Stores.persistentKeyValueStore("buffered"), STRING, STRING).withCachingEnabled(), "cached")
            .addSink("sink", "out", STRING.serializer(), STRING.serializer(), "store", "quiet", "cached"))
            .in("in", "b", "1", 1).in("in", "a", "2", 2).in("in", "a", "absent", 3).in("in", "c", "absent", 4)
            .in("in", "aa", "many", 5).in("in", "b", null, 6).in("in", "zz", null, 7).in("in", "a", "get", 8)
            .ask("plain", "all").ask("plain", "range", "a", "b").ask("plain", "reverse_range", "aa", null)
            .ask("plain", "prefix_scan", "a").ask("silent", "prefix_scan", "a").ask("silent", "all")
            .ask("buffered", "all").ask("buffered", "reverse_all").ask("buffered", "range", null, "aa"));
        ALL.put("fetches_in_memory", fetches(false));
        ALL.put("fetches_persistent", fetches(true));

        ALL.put("deserialization_continues", Case.dsl((b, e) -> {
            final KStream<String, Integer> numbers = b.stream("in", Consumed.with(STRING, INTEGER));
            numbers.to("out", Produced.with(STRING, INTEGER));
            b.table("table", Consumed.with(LONG, STRING), Materialized.as("rows"));
        }).config(StreamsConfig.DESERIALIZATION_EXCEPTION_HANDLER_CLASS_CONFIG,
            LogAndContinueExceptionHandler.class.getName())
            .in("in", "a", 1, 1).in("in", "b", "bad", 50).in("in", "c", 3, 3).in("table", 1L, "x", 4)
            .in("table", "bad", "y", 5).in("table", "bad", null, 6).in("in", "d", null, 7).ask("rows", "all"));
        ALL.put("deserialization_fails", Case.dsl((b, e) ->
            b.stream("in", Consumed.with(STRING, INTEGER)).to("out", Produced.with(STRING, INTEGER)))
            .in("in", "a", 1, 1).in("in", "b", "bad", 2));
        ALL.put("processing_continues", Case.dsl((b, e) -> {
            final KStream<String, String> one = stream(b, "in").mapValues(v -> v);
            one.mapValues(v -> fail("first", v)).to("first");
            one.flatMapValues(v -> Arrays.asList(v, v + "!")).mapValues(v -> fail("second", v))
                .groupByKey().count(Materialized.as("counts")).toStream().to("second");
            one.peek((k, v) -> e.add(v)).to("third");
            one.groupBy((k, v) -> fail("key", v), Grouped.as("group")).reduce((a, v) -> fail("reduce", a + v))
                .toStream().to("fourth");
        }).config(StreamsConfig.PROCESSING_EXCEPTION_HANDLER_CLASS_CONFIG,
            LogAndContinueProcessingExceptionHandler.class.getName())
            .in("in", "a", "x", 1).in("in", "a", "first", 2).in("in", "a", "second", 3).in("in", "a", "key", 4)
            .in("in", "a", "reduce", 5).in("in", "a", "reduce", 6).in("in", "a", "x", 7).ask("counts", "all"));
        ALL.put("processing_fails", Case.dsl((b, e) -> {
            final KStream<String, String> one = stream(b, "in");
            one.to("before");
            one.mapValues(v -> fail("bad", v)).to("out");
        }).in("in", "a", "x", 1).in("in", "a", "bad", 2));

        ALL.put("foreign_key_longs", Case.dsl((b, e) -> {
            final KTable<Long, String> left =
                b.table("left", Consumed.with(LONG, STRING), Materialized.as("left-store"));
            final KTable<Long, String> right =
                b.table("right", Consumed.with(LONG, STRING), Materialized.as("right-store"));
            left.join(right, Runs::number, Runs::join, TableJoined.as("inner"),
                Materialized.<Long, String>as(Stores.persistentKeyValueStore("inner-store")).withKeySerde(LONG)
                    .withValueSerde(STRING)).toStream().to("inner-out", Produced.with(LONG, STRING));
            left.leftJoin(right, Runs::number, Runs::join, TableJoined.as("left"),
                Materialized.with(LONG, STRING)).toStream().to("left-out", Produced.with(LONG, STRING));
        }).in("left", 1L, "7 a", 1, "h", "1").in("right", 7L, "x", 2, "h", "2").in("left", 2L, "7 b", 3)
            .in("right", 7L, "y", 5).in("left", 1L, "-8 a", 4).in("right", -8L, "z", 6).in("right", 7L, null, 7)
            .in("left", 2L, null, 8).in("left", 3L, "none", 9).in("left", 3L, "7 c", 10).in("left", 3L, "none", 11)
            .in("right", null, "w", 12).in("left", null, "7 w", 13).in("left", 4L, "7 same", 14)
            .in("left", 4L, "7 same", 15).ask("inner-store", "all"));
        ALL.put("foreign_key_strings", Case.dsl((b, e) -> table(b, "left").leftJoin(
            table(b, "right"), v -> v.substring(0, 1), Runs::join).toStream().to("out"))
            .in("left", "k1", "a1", 1).in("left", "k2", "a2", 2).in("right", "a", "x", 3).in("right", "a", "y", 2)
            .in("left", "k1", "b1", 5).in("left", "k1", null, 6).in("right", "a", null, 7));
        ALL.put("table_group_bytes", Case.dsl((b, e) -> b.table("in", Consumed.with(STRING, LONG)).groupBy(
            (k, v) -> KeyValue.pair(v % 2, v), Grouped.with("parity", LONG, LONG))
            .reduce(Long::sum, (total, old) -> total - old, Materialized.as("sums")).toStream().to("out"))
            .in("in", "a", 1L, 1, "h", "1").in("in", "b", 2L, 2).in("in", "a", 3L, 3).in("in", "a", 4L, 4)
            .in("in", "b", null, 5).in("in", "c", null, 6).in("in", "a", 6L, 2).ask("sums", "all"));

        ALL.put("count_changelog", Case.dsl((b, e) -> {
            final KStream<String, String> words = stream(b, "in").flatMapValues(v -> Arrays.asList(v.split(" ")));
            words.groupByKey().count(Materialized.as("counts")).toStream().to("counts-out");
            words.groupByKey().count(Materialized.<String, Long, KeyValueStore<
                org.apache.kafka.common.utils.Bytes, byte[]>>as("uncached").withCachingDisabled())
                .toStream().to("uncached-out");
            words.groupByKey().count(Materialized.<String, Long, KeyValueStore<
                org.apache.kafka.common.utils.Bytes, byte[]>>as("unlogged").withLoggingDisabled())
                .toStream().to("unlogged-out");
            words.groupBy((k, v) -> v, Grouped.as("words")).count(Materialized.as("words")).toStream().to("words-out");
        }).in("in", "a", "x y x", 1, "h", "1").in("in", "b", "z", 2).in("in", "a", "x x", 1).ask("counts", "all"));
        ALL.put("window_changelog", Case.dsl((b, e) -> {
            final KGroupedStream<String, String> words =
                stream(b, "in").flatMapValues(v -> Arrays.asList(v.split(" "))).groupByKey(Grouped.with(STRING, STRING));
            words.windowedBy(TUMBLING.advanceBy(ofMillis(5))).count(Materialized.as("hopping"))
                .toStream().to("hopping-out");
            words.windowedBy(SESSIONS).reduce(Runs::join, Materialized.as("sessions")).toStream().to("sessions-out");
            words.windowedBy(SLIDING).reduce(Runs::join, Materialized.as("sliding")).toStream().to("sliding-out");
        }).in("in", "a", "x y", 8).in("in", "b", "z", 2).in("in", "a", "v w", 17).in("in", "a", "u", 9)
            .in("in", "a", "t", 40).in("in", "a", "late", 1));
        ALL.put("window_close_changelog", Case.dsl((b, e) -> {
            final KGroupedStream<String, String> words =
                stream(b, "in").flatMapValues(v -> Arrays.asList(v.split(" "))).groupByKey(Grouped.with(STRING, STRING));
            words.windowedBy(TUMBLING).emitStrategy(EmitStrategy.onWindowClose()).count(Materialized.as("tumbling"))
                .toStream().to("tumbling-out");
            words.windowedBy(SESSIONS).emitStrategy(EmitStrategy.onWindowClose())
                .reduce(Runs::join, Materialized.as("sessions")).toStream().to("sessions-out");
            words.windowedBy(SLIDING).emitStrategy(EmitStrategy.onWindowClose())
                .reduce(Runs::join, Materialized.as("sliding")).toStream().to("sliding-out");
        }).in("in", "a", "x y", 1, "h", "1").in("in", "b", "z", 2).in("in", "a", "v", 12).in("in", "c", "u", 17)
            .in("in", "c", "t", 30, "h", "2").in("in", "d", "s", 60).in("in", "d", "late", 1));
        ALL.put("join_changelog", Case.dsl((b, e) -> {
            final KStream<String, String> left = stream(b, "left");
            final KStream<String, String> right = stream(b, "right");
            left.join(right, Runs::join, WITHIN, StreamJoined.<String, String, String>as("inner")).to("inner-out");
            left.outerJoin(right, Runs::join, WITHIN, StreamJoined.<String, String, String>as("outer")).to("outer-out");
            left.leftJoin(right, Runs::join, WITHIN, StreamJoined.<String, String, String>with(
                Stores.inMemoryWindowStore("mine", ofMillis(25), ofMillis(20), true),
                Stores.inMemoryWindowStore("yours", ofMillis(25), ofMillis(20), true))).to("left-out");
        }).in("left", "a", "1", 1).in("left", "a", "2", 1).in("right", "a", "3", 5, "h", "3").in("right", "b", "4", 6)
            .in("left", null, "5", 8).in("right", "d", "6", 30, "h", "6").in("left", "e", "7", 60)
            .in("right", "e", "8", 61));
        ALL.put("join_null_value", Case.dsl((b, e) -> stream(b, "left").join(stream(b, "right"), Runs::join, WITHIN,
            StreamJoined.<String, String, String>as("stores")).to("out"))
            .in("left", "a", null, 1).in("left", "a", "1", 2).in("right", "a", null, 3).in("right", "a", "2", 4));
        ALL.put("self_join", Case.dsl((b, e) -> {
            final KStream<String, String> one = stream(b, "in");
            one.join(one, Runs::join, WITHIN, StreamJoined.<String, String, String>as("self")).to("out");
        }).in("in", "a", "1", 1, "h", "1").in("in", "a", "2", 5, "h", "2").in("in", "b", "3", 6).in("in", "a", "4", 3)
            .in("in", "a", "5", 40));
        ALL.put("tables_joined", Case.dsl((b, e) -> {
            final KTable<String, String> left = table(b, "left");
            final KTable<String, String> right = table(b, "right").filter((k, v) -> !v.startsWith("n"));
            left.join(right, Runs::join, Materialized.as("inner")).toStream().to("inner-out");
            left.outerJoin(right, Runs::join).toStream().to("outer-out");
        }).in("left", "a", "1", 1, "h", "1").in("right", "a", "x", 2, "h", "2").in("right", "a", "n", 3)
            .in("right", "b", "y", 4).in("left", "a", null, 5).in("left", "a", null, 6).in("right", "b", null, 4)
            .ask("inner", "all"));
        ALL.put("cogroup", Case.dsl((b, e) -> {
            final KGroupedStream<String, String> one = stream(b, "a").groupBy((k, v) -> v, Grouped.with("one", STRING, STRING));
            final KGroupedStream<String, String> two = stream(b, "b").groupByKey();
            one.<String>cogroup((k, v, a) -> a + v).cogroup(two, (k, v, a) -> a + v.toUpperCase())
                .aggregate(() -> "", Materialized.as("groups")).toStream().to("out");
            stream(b, "a").groupBy((k, v) -> v, Grouped.as("again")).<String>cogroup((k, v, a) -> a + v)
                .windowedBy(TUMBLING)
                .aggregate(() -> "-", Materialized.as("windows")).toStream().to("windows-out",
                    Produced.with(WindowedSerdes.timeWindowedSerdeFrom(String.class, 10L), STRING));
        }).in("a", "k", "x", 1, "h", "1").in("b", "x", "y", 2).in("b", "z", null, 3).in("a", "k", "x", 12)
            .in("a", null, "x", 3).in("a", "k", null, 4).ask("groups", "all").ask("windows", "all"));
        ALL.put("global_store", Case.dsl((b, e) -> {
            b.<String, String>addGlobalStore(Topologies.store("facts"), "facts", Consumed.with(STRING, STRING),
                () -> new Keep("facts"));
            final GlobalKTable<String, String> names = b.globalTable("names", Materialized.as("names"));
            stream(b, "in").processValues(() -> new Lookup("facts"))
                .leftJoin(names, (k, v) -> k, Runs::join).to("out");
        }).in("in", "a", "x", 1).in("facts", "x", "fact", 90, "h", "1").in("names", "a", "Ada", 2)
            .in("in", "a", "x", 3, "h", "2").in("facts", "x", null, 4).in("names", null, "nobody", 5)
            .in("names", "a", null, 6).in("in", "a", "x", 4).ask("facts", "all").ask("names", "all"));
        ALL.put("read_only_store", Case.papi(e -> new Topology()
            .addReadOnlyStateStore(Topologies.store("facts").withLoggingDisabled(), "facts-source",
                STRING.deserializer(), STRING.deserializer(), "facts", "facts-update", () -> new Keep("facts"))
            .addSource("source", STRING.deserializer(), STRING.deserializer(), "in")
            .addProcessor("store", () -> new Store("facts"), "source")
            .connectProcessorAndStateStores("store", "facts")
            .addSink("sink", "out", STRING.serializer(), STRING.serializer(), "store"))
            .in("facts", "a", "1", 1).in("in", "a", "get", 2).in("facts", "a", null, 3).in("in", "a", "get", 4)
            .ask("facts", "all"));
        ALL.put("tables_and_optimization", Case.dsl((b, e) -> {
            final KTable<String, String> rows = b.table("table", Materialized.as("rows"));
            final KStream<String, String> one = stream(b, "in").selectKey((k, v) -> v);
            one.groupByKey().count(Materialized.as("counts")).toStream().mapValues(v -> "" + v)
                .join(rows, Runs::join).to("out-1");
            one.mapValues(v -> v + "!").groupByKey().reduce(Runs::join).toStream().to("out-2");
            one.toTable(Materialized.as("latest")).leftJoin(rows, Runs::join).toStream().to("out-3");
        }).in("table", "x", "row", 1, "h", "1").in("in", "k", "x", 2, "h", "2").in("in", "k", "y", 3)
            .in("table", "x", null, 4).in("in", "k", "x", 3).ask("rows", "all").ask("counts", "all")
            .ask("latest", "all"));
        ALL.put("split_and_merge", Case.dsl((b, e) -> {
            final Map<String, KStream<String, String>> branches = stream(b, "in").split(Named.as("s-"))
                .branch((k, v) -> v == null, Branched.as("null"))
                .branch((k, v) -> v.startsWith("a"), Branched.withConsumer(s -> s.to("a")))
                .branch((k, v) -> v.startsWith("b"), Branched.withFunction(s -> s.mapValues(v -> v + "!"), "b"))
                .defaultBranch();
            e.add(new TreeMap<>(branches).keySet().toString());
            branches.get("s-null").merge(branches.get("s-b")).to("merged");
            branches.get("s-0").repartition(Repartitioned.as("rest")).to("rest");
        }).in("in", "k", null, 1).in("in", "k", "ab", 2).in("in", "k", "ba", 3).in("in", null, "c", 4, "h", "1"));
        ALL.put("pattern_source", Case.dsl((b, e) -> {
            final KStream<String, String> all = b.stream(Pattern.compile("in-[0-9]+"));
            all.groupByKey().count(Materialized.as("counts")).toStream().to("out");
        }).in("in-1", "a", "x", 1).in("in-22", "a", "y", 2).ask("counts", "all"));
        ALL.put("table_without_store", Case.dsl((b, e) -> {
            final KTable<String, String> rows = table(b, "in");
            rows.filter((k, v) -> v.length() < 3).mapValues(v -> v + "!").toStream().to("out");
            rows.toStream().toTable(Materialized.<String, String>as(Stores.inMemoryKeyValueStore("copy")))
                .toStream().to("copy-out");
        }).in("in", "a", "x", 5).in("in", "a", "long", 6).in("in", "a", null, 7).in("in", "a", "late", 1)
            .in("in", null, "x", 8).ask("copy", "all"));
        MoreRuns.add(ALL);
    }

    private static Long number(final String value) {
        return value.equals("none") ? null : Long.parseLong(value.substring(0, value.indexOf(' ')));
    }

    private static String fail(final String bad, final String value) {
        if (value.startsWith(bad)) {
            throw new IllegalStateException(bad);
        }
        return value;
    }

    private static String headers(final org.apache.kafka.common.header.Headers headers) {
        final StringBuilder shown = new StringBuilder();
        for (final Header header : headers) {
            shown.append(header.key()).append("=").append(Text.show(header.value())).append(";");
        }
        return shown.toString();
    }
}

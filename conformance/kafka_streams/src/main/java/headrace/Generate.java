package headrace;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Properties;
import java.util.TreeMap;
import java.util.TreeSet;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.header.internals.RecordHeaders;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.Topology;
import org.apache.kafka.streams.TopologyConfig;
import org.apache.kafka.streams.TopologyTestDriver;
import org.apache.kafka.streams.test.TestRecord;

/** Builds every topology with Kafka Streams, runs the scripts on its test driver and writes what came out. */
public final class Generate {
    private static final String[][] VARIANTS = {
        {"plain", "0", "none"}, {"cached", "10485760", "none"}, {"optimized", "0", "all"}};

    private Generate() { }

    public static void main(final String[] args) throws IOException {
        final Map<String, Object> described = new TreeMap<>();
        Topologies.ALL.forEach((name, build) -> described.put(name, describe(build, false)));
        final Map<String, Object> named = new TreeMap<>();
        Topologies.EXPLICIT.forEach((name, build) -> named.put(name, describe(build, true)));
        final Map<String, Object> errors = new TreeMap<>();
        BuildErrors.ALL.forEach((name, build) -> errors.put(name, error(build)));
        final Map<String, Object> runs = new TreeMap<>();
        Runs.ALL.forEach((name, one) -> runs.put(name, answers(one)));
        final StringBuilder json = new StringBuilder("{\n");
        section(json, "build_errors", errors);
        json.append(",\n");
        section(json, "describe", described);
        json.append(",\n");
        section(json, "explicit_names", named);
        json.append(",\n");
        section(json, "runs", runs);
        json.append("\n}\n");
        Files.writeString(Path.of(args[0]), json);
        System.out.println(errors.size() + " calls, " + described.size() + " descriptions, " + named.size() + " with explicit names, "
            + runs.size() + " runs");
    }

    /** One line per case keeps the diff readable. */
    private static void section(final StringBuilder json, final String name, final Map<String, Object> content) {
        final ObjectMapper mapper = new ObjectMapper();
        json.append("\"").append(name).append("\": {");
        String comma = "\n";
        try {
            for (final Map.Entry<String, Object> entry : content.entrySet()) {
                json.append(comma).append("\"").append(entry.getKey()).append("\": ");
                json.append(mapper.writeValueAsString(entry.getValue()));
                comma = ",\n";
            }
        } catch (final JsonProcessingException error) {
            throw new IllegalStateException(error);
        }
        json.append("\n}");
    }

    private static Properties properties(final String cacheBytes, final String optimization) {
        final Properties settings = new Properties();
        settings.put(StreamsConfig.APPLICATION_ID_CONFIG, "app");
        settings.put(StreamsConfig.BOOTSTRAP_SERVERS_CONFIG, "none:9092");
        settings.put(StreamsConfig.DEFAULT_KEY_SERDE_CLASS_CONFIG, Serdes.StringSerde.class);
        settings.put(StreamsConfig.DEFAULT_VALUE_SERDE_CLASS_CONFIG, Serdes.StringSerde.class);
        settings.put(StreamsConfig.STATESTORE_CACHE_MAX_BYTES_CONFIG, cacheBytes);
        settings.put(StreamsConfig.TOPOLOGY_OPTIMIZATION_CONFIG, optimization);
        settings.put(StreamsConfig.InternalConfig.EMIT_INTERVAL_MS_KSTREAMS_OUTER_JOIN_SPURIOUS_RESULTS_FIX, 0L);
        settings.put(StreamsConfig.InternalConfig.EMIT_INTERVAL_MS_KSTREAMS_WINDOWED_AGGREGATION, 0L);
        return settings;
    }

    private static Map<String, Object> describe(final Case.Build build, final boolean explicit) {
        final Map<String, Object> result = new LinkedHashMap<>();
        for (final String optimization : new String[] {"none", "all"}) {
            final Properties settings = properties("0", optimization);
            settings.put(StreamsConfig.ENSURE_EXPLICIT_INTERNAL_RESOURCE_NAMING_CONFIG, explicit);
            String text;
            try {
                final StreamsBuilder builder = new StreamsBuilder(new TopologyConfig(new StreamsConfig(settings)));
                build.add(builder, new ArrayList<>());
                text = builder.build(settings).describe().toString().stripTrailing();
            } catch (final RuntimeException error) {
                text = error.getClass().getSimpleName() + ": " + error.getMessage();
            }
            if (!text.equals(result.get("none"))) {
                result.put(optimization, text);
            }
        }
        return result;
    }

    /** The class of the exception, or null: the calls are right. */
    private static String error(final Case.Build build) {
        final Properties settings = properties("0", "none");
        try {
            final StreamsBuilder builder = new StreamsBuilder(new TopologyConfig(new StreamsConfig(settings)));
            build.add(builder, new ArrayList<>());
            builder.build(settings).describe();
            return null;
        } catch (final RuntimeException error) {
            return error.getClass().getSimpleName();
        }
    }

    private static Map<String, Object> answers(final Case one) {
        final Map<String, Object> result = new LinkedHashMap<>();
        result.put("config", one.config);
        result.put("steps", one.steps);
        result.put("queries", one.queries);
        Map<String, Object> plain = null;
        for (final String[] variant : VARIANTS) {
            if (one.build == null && variant[2].equals("all")) {
                continue;
            }
            final Map<String, Object> run = run(one, properties(variant[1], variant[2]));
            if (plain == null) {
                plain = run;
                result.put(variant[0], run);
            } else {
                final Map<String, Object> other = new LinkedHashMap<>();
                for (final Map.Entry<String, Object> entry : run.entrySet()) {
                    if (!Objects.equals(entry.getValue(), plain.get(entry.getKey()))) {
                        other.put(entry.getKey(), entry.getValue());
                    }
                }
                result.put(variant[0], other);
            }
        }
        return result;
    }

    private static Map<String, Object> run(final Case one, final Properties settings) {
        settings.putAll(one.config);
        // A driver that failed to start keeps its directory locked.
        settings.put(StreamsConfig.STATE_DIR_CONFIG, stateDirectory());
        final Map<String, Object> result = new LinkedHashMap<>();
        final List<String> effects = new ArrayList<>();
        final Topology topology;
        if (one.build == null) {
            topology = one.topology.apply(effects);
        } else {
            final StreamsBuilder builder = new StreamsBuilder(new TopologyConfig(new StreamsConfig(settings)));
            one.build.add(builder, effects);
            topology = builder.build(settings);
        }
        result.put("describe", topology.describe().toString().stripTrailing());
        try (TopologyTestDriver driver = new TopologyTestDriver(topology, settings, Instant.EPOCH)) {
            final List<Object> steps = new ArrayList<>();
            final List<Object> seen = new ArrayList<>();
            // What the start itself wrote and noted.
            steps.add(outputs(driver));
            seen.add(List.copyOf(effects));
            effects.clear();
            boolean failed = false;
            for (final List<Object> step : one.steps) {
                try {
                    apply(driver, step);
                    steps.add(outputs(driver));
                } catch (final RuntimeException error) {
                    steps.add(failure(error));
                    failed = true;
                }
                seen.add(List.copyOf(effects));
                effects.clear();
                if (failed) {
                    break;
                }
            }
            result.put("outputs", steps);
            result.put("effects", seen);
            if (!failed) {
                final List<Object> answers = new ArrayList<>();
                for (final List<Object> query : one.queries) {
                    @SuppressWarnings("unchecked")
                    final List<Object> arguments = (List<Object>) query.get(2);
                    answers.add(Queries.answer(
                        driver.getStateStore((String) query.get(0)), (String) query.get(1), arguments));
                }
                result.put("answers", answers);
                result.put("stores", new TreeSet<>(driver.getAllStateStores().keySet()));
                result.put("produced", new TreeSet<>(driver.producedTopicNames()));
                result.put("dropped", driver.metrics().entrySet().stream()
                    .filter(metric -> metric.getKey().name().equals("dropped-records-total"))
                    .mapToLong(metric -> ((Double) metric.getValue().metricValue()).longValue()).sum());
            }
        } catch (final RuntimeException error) {
            // It failed when it started; one that failed later does not close in peace either.
            result.putIfAbsent("outputs", List.of(failure(error)));
        }
        return result;
    }

    private static String stateDirectory() {
        try {
            final Path directory = Files.createTempDirectory("headrace-answers");
            directory.toFile().deleteOnExit();
            return directory.toString();
        } catch (final IOException error) {
            throw new IllegalStateException(error);
        }
    }

    private static List<String> failure(final Throwable error) {
        Throwable cause = error;
        while (cause.getCause() != null) {
            cause = cause.getCause();
        }
        return List.of(error.getClass().getSimpleName(), cause.getClass().getSimpleName());
    }

    private static void apply(final TopologyTestDriver driver, final List<Object> step) {
        if (step.size() == 1) {
            driver.advanceWallClockTime(Duration.ofMillis((Long) step.get(0)));
            return;
        }
        final RecordHeaders headers = new RecordHeaders();
        if (step.size() > 4) {
            for (final Object pair : (List<?>) step.get(4)) {
                headers.add((String) ((List<?>) pair).get(0), Text.bytes(((List<?>) pair).get(1)));
            }
        }
        driver.createInputTopic((String) step.get(0), new ByteArraySerializer(), new ByteArraySerializer()).pipeInput(
            new TestRecord<>(read(step.get(1)), read(step.get(2)), headers, (Long) step.get(3)));
    }

    private static byte[] read(final Object shown) {
        if (shown == null) {
            return null;
        }
        final String text = (String) shown;
        return text.startsWith("0x")
            ? HexFormat.of().parseHex(text.substring(2))
            : text.getBytes(StandardCharsets.ISO_8859_1);
    }

    private static Map<String, Object> outputs(final TopologyTestDriver driver) {
        final Map<String, Object> result = new TreeMap<>();
        for (final String topic : driver.producedTopicNames()) {
            final List<Object> records = new ArrayList<>();
            for (final TestRecord<byte[], byte[]> record : driver
                .createOutputTopic(topic, new ByteArrayDeserializer(), new ByteArrayDeserializer())
                .readRecordsToList()) {
                final List<Object> row = new ArrayList<>();
                row.add(Text.show(record.key()));
                row.add(Text.show(record.value()));
                row.add(record.timestamp());
                final List<List<String>> headers = new ArrayList<>();
                for (final Header header : record.headers()) {
                    headers.add(List.of(header.key(), Text.show(header.value())));
                }
                if (!headers.isEmpty()) {
                    row.add(headers);
                }
                records.add(row);
            }
            if (!records.isEmpty()) {
                result.put(topic, records);
            }
        }
        return result;
    }
}

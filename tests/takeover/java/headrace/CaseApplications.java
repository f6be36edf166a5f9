package headrace;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.Topology;
import org.apache.kafka.streams.errors.StreamsUncaughtExceptionHandler.StreamThreadExceptionResponse;

/**
 * Kafka Streams applications in one process, started and closed by lines of JSON on its input.
 *
 * <p>Answers are lines on its output: what happened, the application, and more: RUNNING, CLOSED, FAILED, DESCRIBED.
 */
public final class CaseApplications {
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final Map<String, KafkaStreams> RUNNING = new ConcurrentHashMap<>();

    private CaseApplications() { }

    public static void main(String[] arguments) throws Exception {
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            JsonNode order = JSON.readTree(line);
            String name = order.path("name").asText();
            switch (order.get("do").asText()) {
                case "start" -> start(name, order);
                case "close" -> {
                    List<Thread> closing = new ArrayList<>();
                    for (JsonNode each : order.get("names")) {
                        Thread thread = new Thread(() -> close(each.asText()));
                        thread.start();
                        closing.add(thread);
                    }
                    for (Thread thread : closing) {
                        thread.join();
                    }
                }
                default -> throw new IllegalArgumentException(line);
            }
        }
        System.exit(0);
    }

    private static void start(String name, JsonNode order) {
        Properties properties = new Properties();
        order.get("properties").fields().forEachRemaining(each -> properties.put(each.getKey(), each.getValue().asText()));
        try {
            Topology topology = CaseTopology.build(order.get("nodes"), properties);
            say("DESCRIBED", name, topology.describe().toString());
            KafkaStreams streams = new KafkaStreams(topology, properties);
            streams.setStateListener((now, before) -> {
                if (now == KafkaStreams.State.RUNNING) {
                    say("RUNNING", name, "");
                }
            });
            streams.setUncaughtExceptionHandler(error -> {
                say("FAILED", name, error.toString() + " / " + error.getCause());
                return StreamThreadExceptionResponse.SHUTDOWN_CLIENT;
            });
            RUNNING.put(name, streams);
            streams.start();
        } catch (RuntimeException error) {
            say("FAILED", name, error.toString());
        }
    }

    private static void close(String name) {
        RUNNING.remove(name).close(Duration.ofSeconds(30));
        say("CLOSED", name, "");
    }

    private static synchronized void say(String what, String name, String more) {
        System.out.println(what + "\t" + name + "\t" + more.replace("\n", "\\n"));
        System.out.flush();
    }
}

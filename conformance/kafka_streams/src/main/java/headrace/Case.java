package headrace;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.function.Function;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.Topology;

/** A topology, what is piped into it, and what is asked of its stores afterwards. */
final class Case {
    interface Build {
        void add(StreamsBuilder builder, List<String> effects);
    }

    final Build build;
    final Function<List<String>, Topology> topology;
    final Map<String, Object> config = new LinkedHashMap<>();
    final List<List<Object>> steps = new ArrayList<>();
    final List<List<Object>> queries = new ArrayList<>();

    private Case(final Build build, final Function<List<String>, Topology> topology) {
        this.build = build;
        this.topology = topology;
    }

    static Case dsl(final Build build) {
        return new Case(build, null);
    }

    static Case papi(final Function<List<String>, Topology> topology) {
        return new Case(null, topology);
    }

    Case config(final String key, final Object value) {
        config.put(key, value);
        return this;
    }

    /** Pipes a record; headers are names and values in turn. */
    Case in(final String topic, final Object key, final Object value, final long ts, final String... headers) {
        final List<Object> step = new ArrayList<>(
            Arrays.asList(topic, Text.show(Text.bytes(key)), Text.show(Text.bytes(value)), ts));
        if (headers.length > 0) {
            final List<List<String>> pairs = new ArrayList<>();
            for (int i = 0; i < headers.length; i += 2) {
                pairs.add(List.of(headers[i], headers[i + 1]));
            }
            step.add(pairs);
        }
        steps.add(step);
        return this;
    }

    Case advance(final long ms) {
        steps.add(new ArrayList<>(List.of(ms)));
        return this;
    }

    Case ask(final String store, final String call, final Object... arguments) {
        queries.add(Arrays.asList(store, call, Arrays.asList(arguments)));
        return this;
    }
}

package headrace;

import com.fasterxml.jackson.annotation.JsonIgnoreProperties;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.ObjectReader;
import com.fasterxml.jackson.databind.ObjectWriter;
import java.io.FileInputStream;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.time.Duration;
import java.util.Properties;
import org.apache.kafka.common.serialization.Serde;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.errors.StreamsUncaughtExceptionHandler.StreamThreadExceptionResponse;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.kstream.Grouped;
import org.apache.kafka.streams.kstream.JoinWindows;
import org.apache.kafka.streams.kstream.Joined;
import org.apache.kafka.streams.kstream.KStream;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.kstream.Produced;
import org.apache.kafka.streams.kstream.StreamJoined;
import org.apache.kafka.streams.kstream.TimeWindows;
import org.apache.kafka.streams.kstream.WindowedSerdes;

/** The programs of the engine's benchmark on Kafka Streams: what {@code engine_programs.py} says, in Java. */
public final class Programs {

    public static final class Purchase {
        public long id;
        public double amount;
        public String item;
        public String card;
        public int quantity;
        public long at;
    }

    @JsonIgnoreProperties(ignoreUnknown = true)
    public static final class Sale {
        public double amount;
        public String item;
    }

    @JsonIgnoreProperties(ignoreUnknown = true)
    public static final class Bought {
        public long id;
    }

    @JsonIgnoreProperties(ignoreUnknown = true)
    public static final class Payment {
        public long purchase;
    }

    @JsonIgnoreProperties(ignoreUnknown = true)
    public static final class Customer {
        public int region;
    }

    public record Placed(long id, int region) { }

    public record Paid(long id, long purchase) { }

    private static final ObjectMapper JSON = new ObjectMapper();
    private static final Serde<String> STRING = Serdes.String();
    private static final Serde<Long> LONG = Serdes.Long();
    private static final Serde<Sale> SALE = json(Sale.class);
    private static final Duration WINDOW = Duration.ofMillis(60_000);
    private static final Duration GRACE = Duration.ofMillis(10_000);
    private static final Duration JOIN = Duration.ofMillis(1_000);
    private static final Duration LONG_JOIN = Duration.ofMillis(10_000);

    private static <T> Serde<T> json(final Class<T> type) {
        final ObjectReader reader = JSON.readerFor(type);
        final ObjectWriter writer = JSON.writerFor(type);
        return Serdes.serdeFrom(
            (topic, value) -> {
                try {
                    return value == null ? null : writer.writeValueAsBytes(value);
                } catch (final IOException e) {
                    throw new UncheckedIOException(e);
                }
            },
            (topic, bytes) -> {
                try {
                    return bytes == null ? null : reader.readValue(bytes);
                } catch (final IOException e) {
                    throw new UncheckedIOException(e);
                }
            });
    }

    private static KStream<String, Sale> sales(final StreamsBuilder builder) {
        return builder.stream("purchases", Consumed.with(STRING, SALE)).filter((customer, sale) -> sale.amount > 5);
    }

    private static void paid(
        final StreamsBuilder builder, final KStream<String, Bought> purchases, final Duration window, final String out) {
        purchases
            .join(
                builder.stream("payments", Consumed.with(STRING, json(Payment.class))),
                (bought, payment) -> new Paid(bought.id, payment.purchase),
                JoinWindows.ofTimeDifferenceAndGrace(window, JOIN),
                StreamJoined.with(STRING, json(Bought.class), json(Payment.class)))
            .to(out, Produced.with(STRING, json(Paid.class)));
    }

    private static void build(final String program, final StreamsBuilder builder, final String out) {
        final Grouped<String, Sale> grouped = Grouped.with(STRING, SALE);
        switch (program) {
            case "a" -> builder
                .stream("purchases", Consumed.with(STRING, json(Purchase.class)))
                .filter((customer, purchase) -> purchase.amount > 50)
                .mapValues(purchase -> {
                    purchase.card = "xxxx-" + purchase.card.substring(purchase.card.length() - 4);
                    return purchase;
                })
                .to(out, Produced.with(STRING, json(Purchase.class)));
            case "b" -> sales(builder)
                .groupByKey(grouped)
                .count(Materialized.with(STRING, LONG))
                .toStream()
                .to(out, Produced.with(STRING, LONG));
            case "c" -> sales(builder)
                .selectKey((customer, sale) -> sale.item)
                .groupByKey(grouped)
                .count(Materialized.with(STRING, LONG))
                .toStream()
                .to(out, Produced.with(STRING, LONG));
            case "d" -> sales(builder)
                .groupByKey(grouped)
                .windowedBy(TimeWindows.ofSizeAndGrace(WINDOW, GRACE))
                .count(Materialized.with(STRING, LONG))
                .toStream()
                .to(out, Produced.with(WindowedSerdes.timeWindowedSerdeFrom(String.class, WINDOW.toMillis()), LONG));
            case "e" -> builder
                .stream("purchases", Consumed.with(STRING, json(Bought.class)))
                .join(
                    builder.table("customers", Consumed.with(STRING, json(Customer.class))),
                    (bought, customer) -> new Placed(bought.id, customer.region),
                    Joined.with(STRING, json(Bought.class), json(Customer.class)))
                .to(out, Produced.with(STRING, json(Placed.class)));
            case "f" -> paid(
                builder, builder.stream("purchases", Consumed.with(STRING, json(Bought.class))), JOIN, out);
            case "g" -> paid(
                builder,
                builder
                    .stream("purchases", Consumed.with(STRING, json(Bought.class)))
                    .filter((customer, bought) -> bought.id % 2 == 0),
                LONG_JOIN,
                out);
            default -> throw new IllegalArgumentException("there is no program '" + program + "': a to g");
        }
    }

    /** Runs a program until its input is closed. Arguments: the program, the output topic, a file of settings. */
    public static void main(final String[] args) throws IOException {
        final Properties settings = new Properties();
        try (FileInputStream file = new FileInputStream(args[2])) {
            settings.load(file);
        }
        final StreamsBuilder builder = new StreamsBuilder();
        build(args[0], builder, args[1]);
        final KafkaStreams streams = new KafkaStreams(builder.build(settings), settings);
        streams.setUncaughtExceptionHandler(failure -> {
            failure.printStackTrace();
            return StreamThreadExceptionResponse.SHUTDOWN_CLIENT;
        });
        streams.start();
        while (System.in.read() >= 0) {
            continue;
        }
        streams.close(Duration.ofSeconds(30));
    }
}

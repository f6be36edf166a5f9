package headrace;

import java.time.Instant;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Iterator;
import java.util.List;
import org.apache.kafka.common.serialization.StringSerializer;
import org.apache.kafka.streams.KeyValue;
import org.apache.kafka.streams.kstream.Windowed;
import org.apache.kafka.streams.processor.StateStore;
import org.apache.kafka.streams.state.KeyValueIterator;
import org.apache.kafka.streams.state.KeyValueStore;
import org.apache.kafka.streams.state.SessionStore;
import org.apache.kafka.streams.state.ValueAndTimestamp;
import org.apache.kafka.streams.state.VersionedKeyValueStore;
import org.apache.kafka.streams.state.VersionedRecord;
import org.apache.kafka.streams.state.WindowStore;

/** Questions to a store, under Headrace's names of the methods. */
@SuppressWarnings({"unchecked", "rawtypes"})
final class Queries {
    private Queries() { }

    static Object answer(final StateStore store, final String call, final List<Object> arguments) {
        final Object[] a = arguments.toArray();
        if (store instanceof VersionedKeyValueStore) {
            final VersionedKeyValueStore versioned = (VersionedKeyValueStore) store;
            return plain(a.length == 1 ? versioned.get(a[0]) : versioned.get(a[0], time(a[1])));
        }
        if (store instanceof KeyValueStore) {
            return keyValue((KeyValueStore) store, call, a);
        }
        if (store instanceof WindowStore) {
            return window((WindowStore) store, call, a);
        }
        return session((SessionStore) store, call, a);
    }

    private static Object keyValue(final KeyValueStore store, final String call, final Object[] a) {
        switch (call) {
            case "get": return plain(store.get(a[0]));
            case "range": return plain(store.range(a[0], a[1]));
            case "reverse_range": return plain(store.reverseRange(a[0], a[1]));
            case "all": return plain(store.all());
            case "reverse_all": return plain(store.reverseAll());
            case "prefix_scan": return plain(store.prefixScan((String) a[0], new StringSerializer()));
            default: throw new IllegalArgumentException(call);
        }
    }

    private static Object window(final WindowStore store, final String call, final Object[] a) {
        switch (call) {
            case "fetch": return plain(store.fetch(a[0], time(a[1])));
            case "fetch_range": return plain(store.fetch(a[0], at(a[1]), at(a[2])));
            case "backward_fetch_range": return plain(store.backwardFetch(a[0], at(a[1]), at(a[2])));
            case "fetch_keys": return plain(store.fetch(a[0], a[1], at(a[2]), at(a[3])));
            case "backward_fetch_keys": return plain(store.backwardFetch(a[0], a[1], at(a[2]), at(a[3])));
            case "fetch_all": return plain(store.fetchAll(at(a[0]), at(a[1])));
            case "backward_fetch_all": return plain(store.backwardFetchAll(at(a[0]), at(a[1])));
            case "all": return plain(store.all());
            case "backward_all": return plain(store.backwardAll());
            default: throw new IllegalArgumentException(call);
        }
    }

    private static Object session(final SessionStore store, final String call, final Object[] a) {
        switch (call) {
            case "fetch": return plain(store.fetch(a[0]));
            case "backward_fetch": return plain(store.backwardFetch(a[0]));
            case "fetch_keys": return plain(store.fetch(a[0], a[1]));
            case "backward_fetch_keys": return plain(store.backwardFetch(a[0], a[1]));
            case "fetch_session": return plain(store.fetchSession(a[0], time(a[1]), time(a[2])));
            case "find_sessions": return plain(store.findSessions(a[0], time(a[1]), time(a[2])));
            case "backward_find_sessions": return plain(store.backwardFindSessions(a[0], time(a[1]), time(a[2])));
            case "find_sessions_keys": return plain(store.findSessions(a[0], a[1], time(a[2]), time(a[3])));
            case "backward_find_sessions_keys":
                return plain(store.backwardFindSessions(a[0], a[1], time(a[2]), time(a[3])));
            case "find_sessions_in": return plain(store.findSessions(time(a[0]), time(a[1])));
            default: throw new IllegalArgumentException(call);
        }
    }

    private static long time(final Object value) {
        return ((Number) value).longValue();
    }

    private static Instant at(final Object value) {
        return Instant.ofEpochMilli(time(value));
    }

    static Object plain(final Object value) {
        if (value instanceof Iterator) {
            final List<Object> rows = new ArrayList<>();
            try (KeyValueIterator iterator = (KeyValueIterator) value) {
                while (iterator.hasNext()) {
                    rows.add(plain(iterator.next()));
                }
            }
            return rows;
        }
        if (value instanceof KeyValue) {
            return Arrays.asList(plain(((KeyValue) value).key), plain(((KeyValue) value).value));
        }
        if (value instanceof Windowed) {
            final Windowed windowed = (Windowed) value;
            return Arrays.asList(plain(windowed.key()), windowed.window().start(), windowed.window().end());
        }
        if (value instanceof ValueAndTimestamp) {
            return Arrays.asList(plain(((ValueAndTimestamp) value).value()), ((ValueAndTimestamp) value).timestamp());
        }
        if (value instanceof VersionedRecord) {
            final VersionedRecord version = (VersionedRecord) value;
            // Kafka's get() never says until when a version was valid.
            return Arrays.asList(plain(version.value()), version.timestamp());
        }
        return value;
    }
}

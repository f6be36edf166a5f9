"""Answers to HTTP requests from the views in this process."""

from __future__ import annotations

import time
from collections.abc import Generator, Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass
from itertools import islice
from typing import Any

from headrace.http.errors import RequestError, bad_request, unavailable
from headrace.http.limits import Limits
from headrace.record import ValueAndTimestamp
from headrace.serdes import Serde
from headrace.serdes.base import resolved
from headrace.state.rows.window_cache import windows_of
from headrace.state.stores.iterators import KeyValueIterator
from headrace.state.stores.suppliers import WindowSupplier
from headrace.views.global_stores import WHOLE
from headrace.views.http.cursors import Cursor
from headrace.views.http.keys import read_key
from headrace.views.position import Position
from headrace.views.replica import Reader
from headrace.views.viewed_stores import ViewedStore
from headrace.views.views import Views
from headrace.windows import Windowed

KEY_VALUE = frozenset({"key_value", "timestamped_key_value"})
WINDOWS = frozenset({"window", "timestamped_window"})
_LATEST_MS = (1 << 63) - 1


@dataclass(frozen=True)
class KeyQuestion:
    """A question for one key."""

    store: str
    text: str
    as_of_ms: int | None = None
    time_from_ms: int | None = None
    time_to_ms: int | None = None
    limit: int = 100


@dataclass(frozen=True)
class RangeQuestion:
    """A question for the rows of a store, a page at a time."""

    store: str
    low: str | None = None
    high: str | None = None
    prefix: str | None = None
    descending: bool = False
    time_from_ms: int | None = None
    time_to_ms: int | None = None
    limit: int = 100
    cursor: Cursor | None = None


@dataclass(frozen=True)
class Answer:
    """Body of a response, and the position of the view that answered."""

    body: dict[str, Any]
    position: Position
    partition: int
    written_ms: int = 0
    """When it was last noted that the view is up to date."""
    last: Cursor | None = None
    """The last row of a page."""
    more: bool = False
    """Whether the partition has rows behind it."""


class Answering:
    """Answers from views, one partition at a time."""

    def __init__(self, views: Views, limits: Limits) -> None:
        self.views = views
        self._limits = limits

    def key_serde(self, store: ViewedStore) -> Serde[Any]:
        return resolved(store.builder.key_serde, self.views.config.default_key_serde)

    def value_serde(self, store: ViewedStore) -> Serde[Any]:
        return resolved(store.builder.value_serde, self.views.config.default_value_serde)

    def partition_of(self, store: str, text: str) -> int:
        """Returns where a key is by its hash; -1 if the store is whole everywhere."""
        viewed = self.views.viewed(store)
        key = read_key(text, self.key_serde(viewed))
        return WHOLE if viewed.is_global else self.views.partition_of(store, key)

    def partitions(self, store: str) -> list[int]:
        """Returns the partitions of a store in the order of its pages."""
        viewed = self.views.viewed(store)
        return [WHOLE] if viewed.is_global else list(range(self.views.partitions_of(store)))

    def is_here(self, store: str, partition: int, *, stale: bool) -> bool:
        """Tells whether a partition can be read here."""
        try:
            reader, _ = self._reading(store, partition, stale=stale)
        except Exception as error:
            if isinstance(error, RequestError):
                raise
            return False
        reader.release()
        return True

    def staleness_ms(self, store: str, answer: Answer) -> int:
        """Returns for how long changes may be missing in an answer; 0 if there are none that are missing."""
        lag = self.views.lags().get(store, {}).get(answer.partition)
        return 0 if lag is None or lag.offset_lag == 0 else max(0, int(time.time() * 1000) - answer.written_ms)

    def check_bound(self, bound: Position, position: Position) -> None:
        """Refuses to answer with less than what the request demands."""
        if not position.covers(bound):
            missing = Position(position.missing(bound))
            message = f"the view is at {position} and has not reached {missing}; ask again, or wait with wait_ms"
            raise unavailable(message, "not-up-to-bound")

    def _reading(self, store: str, partition: int, *, stale: bool) -> tuple[Reader, Any]:
        viewed = self.views.viewed(store)
        reader, parts = self.views.reading_parts(store, None if viewed.is_global else partition, stale=stale)
        return reader, parts[0]

    def _position(self, viewed: ViewedStore, reader: Reader) -> Position:
        return self.views.global_position if viewed.is_global else reader.state.position

    def look_up(self, question: KeyQuestion, partition: int, bound: Position, *, stale: bool) -> Answer | None:
        """Returns what a partition has of a key; None if it has nothing."""
        viewed = self.views.viewed(question.store)
        key = read_key(question.text, self.key_serde(viewed))
        self._check_key_question(question, viewed)
        reader, part = self._reading(question.store, partition, stale=stale)
        try:
            position = self._position(viewed, reader)
            self.check_bound(bound, position)
            written_ms = reader.state.written_ms
            body = self._read_key(question, viewed, reader.store(part), key, partition)
        finally:
            reader.release()
        return None if body is None else Answer(body, position, partition, written_ms)

    def _check_key_question(self, question: KeyQuestion, viewed: ViewedStore) -> None:
        times = question.time_from_ms is not None or question.time_to_ms is not None
        if question.as_of_ms is not None and viewed.kind != "versioned":
            message = f"as_of_ms goes with versioned stores; '{viewed.name}' is a {_kind_name(viewed)} store"
            raise bad_request(message, "bad-parameter")
        if times and viewed.kind in KEY_VALUE:
            message = (
                f"'{viewed.name}' is a {_kind_name(viewed)} store and has no times; leave time_from_ms, time_to_ms out"
            )
            raise bad_request(message, "bad-parameter")

    def _read_key(
        self, question: KeyQuestion, viewed: ViewedStore, store: Any, key: Any, partition: int
    ) -> dict[str, Any] | None:
        if viewed.kind in KEY_VALUE:
            value = store.get(key)
            return None if value is None else _row(key, value, partition)
        low_ms = question.time_from_ms or 0
        high_ms = _LATEST_MS if question.time_to_ms is None else question.time_to_ms
        if viewed.kind == "versioned":
            if question.time_from_ms is None and question.time_to_ms is None:
                found = store.get(key) if question.as_of_ms is None else store.get(key, question.as_of_ms)
                return None if found is None else _version(key, found, partition)
            versions = store.history(key, low_ms, high_ms, reverse=True)
            rows = [_version(key, each, partition) for each in self._take_rows(versions, question.limit)]
        elif viewed.kind in WINDOWS:
            supplier = viewed.builder.supplier
            assert isinstance(supplier, WindowSupplier), "window stores are made by them"
            window_at = windows_of(supplier)
            fetched = store.fetch_range(key, low_ms, high_ms)
            rows = [
                _row(Windowed(key, window_at(each.key)), each.value, partition)
                for each in self._take_rows(fetched, question.limit)
            ]
        else:
            sessions = store.find_sessions(key, low_ms, high_ms)
            rows = [_row(each.key, each.value, partition) for each in self._take_rows(sessions, question.limit)]
        return {"key": key, "rows": rows} if rows else None

    def _take_rows(self, rows: Iterable[Any], limit: int) -> list[Any]:
        found = list(islice(rows, limit + 1))
        _close(rows)
        if len(found) > limit:
            message = f"there are more than {limit} rows of this key; narrow time_from_ms and time_to_ms"
            raise RequestError(413, "too-large", message)
        return found

    def page(self, question: RangeQuestion, partition: int, limit: int, bound: Position, *, stale: bool) -> Answer:
        """Returns the next rows of one partition."""
        viewed = self.views.viewed(question.store)
        serde = self.key_serde(viewed)
        cursor = question.cursor if question.cursor is not None and question.cursor.partition == partition else None
        # Before the view is held: what is wrong with the question is told by whoever is asked.
        scan = _Scan.of(question, viewed, serde, cursor)
        reader, part = self._reading(question.store, partition, stale=stale)
        rows: list[Any] = []
        more = False
        try:
            position = self._position(viewed, reader)
            self.check_bound(bound, position)
            written_ms = reader.state.written_ms
            with closing(scan.rows(reader.store(part), self._limits.scanned_rows)) as several:
                for row in several:
                    if len(rows) == limit:
                        more = True
                        break
                    rows.append(row)
        finally:
            reader.release()
        body = {"rows": [_row(each.key, each.value, partition) for each in rows]}
        given = (0 if cursor is None else cursor.given) + len(rows)
        last = scan.cursor_at(rows[-1].key, partition, given) if rows else None
        return Answer(body, position, partition, written_ms, last, more)


@dataclass(frozen=True)
class _Scan:
    """A walk over the rows of a partition, from where the last page ended."""

    viewed: ViewedStore
    serde: Serde[Any]
    question: RangeQuestion
    low: Any
    high: Any
    prefix: bytes | None
    cursor: Cursor | None

    @classmethod
    def of(cls, question: RangeQuestion, viewed: ViewedStore, serde: Serde[Any], cursor: Cursor | None) -> _Scan:
        if viewed.kind == "versioned":
            message = f"store '{viewed.name}' is a versioned store: its keys can be asked for, ranges cannot"
            raise bad_request(message, "no-ranges")
        if viewed.kind in KEY_VALUE and (question.time_from_ms is not None or question.time_to_ms is not None):
            message = (
                f"'{viewed.name}' is a {_kind_name(viewed)} store and has no times; leave time_from_ms, time_to_ms out"
            )
            raise bad_request(message, "bad-parameter")
        if question.prefix is not None:
            if viewed.kind not in KEY_VALUE:
                message = f"prefix goes with key-value stores; '{viewed.name}' is a {_kind_name(viewed)} store"
                raise bad_request(message, "bad-parameter")
            if question.low is not None or question.high is not None or question.descending:
                message = "prefix does not go with from, to or order=descending; leave one of them out"
                raise bad_request(message, "bad-parameter")
        low = None if question.low is None else read_key(question.low, serde, "from")
        high = None if question.high is None else read_key(question.high, serde, "to")
        prefix = None if question.prefix is None else question.prefix.encode(errors="surrogatepass")
        return cls(viewed, serde, question, low, high, prefix, cursor)

    def rows(self, store: Any, most: int) -> Generator[Any]:
        return self._by_key(store) if self.viewed.kind in KEY_VALUE else self._by_window(store, most)

    def _by_key(self, store: Any) -> Generator[Any]:
        cursor, low, high = self.cursor, self.low, self.high
        write = self.serde.serializer(self.viewed.topic, is_key=True)
        after = None
        if cursor is not None:
            after = cursor.key
            last = self.serde.deserializer(self.viewed.topic, is_key=True)(after)
            low, high = (low, last) if self.question.descending else (last, high)
        if self.prefix is not None and cursor is None:
            found = store.prefix_scan(self.prefix, _keep_bytes)
        else:
            found = store.reverse_range(low, high) if self.question.descending else store.range(low, high)
        with closing(found):
            for row in found:
                if after is not None or self.prefix is not None:
                    name = write(row.key)
                    if name == after:
                        continue
                    if self.prefix is not None and not name.startswith(self.prefix):
                        return
                yield row

    def _by_window(self, store: Any, most: int) -> Generator[Any]:
        with closing(self._windows(store)) as rows:
            yield from rows if self.cursor is None else self._rows_after(self.cursor, rows, most)

    def _rows_after(self, cursor: Cursor, rows: Iterator[Any], most: int) -> Iterator[Any]:
        # Rows may have come or gone before the place where the last page ended, so it is looked for.
        write = self.serde.serializer(self.viewed.topic, is_key=True)
        before: list[Any] = []
        for walked, row in enumerate(rows, 1):
            if walked > most:
                message = f"the page lies behind {most} rows; narrow time_from_ms and time_to_ms, or from and to"
                raise RequestError(413, "too-large", message)
            window = row.key.window
            if (write(row.key.key), window.start_ms, window.end_ms) == (cursor.key, cursor.start_ms, cursor.end_ms):
                yield from rows
                return
            before.append(row)
        yield from before[cursor.given :]

    def _windows(self, store: Any) -> KeyValueIterator[Any, Any]:
        question = self.question
        low_ms = question.time_from_ms or 0
        high_ms = _LATEST_MS if question.time_to_ms is None else question.time_to_ms
        if self.viewed.kind == "session":
            ask = store.backward_find_sessions_keys if question.descending else store.find_sessions_keys
        else:
            ask = store.backward_fetch_keys if question.descending else store.fetch_keys
        found: KeyValueIterator[Any, Any] = ask(self.low, self.high, low_ms, high_ms)
        return found

    def cursor_at(self, key: Any, partition: int, given: int) -> Cursor:
        write = self.serde.serializer(self.viewed.topic, is_key=True)
        if isinstance(key, Windowed):
            return Cursor(partition, write(key.key), key.window.start_ms, key.window.end_ms, given)
        return Cursor(partition, write(key), given=given)


def _row(key: Any, value: Any, partition: int) -> dict[str, Any]:
    timestamp_ms = None
    if isinstance(value, ValueAndTimestamp):
        value, timestamp_ms = value.value, value.timestamp_ms
    row: dict[str, Any] = {"key": key, "value": value, "timestamp_ms": timestamp_ms, "partition": partition}
    if isinstance(key, Windowed):
        row["key"] = key.key
        row["window"] = {"start_ms": key.window.start_ms, "end_ms": key.window.end_ms}
    return row


def _version(key: Any, found: Any, partition: int) -> dict[str, Any]:
    row = _row(key, found.value, partition)
    row["timestamp_ms"] = found.timestamp_ms
    if found.valid_to_ms is not None:
        row["valid_to_ms"] = found.valid_to_ms
    return row


def _keep_bytes(value: bytes) -> bytes:
    return value


def _close(rows: Any) -> None:
    close = getattr(rows, "close", None)
    if close is not None:
        close()


def _kind_name(viewed: ViewedStore) -> str:
    return viewed.kind.replace("_", "-")

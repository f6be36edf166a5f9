"""Execution of queries: the answer of one partition of a store to each kind of query."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, TypeVar

from headrace.errors import SerializationError
from headrace.state import values_only
from headrace.state.stores.iterators import KeyValueIterator, StoreIterator
from headrace.views.queries import (
    AnyQuery,
    KeyQuery,
    MultiVersionedKeyQuery,
    RangeQuery,
    ResultOrder,
    TimestampedKeyQuery,
    TimestampedRangeQuery,
    VersionedKeyQuery,
    WindowKeyQuery,
    WindowRangeQuery,
)
from headrace.views.replica import Reader
from headrace.views.results import FailureReason, QueryResult
from headrace.views.viewed_stores import Part

T = TypeVar("T")

_TIMESTAMPED = "timestamped_key_value"
_KEY_VALUE = frozenset({"key_value", _TIMESTAMPED})
_WINDOW = frozenset({"window", "timestamped_window"})
_UNKNOWN = object()


def run(query: AnyQuery, reader: Reader, part: Part) -> QueryResult[Any]:
    """Asks one part. Rows come as an iterator, which keeps the reader until it has ended or is closed."""
    store = reader.store(part)
    try:
        answer = _answer(query, store)
    except (SerializationError, TypeError):
        # The key is not one of the store's: whoever asks has made a mistake.
        raise
    except Exception as error:
        message = f"store '{part[0]}', partition {part[1]}: {type(error).__name__}: {error}"
        return QueryResult.for_failure(FailureReason.STORE_EXCEPTION, message)
    if answer is _UNKNOWN:
        return QueryResult.for_unknown_query_type(query, store)
    return QueryResult.for_result(held(answer, store, reader) if isinstance(answer, StoreIterator) else answer)


def _answer(query: AnyQuery, store: Any) -> Any:
    kind = store.kind
    match query:
        case KeyQuery() if kind in _KEY_VALUE:
            return values_only(store).get(query.key)
        case TimestampedKeyQuery() if kind == _TIMESTAMPED:
            return store.get(query.key)
        case RangeQuery() if kind in _KEY_VALUE:
            return _range(query, values_only(store))
        case TimestampedRangeQuery() if kind == _TIMESTAMPED:
            return _range(query, store)
        case VersionedKeyQuery() if kind == "versioned":
            return store.get(query.key, query.as_of_timestamp_ms)
        case MultiVersionedKeyQuery() if kind == "versioned":
            # Without an order Kafka's store begins with the newest.
            newest_first = query.result_order is not ResultOrder.ASCENDING
            return store.history(query.key, query.from_time_ms, query.to_time_ms, reverse=newest_first)
        case WindowKeyQuery() if kind in _WINDOW:
            return store.fetch_range(query.key, query.time_from_ms, query.time_to_ms)
        case WindowRangeQuery(key=None) if kind in _WINDOW:
            return store.fetch_all(query.time_from_ms, query.time_to_ms)
        case WindowRangeQuery(key=key) if kind == "session" and key is not None:
            return store.fetch(key)
    return _UNKNOWN


def _range(query: RangeQuery[Any, Any] | TimestampedRangeQuery[Any, Any], store: Any) -> Any:
    read = store.reverse_range if query.result_order is ResultOrder.DESCENDING else store.range
    return read(query.lower_bound, query.upper_bound)


class Rows(Iterator[T]):
    """Rows of a snapshot; the last one, and being forgotten, ends it."""

    __slots__ = ("_release", "_rows")

    def __init__(self, rows: Iterator[T], release: Callable[[], None]) -> None:
        self._rows = rows
        self._release: Callable[[], None] | None = release

    def __next__(self) -> T:
        try:
            return next(self._rows)
        except BaseException:
            self.release()
            raise

    def release(self) -> None:
        """Ends the use of the snapshot; more than once is once."""
        release, self._release = self._release, None
        if release is not None:
            release()

    def __del__(self) -> None:
        self.release()


def held(rows: StoreIterator[Any], store: Any, reader: Reader) -> StoreIterator[Any]:
    """Returns an iterator over the same rows that keeps the reader in use as long as it lives."""
    kind = KeyValueIterator if isinstance(rows, KeyValueIterator) else StoreIterator
    return kind(store, Rows(rows, reader.keep()))

"""Windowed aggregations of a grouped stream: one row per key and window."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeAlias, TypeVar

from headrace.arguments.hints import Hinting, explaining
from headrace.dsl import grouped_stream, hints
from headrace.dsl.argument_checks import check_function, check_initializer, check_option, check_type
from headrace.dsl.functions import add_counts, add_one, aggregator_of, merger_of, nothing, zero
from headrace.dsl.materialized import Materialized
from headrace.dsl.stores import StoreSpec, window_store
from headrace.errors import TopologyError
from headrace.serdes import Serde, Serdes, SessionWindowedSerde, TimeWindowedSerde
from headrace.topology import operations as ops
from headrace.windows import (
    EmitStrategy,
    SessionWindows,
    SlidingWindows,
    UnlimitedWindows,
    Windowed,
    Windows,
    custom_windows,
)

if TYPE_CHECKING:
    from headrace.dsl.grouped_stream import KGroupedStream
    from headrace.dsl.ktable import KTable

K = TypeVar("K")
V = TypeVar("V")
VR = TypeVar("VR")

AnyWindows: TypeAlias = Windows | SlidingWindows | SessionWindows
_AGGREGATE = "KSTREAM-AGGREGATE-"
_REDUCE = "KSTREAM-REDUCE-"


@explaining
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class _WindowedGroup(Hinting, Generic[K, V]):
    _HINTS: ClassVar[Mapping[str, str]] = hints.GROUPED

    _grouped: KGroupedStream[K, V]
    _windows: Any
    _emit: EmitStrategy = EmitStrategy.ON_WINDOW_UPDATE

    def __repr__(self) -> str:
        return f"<{type(self).__name__} '{self._grouped._name}'>"

    def count(
        self, materialized: Materialized[K, int] | None = None, *, name: str | None = None
    ) -> KTable[Windowed[K], int]:
        """Counts the records of each key and window.

        Stateful: the counts are rows of a window or session store. Records without a key are dropped, and those that
        come after their window's grace period. A value of None counts, except in sliding windows.

        >>> from datetime import timedelta
        >>> from headrace import Materialized, StreamsBuilder, TimeWindows, TopologyTestDriver
        >>> builder = StreamsBuilder()
        >>> minutes = TimeWindows.of_size_with_no_grace(timedelta(minutes=1))
        >>> grouped = builder.stream("in").group_by_key().windowed_by(minutes)
        >>> table = grouped.count(materialized=Materialized("counts"))
        >>> with TopologyTestDriver(builder.build()) as driver:
        ...     topic = driver.create_input_topic("in")
        ...     for timestamp_ms in (0, 59_999, 60_000):
        ...         topic.pipe_input("a", "x", timestamp_ms=timestamp_ms)
        ...     [(str(key), count) for key, count in driver.get_window_store("counts").all()]
        [('[a@0/60000]', 2), ('[a@60000/120000]', 1)]
        """
        option = self._option("count", materialized)
        names = self._grouped._draft.names
        # Kafka Streams takes an index more here, but not for sliding windows.
        if materialized is not None and option.name is None and not isinstance(self._windows, SlidingWindows):
            names.store(_AGGREGATE)
        store = self._store(option, _AGGREGATE, Serdes.long())
        return self._aggregate(names.named(name, _AGGREGATE), store, zero, add_one, add_counts)

    def reduce(
        self,
        reducer: Callable[[V, V], V],
        materialized: Materialized[K, V] | None = None,
        *,
        name: str | None = None,
    ) -> KTable[Windowed[K], V]:
        """Combines the values of each key and window: the first is kept, then ``reducer(aggregate, value)``.

        Stateful: the results are rows of a window or session store. Records without a key are dropped, and those that
        come after their window's grace period.

        >>> from datetime import timedelta
        >>> from headrace import Materialized, StreamsBuilder, TimeWindows, TopologyTestDriver
        >>> builder = StreamsBuilder()
        >>> minutes = TimeWindows.of_size_with_no_grace(timedelta(minutes=1))
        >>> grouped = builder.stream("in").group_by_key().windowed_by(minutes)
        >>> table = grouped.reduce(max, materialized=Materialized("largest"))
        >>> with TopologyTestDriver(builder.build()) as driver:
        ...     driver.create_input_topic("in").pipe_key_values([("a", 3), ("a", 5)], start_ms=0)
        ...     [(str(key), value) for key, value in driver.get_window_store("largest").all()]
        [('[a@0/60000]', 5)]
        """
        option = self._option("reduce", materialized)
        check_function(self._where("reduce"), "reducer", reducer, "(aggregate, value)")
        store = self._store(option, _REDUCE, self._grouped._value_serde)
        node_name = self._grouped._draft.names.named(name, _REDUCE)
        return self._aggregate(node_name, store, nothing, aggregator_of(reducer), merger_of(reducer))

    def _where(self, method: str) -> str:
        return f"{method}() on '{self._grouped._name}'"

    def _option(self, method: str, materialized: Materialized[Any, Any] | None) -> Materialized[Any, Any]:
        return check_option(self._where(method), "materialized", materialized, Materialized, Materialized())

    def _store(self, option: Materialized[Any, Any], prefix: str, value_serde: Serde[Any] | None) -> StoreSpec:
        grouped = self._grouped
        name = grouped._draft.store_name(option, prefix)
        return window_store(
            name, option, self._windows, self._emit, key_serde=grouped._key_serde, value_serde=value_serde
        )

    def _aggregate(
        self,
        node_name: str,
        store: StoreSpec,
        initializer: Callable[[], Any],
        aggregator: Callable[..., Any],
        merger: Callable[..., Any] | None,
    ) -> KTable[Any, Any]:
        return self._grouped._aggregate(
            node_name,
            windowed_operation(self._windows, self._emit, store.name, initializer, aggregator, merger),
            store,
            key_serde=windowed_serde(self._windows, store.key_serde),
            grace_ms=grace_of(self._windows),
        )


@explaining
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class TimeWindowedKStream(_WindowedGroup[K, V]):
    """Records grouped by key and by windows other than sessions; made by `windowed_by`.

    The rows live in a window store and are kept for the windows' size and grace period, or longer if `Materialized`
    says so.
    """

    def aggregate(
        self,
        initializer: Callable[[], VR],
        aggregator: Callable[[K, V, VR], VR],
        materialized: Materialized[K, VR] | None = None,
        *,
        name: str | None = None,
    ) -> KTable[Windowed[K], VR]:
        """Aggregates the values of each key and window: ``aggregator(key, value, aggregate)``.

        Stateful: the aggregates start from ``initializer()`` and are rows of a window store; name the serde of their
        type in ``materialized``. Records without a key are dropped, and those that come after their window's grace
        period.

        >>> from datetime import timedelta
        >>> from headrace import Materialized, StreamsBuilder, TimeWindows, TopologyTestDriver
        >>> builder = StreamsBuilder()
        >>> minutes = TimeWindows.of_size_with_no_grace(timedelta(minutes=1))
        >>> grouped = builder.stream("in").group_by_key().windowed_by(minutes)
        >>> append = lambda key, value, items: [*items, value]
        >>> table = grouped.aggregate(list, append, materialized=Materialized("items"))
        >>> with TopologyTestDriver(builder.build()) as driver:
        ...     driver.create_input_topic("in").pipe_key_values([("a", 3), ("a", 5)], start_ms=0)
        ...     [(str(key), value) for key, value in driver.get_window_store("items").all()]
        [('[a@0/60000]', [3, 5])]
        """
        option = self._option("aggregate", materialized)
        check_initializer(self._where("aggregate"), initializer)
        check_function(self._where("aggregate"), "aggregator", aggregator, "(key, value, aggregate)")
        store = self._store(option, _AGGREGATE, None)
        node_name = self._grouped._draft.names.named(name, _AGGREGATE)
        return self._aggregate(node_name, store, initializer, aggregator, None)

    def emit_strategy(self, strategy: EmitStrategy) -> TimeWindowedKStream[K, V]:
        """Says when results are forwarded: at every update of a window, or once, when it closes.

        Final results need a later record, whose time is past the window's end and grace period.

        >>> from datetime import timedelta
        >>> from headrace import EmitStrategy, StreamsBuilder, TimeWindows, TopologyTestDriver
        >>> builder = StreamsBuilder()
        >>> minutes = TimeWindows.of_size_with_no_grace(timedelta(minutes=1))
        >>> grouped = builder.stream("in").group_by_key().windowed_by(minutes)
        >>> final = grouped.emit_strategy(EmitStrategy.on_window_close()).reduce(max)
        >>> final.to_stream(lambda key, value: key.key).to("out")
        >>> with TopologyTestDriver(builder.build()) as driver:
        ...     topic = driver.create_input_topic("in")
        ...     topic.pipe_key_values([("a", 3), ("a", 5)], start_ms=0)
        ...     topic.pipe_input("a", 1, timestamp_ms=60_000)
        ...     driver.create_output_topic("out").read_key_values()
        [KeyValue(key='a', value=5)]
        """
        check_type(self._where("emit_strategy"), "strategy", strategy, EmitStrategy)
        if isinstance(self._windows, UnlimitedWindows) and strategy is EmitStrategy.ON_WINDOW_CLOSE:
            message = (
                f"{self._where('emit_strategy')}: ON_WINDOW_CLOSE needs windows that close; found UnlimitedWindows; "
                "use EmitStrategy.on_window_update()"
            )
            raise TopologyError(message)
        return replace(self, _emit=strategy)


@explaining
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class SessionWindowedKStream(_WindowedGroup[K, V]):
    """Records grouped by key and by sessions of activity; made by `windowed_by`.

    A session grows with every record that comes within the gap, and two sessions that a record connects become one: the
    old sessions are then deleted from the result.
    """

    def aggregate(
        self,
        initializer: Callable[[], VR],
        aggregator: Callable[[K, V, VR], VR],
        merger: Callable[[K, VR, VR], VR],
        materialized: Materialized[K, VR] | None = None,
        *,
        name: str | None = None,
    ) -> KTable[Windowed[K], VR]:
        """Aggregates the values of each session; ``merger(key, first, second)`` unites two sessions.

        ``aggregator(key, value, aggregate)`` starts from ``initializer()``. Stateful: the aggregates are rows of a
        session store. Records without a key are dropped, and those that come after their session's gap and grace
        period.

        >>> from datetime import timedelta
        >>> from headrace import Materialized, SessionWindows, StreamsBuilder, TopologyTestDriver
        >>> builder = StreamsBuilder()
        >>> sessions = SessionWindows.of_inactivity_gap_with_no_grace(timedelta(minutes=1))
        >>> table = builder.stream("in").group_by_key().windowed_by(sessions).aggregate(
        ...     list,
        ...     lambda key, value, items: [*items, value],
        ...     lambda key, first, second: first + second,
        ...     materialized=Materialized("visits"),
        ... )
        >>> with TopologyTestDriver(builder.build()) as driver:
        ...     topic = driver.create_input_topic("in")
        ...     topic.pipe_key_values([("a", "x"), ("a", "y")], start_ms=0, advance=timedelta(seconds=30))
        ...     [(str(key), value) for key, value in driver.get_session_store("visits").fetch("a")]
        [('[a@0/30000]', ['x', 'y'])]
        """
        option = self._option("aggregate", materialized)
        check_initializer(self._where("aggregate"), initializer)
        check_function(self._where("aggregate"), "aggregator", aggregator, "(key, value, aggregate)")
        check_function(self._where("aggregate"), "merger", merger, "(key, first, second)")
        store = self._store(option, _AGGREGATE, None)
        node_name = self._grouped._draft.names.named(name, _AGGREGATE)
        return self._aggregate(node_name, store, initializer, aggregator, merger)

    def emit_strategy(self, strategy: EmitStrategy) -> SessionWindowedKStream[K, V]:
        """Says when results are forwarded: at every update of a session, or once, when it closes.

        >>> from datetime import timedelta
        >>> from headrace import EmitStrategy, SessionWindows, StreamsBuilder
        >>> sessions = SessionWindows.of_inactivity_gap_with_no_grace(timedelta(minutes=1))
        >>> grouped = StreamsBuilder().stream("in").group_by_key().windowed_by(sessions)
        >>> table = grouped.emit_strategy(EmitStrategy.on_window_close()).count()
        """
        check_type(self._where("emit_strategy"), "strategy", strategy, EmitStrategy)
        return replace(self, _emit=strategy)


def windowed_by(
    grouped: KGroupedStream[Any, Any], windows: Any
) -> TimeWindowedKStream[Any, Any] | SessionWindowedKStream[Any, Any]:
    """Groups a grouped stream by windows as well."""
    grouped_stream.check_windows(grouped._where("windowed_by"), windows)
    if isinstance(windows, SessionWindows):
        return SessionWindowedKStream(grouped, windows)
    return TimeWindowedKStream(grouped, windows)


def windowed_operation(
    windows: AnyWindows,
    emit: EmitStrategy,
    store: str,
    initializer: Callable[[], Any],
    aggregator: Callable[..., Any],
    merger: Callable[..., Any] | None,
) -> ops.Operation:
    """Returns the operation that aggregates by these windows."""
    if isinstance(windows, SlidingWindows):
        return ops.SlidingAggregate(store, windows, emit, initializer, aggregator)
    if isinstance(windows, SessionWindows):
        assert merger is not None  # the callers' case
        return ops.SessionAggregate(store, windows, emit, initializer, aggregator, merger)
    return ops.WindowAggregate(store, windows, emit, initializer, aggregator)


def windowed_serde(windows: AnyWindows, key_serde: Serde[Any] | None) -> Serde[Any]:
    """Returns the serde of the result's windowed keys; without one for the keys, the application's default is meant."""
    if isinstance(windows, SessionWindows):
        return SessionWindowedSerde(key_serde)
    if isinstance(windows, SlidingWindows):
        return TimeWindowedSerde(key_serde, windows.difference_ms)
    return TimeWindowedSerde(key_serde, windows.size_ms, windows=custom_windows(windows))


def grace_of(windows: AnyWindows) -> int:
    """Returns how long after a window's end its result may still change."""
    return windows.grace_ms + (windows.gap_ms if isinstance(windows, SessionWindows) else 0)

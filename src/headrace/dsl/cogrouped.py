"""Cogrouping: several grouped streams, each with its own aggregator, build one table."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeVar, overload

from headrace.arguments.hints import Hinting, explaining
from headrace.dsl import grouped_stream, hints, ktable
from headrace.dsl.argument_checks import check_function, check_initializer, check_option, check_type
from headrace.dsl.draft import Draft
from headrace.dsl.graph import NodeId, Process
from headrace.dsl.materialized import Materialized
from headrace.dsl.stores import StoreSpec, key_value_store, window_store
from headrace.dsl.windowed_stream import AnyWindows, grace_of, windowed_operation, windowed_serde
from headrace.serdes import Serde
from headrace.topology import operations as ops
from headrace.windows import EmitStrategy, SessionWindows, SlidingWindows, Windowed, Windows

if TYPE_CHECKING:
    from headrace.dsl.grouped_stream import KGroupedStream
    from headrace.dsl.ktable import KTable

K = TypeVar("K")
V = TypeVar("V")
VR = TypeVar("VR")

_AGGREGATE = "COGROUPKSTREAM-AGGREGATE-"
_MERGE = "COGROUPKSTREAM-MERGE-"
_UPDATE = EmitStrategy.ON_WINDOW_UPDATE


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class _Cogroup(Hinting, Generic[K, VR]):
    _HINTS: ClassVar[Mapping[str, str]] = hints.COGROUPED

    _draft: Draft
    _group: int
    _inputs: tuple[tuple[KGroupedStream[Any, Any], Callable[..., Any]], ...] = ()

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {len(self._inputs)}>"

    @property
    def _where(self) -> str:
        return f"cogroup of '{self._inputs[0][0]._name}'" if self._inputs else "cogroup()"

    def _option(self, materialized: Materialized[Any, Any] | None) -> Materialized[Any, Any]:
        return check_option(self._where, "materialized", materialized, Materialized, Materialized())

    def _key_serde(self) -> Serde[Any] | None:
        return next((grouped._key_serde for grouped, _ in self._inputs if grouped._key_serde is not None), None)

    def _aggregate(
        self,
        name: str | None,
        store: StoreSpec,
        operation: Callable[[Callable[..., Any]], ops.Operation],
        *,
        key_serde: Serde[Any] | None,
        grace_ms: int | None = None,
    ) -> KTable[Any, Any]:
        draft = self._draft
        parents = self._partitioned(store)
        aggregations = []
        for index, ((_, aggregator), parent) in enumerate(zip(self._inputs, parents, strict=True)):
            node_name = draft.names.suffixed(name, f"-cogroup-agg-{index}", _AGGREGATE)
            aggregations.append(
                draft.add(
                    Process,
                    node_name,
                    (parent,),
                    operation=operation(aggregator),
                    stores=(store,),
                    versioned=store.versioned if grace_ms is None else None,
                    grace_ms=grace_ms,
                )
            )
        merge = draft.names.suffixed(name, "-cogroup-merge", _MERGE)
        node = draft.add(Process, merge, aggregations, operation=ops.TablePassThrough())
        queryable_name = store.name if store.queryable else None
        sources = self._sources(parents)
        return ktable.KTable(draft, node, merge, key_serde, store.value_serde, sources, queryable_name)

    def _partitioned(self, store: StoreSpec) -> list[NodeId]:
        draft, parents = self._draft, []
        for grouped, _ in self._inputs:
            if not grouped._key_changed:
                parents.append(grouped._node)
                continue
            content = draft.repartition_content(
                grouped._grouped_name or store.name,
                key_serde=grouped._key_serde,
                value_serde=grouped._value_serde,
                named_by_user=grouped._grouped_name is not None or store.queryable,
                serdes_from="Grouped({}_serde=…)",
            )
            slot = ("cogroup", self._group, grouped._group)
            if slot not in draft.shared_repartitions:
                draft.shared_repartitions[slot] = draft.repartition(grouped._node, content)
            parents.append(draft.shared_repartitions[slot])
        draft.copartition(self._sources(parents))
        return parents

    def _sources(self, parents: list[NodeId]) -> frozenset[str]:
        sources: set[str] = set()
        for (grouped, _), parent in zip(self._inputs, parents, strict=True):
            sources |= {self._draft.nodes[parent].name} if grouped._key_changed else grouped._sources
        return frozenset(sources)


@explaining
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class CogroupedKStream(_Cogroup[K, VR]):
    """Several grouped streams that are aggregated into one table; made by `KGroupedStream.cogroup`."""

    def cogroup(self, grouped: KGroupedStream[K, V], aggregator: Callable[[K, V, VR], VR]) -> CogroupedKStream[K, VR]:
        """Adds another grouped stream with its aggregator ``(key, value, aggregate)``.

        All streams must have equally many partitions; those whose key has changed are repartitioned.

        >>> from headrace import StreamsBuilder
        >>> builder = StreamsBuilder()
        >>> clicks, buys = builder.stream("clicks").group_by_key(), builder.stream("buys").group_by_key()
        >>> both = clicks.cogroup(lambda key, value, sum: sum + 1).cogroup(buys, lambda key, value, sum: sum + 10)
        """
        check_type(self._where, "grouped", grouped, grouped_stream.KGroupedStream)
        check_function(self._where, "aggregator", aggregator, "(key, value, aggregate)")
        for first, _ in self._inputs[:1]:
            first._check_same_builder(self._where, grouped)
        inputs = {group._group: (group, function) for group, function in self._inputs}
        inputs[grouped._group] = (grouped, aggregator)
        return replace(self, _inputs=tuple(inputs.values()))

    def aggregate(
        self,
        initializer: Callable[[], VR],
        materialized: Materialized[K, VR] | None = None,
        *,
        name: str | None = None,
    ) -> KTable[K, VR]:
        """Aggregates all streams into one row per key, starting from ``initializer()``.

        Stateful: the aggregates are rows of a key-value store that all inputs share. Records without key or value are
        dropped.

        >>> from headrace import Materialized, StreamsBuilder, TopologyTestDriver
        >>> builder = StreamsBuilder()
        >>> clicks, buys = builder.stream("clicks").group_by_key(), builder.stream("buys").group_by_key()
        >>> both = clicks.cogroup(lambda key, value, sum: sum + 1).cogroup(buys, lambda key, value, sum: sum + 10)
        >>> table = both.aggregate(lambda: 0, materialized=Materialized("scores"))
        >>> with TopologyTestDriver(builder.build()) as driver:
        ...     driver.create_input_topic("clicks").pipe_input("ada", "ad")
        ...     driver.create_input_topic("buys").pipe_input("ada", "tea")
        ...     driver.get_key_value_store("scores").get("ada")
        11
        """
        check_initializer(self._where, initializer)
        option = self._option(materialized)
        store_name = self._draft.store_name(option, _AGGREGATE)
        store = key_value_store(store_name, option, key_serde=self._key_serde(), value_serde=None)
        return self._aggregate(
            name,
            store,
            lambda aggregator: ops.StreamAggregate(store_name, initializer, aggregator),
            key_serde=store.key_serde,
        )

    @overload
    def windowed_by(self, windows: SessionWindows) -> SessionWindowedCogroupedKStream[K, VR]: ...
    @overload
    def windowed_by(self, windows: Windows | SlidingWindows) -> TimeWindowedCogroupedKStream[K, VR]: ...

    def windowed_by(self, windows: Any) -> Any:
        """Groups by windows of time as well; results are forwarded at every update.

        >>> from datetime import timedelta
        >>> from headrace import StreamsBuilder, TimeWindows
        >>> builder = StreamsBuilder()
        >>> clicks, buys = builder.stream("clicks").group_by_key(), builder.stream("buys").group_by_key()
        >>> both = clicks.cogroup(lambda key, value, sum: sum + 1).cogroup(buys, lambda key, value, sum: sum + 10)
        >>> table = both.windowed_by(TimeWindows.of_size_with_no_grace(timedelta(minutes=1))).aggregate(lambda: 0)
        """
        grouped_stream.check_windows(self._where, windows)
        if isinstance(windows, SessionWindows):
            return SessionWindowedCogroupedKStream(self._draft, self._group, self._inputs, windows)
        return TimeWindowedCogroupedKStream(self._draft, self._group, self._inputs, windows)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class _WindowedCogroup(_Cogroup[K, VR]):
    _windows: Any = None

    def _aggregate_windows(
        self,
        initializer: Callable[[], Any],
        merger: Callable[..., Any] | None,
        materialized: Materialized[Any, Any] | None,
        name: str | None,
    ) -> KTable[Any, Any]:
        check_initializer(self._where, initializer)
        option = self._option(materialized)
        windows: AnyWindows = self._windows
        store_name = self._draft.store_name(option, _AGGREGATE)
        store = window_store(store_name, option, windows, _UPDATE, key_serde=self._key_serde(), value_serde=None)
        return self._aggregate(
            name,
            store,
            lambda aggregator: windowed_operation(windows, _UPDATE, store_name, initializer, aggregator, merger),
            key_serde=windowed_serde(windows, store.key_serde),
            grace_ms=grace_of(windows),
        )


@explaining
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class TimeWindowedCogroupedKStream(_WindowedCogroup[K, VR]):
    """Several grouped streams that are aggregated by key and by tumbling, hopping, sliding or unlimited windows."""

    def aggregate(
        self,
        initializer: Callable[[], VR],
        materialized: Materialized[K, VR] | None = None,
        *,
        name: str | None = None,
    ) -> KTable[Windowed[K], VR]:
        """Aggregates all streams into one row per key and window, starting from ``initializer()``.

        Stateful: the aggregates are rows of a window store that all inputs share.

        >>> from datetime import timedelta
        >>> from headrace import Materialized, StreamsBuilder, TimeWindows, TopologyTestDriver
        >>> builder = StreamsBuilder()
        >>> clicks, buys = builder.stream("clicks").group_by_key(), builder.stream("buys").group_by_key()
        >>> both = clicks.cogroup(lambda key, value, sum: sum + 1).cogroup(buys, lambda key, value, sum: sum + 10)
        >>> minutes = TimeWindows.of_size_with_no_grace(timedelta(minutes=1))
        >>> table = both.windowed_by(minutes).aggregate(lambda: 0, materialized=Materialized("scores"))
        >>> with TopologyTestDriver(builder.build()) as driver:
        ...     driver.create_input_topic("clicks").pipe_input("ada", "ad", timestamp_ms=0)
        ...     driver.create_input_topic("buys").pipe_input("ada", "tea", timestamp_ms=1)
        ...     driver.get_window_store("scores").fetch("ada", 0)
        11
        """
        return self._aggregate_windows(initializer, None, materialized, name)


@explaining
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class SessionWindowedCogroupedKStream(_WindowedCogroup[K, VR]):
    """Several grouped streams that are aggregated by key and by sessions of activity."""

    def aggregate(
        self,
        initializer: Callable[[], VR],
        merger: Callable[[K, VR, VR], VR],
        materialized: Materialized[K, VR] | None = None,
        *,
        name: str | None = None,
    ) -> KTable[Windowed[K], VR]:
        """Aggregates all streams into one row per session; ``merger(key, first, second)`` unites two sessions.

        Stateful: the aggregates are rows of a session store that all inputs share.

        >>> from datetime import timedelta
        >>> from headrace import Materialized, SessionWindows, StreamsBuilder, TopologyTestDriver
        >>> builder = StreamsBuilder()
        >>> clicks, buys = builder.stream("clicks").group_by_key(), builder.stream("buys").group_by_key()
        >>> both = clicks.cogroup(lambda key, value, sum: sum + 1).cogroup(buys, lambda key, value, sum: sum + 10)
        >>> visits = both.windowed_by(SessionWindows.of_inactivity_gap_with_no_grace(timedelta(minutes=1)))
        >>> table = visits.aggregate(lambda: 0, lambda key, a, b: a + b, materialized=Materialized("scores"))
        >>> with TopologyTestDriver(builder.build()) as driver:
        ...     driver.create_input_topic("clicks").pipe_input("ada", "ad", timestamp_ms=0)
        ...     driver.create_input_topic("buys").pipe_input("ada", "tea", timestamp_ms=1)
        ...     driver.get_session_store("scores").fetch_session("ada", 0, 1)
        11
        """
        check_function(self._where, "merger", merger, "(key, first, second)")
        return self._aggregate_windows(initializer, merger, materialized, name)


def start(grouped: KGroupedStream[Any, Any]) -> CogroupedKStream[Any, Any]:
    """Starts a cogroup, with no stream in it yet."""
    return CogroupedKStream(grouped._draft, grouped._draft.next_group())

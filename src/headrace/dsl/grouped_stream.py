"""Streams grouped by key, to be aggregated: into one row per key, or per key and window."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar, overload

from headrace.arguments.hints import explaining
from headrace.dsl import cogrouped, hints, ktable, windowed_stream
from headrace.dsl.argument_checks import check_function, check_initializer, check_option
from headrace.dsl.graph import NodeId, Process
from headrace.dsl.handle import Handle
from headrace.dsl.materialized import Materialized
from headrace.dsl.options import Grouped
from headrace.dsl.stores import StoreSpec
from headrace.errors import TopologyError, describe_value
from headrace.serdes import Serde, Serdes
from headrace.topology import operations as ops
from headrace.windows import SessionWindows, SlidingWindows, Windows

if TYPE_CHECKING:
    from headrace.dsl.cogrouped import CogroupedKStream
    from headrace.dsl.kstream import KStream
    from headrace.dsl.ktable import KTable
    from headrace.dsl.windowed_stream import SessionWindowedKStream, TimeWindowedKStream

K = TypeVar("K")
V = TypeVar("V")
VR = TypeVar("VR")

AGGREGATE = "KSTREAM-AGGREGATE-"
REDUCE = "KSTREAM-REDUCE-"


@explaining
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class KGroupedStream(Handle[K, V]):
    """Records grouped by key, to be aggregated; made by `KStream.group_by_key` and `KStream.group_by`.

    If the key has changed, the records are repartitioned first, through an internal topic.
    """

    _HINTS: ClassVar[Mapping[str, str]] = hints.GROUPED

    _key_changed: bool
    _grouped_name: str | None
    _group: int

    def count(self, materialized: Materialized[K, int] | None = None, *, name: str | None = None) -> KTable[K, int]:
        """Counts the records of each key.

        Stateful: the counts are rows of a key-value store, backed by a changelog. Records without key or value are
        not counted.

        >>> from headrace import Materialized, StreamsBuilder, TopologyTestDriver
        >>> builder = StreamsBuilder()
        >>> table = builder.stream("in").group_by_key().count(materialized=Materialized("counts"))
        >>> with TopologyTestDriver(builder.build()) as driver:
        ...     driver.create_input_topic("in").pipe_key_values([("a", "x"), ("b", "x"), ("a", "y")])
        ...     driver.get_key_value_store("counts").get("a")
        2
        """
        option = self._option("count", materialized)
        if materialized is not None and option.name is None:
            self._draft.names.store(AGGREGATE)
        store = self._draft.store(option, AGGREGATE, key_serde=self._key_serde, value_serde=Serdes.long())
        node_name = self._draft.names.named(name, AGGREGATE)
        return self._aggregate(node_name, ops.StreamCount(store.name), store)

    def reduce(
        self,
        reducer: Callable[[V, V], V],
        materialized: Materialized[K, V] | None = None,
        *,
        name: str | None = None,
    ) -> KTable[K, V]:
        """Combines the values of each key: the first is kept, then ``reducer(aggregate, value)``.

        Stateful: the results are rows of a key-value store. Records without key or value are dropped. A result of
        None deletes the row.

        >>> from headrace import Materialized, StreamsBuilder, TopologyTestDriver
        >>> builder = StreamsBuilder()
        >>> table = builder.stream("in").group_by_key().reduce(max, materialized=Materialized("largest"))
        >>> with TopologyTestDriver(builder.build()) as driver:
        ...     driver.create_input_topic("in").pipe_key_values([("a", 3), ("a", 5), ("a", 4)])
        ...     driver.get_key_value_store("largest").get("a")
        5
        """
        option = self._option("reduce", materialized)
        check_function(self._where("reduce"), "reducer", reducer, "(aggregate, value)")
        store = self._draft.store(option, REDUCE, key_serde=self._key_serde, value_serde=self._value_serde)
        node_name = self._draft.names.named(name, REDUCE)
        return self._aggregate(node_name, ops.StreamReduce(store.name, reducer), store)

    def aggregate(
        self,
        initializer: Callable[[], VR],
        aggregator: Callable[[K, V, VR], VR],
        materialized: Materialized[K, VR] | None = None,
        *,
        name: str | None = None,
    ) -> KTable[K, VR]:
        """Aggregates the values of each key: ``aggregator(key, value, aggregate)``, starting from ``initializer()``.

        Stateful: the aggregates are rows of a key-value store; name the serde of their type in ``materialized``.
        Records without key or value are dropped. A result of None deletes the row.

        >>> from headrace import Materialized, StreamsBuilder, TopologyTestDriver
        >>> builder = StreamsBuilder()
        >>> table = builder.stream("in").group_by_key().aggregate(
        ...     list, lambda key, value, items: [*items, value], materialized=Materialized("items")
        ... )
        >>> with TopologyTestDriver(builder.build()) as driver:
        ...     driver.create_input_topic("in").pipe_key_values([("a", "x"), ("a", "y")])
        ...     driver.get_key_value_store("items").get("a")
        ['x', 'y']
        """
        option = self._option("aggregate", materialized)
        check_initializer(self._where("aggregate"), initializer)
        check_function(self._where("aggregate"), "aggregator", aggregator, "(key, value, aggregate)")
        store = self._draft.store(option, AGGREGATE, key_serde=self._key_serde)
        node_name = self._draft.names.named(name, AGGREGATE)
        return self._aggregate(node_name, ops.StreamAggregate(store.name, initializer, aggregator), store)

    @overload
    def windowed_by(self, windows: SessionWindows) -> SessionWindowedKStream[K, V]: ...
    @overload
    def windowed_by(self, windows: Windows | SlidingWindows) -> TimeWindowedKStream[K, V]: ...

    def windowed_by(self, windows: Any) -> Any:
        """Groups by windows of time as well: tumbling, hopping, sliding, unlimited, sessions, or windows of your own.

        Windows of your own are an object that follows the protocol `Windows`.

        >>> from datetime import timedelta
        >>> from headrace import StreamsBuilder, TimeWindows
        >>> minutes = TimeWindows.of_size_with_no_grace(timedelta(minutes=1))
        >>> table = StreamsBuilder().stream("in").group_by_key().windowed_by(minutes).count()
        """
        return windowed_stream.windowed_by(self, windows)

    def cogroup(self, aggregator: Callable[[K, V, VR], VR]) -> CogroupedKStream[K, VR]:
        """Starts an aggregation of several grouped streams into one table, each with its own aggregator.

        Add the other streams with `CogroupedKStream.cogroup`, then call ``aggregate``.

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
        check_function(self._where("cogroup"), "aggregator", aggregator, "(key, value, aggregate)")
        return cogrouped.start(self).cogroup(self, aggregator)

    def _option(self, method: str, materialized: Materialized[Any, Any] | None) -> Materialized[Any, Any]:
        return check_option(self._where(method), "materialized", materialized, Materialized, Materialized())

    def _aggregate(
        self,
        node_name: str,
        operation: ops.Operation,
        store: StoreSpec,
        *,
        key_serde: Serde[Any] | None = None,
        grace_ms: int | None = None,
    ) -> KTable[Any, Any]:
        parent, sources = self._partitioned(store)
        node = self._draft.add(
            Process,
            node_name,
            (parent,),
            operation=operation,
            stores=(store,),
            versioned=store.versioned,
            grace_ms=grace_ms,
        )
        queryable_name = store.name if store.queryable else None
        result_key_serde = store.key_serde if grace_ms is None else key_serde
        return ktable.KTable(self._draft, node, node_name, result_key_serde, store.value_serde, sources, queryable_name)

    def _partitioned(self, store: StoreSpec) -> tuple[NodeId, frozenset[str]]:
        if not self._key_changed:
            return self._node, self._sources
        draft, slot = self._draft, ("grouped stream", self._group)
        named_by_user = self._grouped_name is not None
        content = draft.repartition_content(
            self._grouped_name or store.name,
            key_serde=self._key_serde,
            value_serde=self._value_serde,
            named_by_user=named_by_user or store.queryable,
            serdes_from="Grouped({}_serde=…)",
        )
        if slot in draft.shared_repartitions and named_by_user:
            draft.add_again(draft.shared_repartitions[slot])
        else:
            draft.shared_repartitions[slot] = draft.repartition(self._node, content)
        repartition = draft.shared_repartitions[slot]
        return repartition, frozenset((draft.nodes[repartition].name,))


def group(
    stream: KStream[Any, Any], grouped: Grouped[Any, Any], *, key_serde: Serde[Any] | None
) -> KGroupedStream[Any, Any]:
    """Groups a stream by its key as it is now."""
    return KGroupedStream(
        stream._draft,
        stream._node,
        stream._name,
        grouped.key_serde or key_serde,
        grouped.value_serde or stream._value_serde,
        stream._sources,
        stream._key_changed,
        grouped.name,
        stream._draft.next_group(),
    )


def check_windows(where: str, windows: Any) -> None:
    """Raises unless ``windows`` are windows that records can be grouped by."""
    if isinstance(windows, SlidingWindows | SessionWindows):
        return
    if not isinstance(windows, Windows) or isinstance(windows, type):
        message = (
            f"{where}: windows must be TimeWindows, SlidingWindows, SessionWindows or UnlimitedWindows, or windows of "
            f"your own with the members of headrace.Windows; found {describe_value(windows)}"
        )
        raise TopologyError(message)
    for name, value, least in (("size_ms", windows.size_ms, 1), ("grace_ms", windows.grace_ms, 0)):
        if not isinstance(value, int) or value < least:
            message = (
                f"{where}: {name} of {type(windows).__name__} must be at least {least} ms, got {describe_value(value)}"
            )
            raise TopologyError(message)

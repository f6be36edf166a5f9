"""Aggregations of a table whose rows are grouped by a new key."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from headrace.arguments.hints import explaining
from headrace.dsl import hints, ktable
from headrace.dsl.argument_checks import check_function, check_initializer, check_option
from headrace.dsl.functions import add_one, subtract_one, zero
from headrace.dsl.graph import Process, Repartition
from headrace.dsl.handle import Handle
from headrace.dsl.materialized import Materialized
from headrace.dsl.naming import REPARTITION_SUFFIX
from headrace.dsl.options import Grouped
from headrace.dsl.requests import ask_for_old_values, lookup_name
from headrace.dsl.stores import StoreSpec, check_lasting
from headrace.serdes import Serdes
from headrace.topology import operations as ops
from headrace.topology.wire import ChangeSerde

if TYPE_CHECKING:
    from headrace.dsl.ktable import KTable

K = TypeVar("K")
V = TypeVar("V")
VR = TypeVar("VR")

_AGGREGATE = "KTABLE-AGGREGATE-"


@explaining
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class KGroupedTable(Handle[K, V]):
    """Rows of a table grouped by a new key, to be aggregated; made by `KTable.group_by`.

    A row that changes is first taken out of its old group, then added to its new one. The groups are always
    repartitioned, through an internal topic.
    """

    _HINTS: ClassVar[Mapping[str, str]] = hints.GROUPED_TABLE

    _grouped_name: str | None
    _group: int

    def count(self, materialized: Materialized[K, int] | None = None, *, name: str | None = None) -> KTable[K, int]:
        """Counts the rows of each group.

        Stateful: the counts are rows of a key-value store, backed by a changelog. A group that becomes empty stays,
        with count 0.

        >>> from headrace import Materialized, StreamsBuilder, TopologyTestDriver
        >>> builder = StreamsBuilder()
        >>> by_city = builder.table("users").group_by(lambda user, city: (city, user))
        >>> table = by_city.count(materialized=Materialized("counts"))
        >>> with TopologyTestDriver(builder.build()) as driver:
        ...     driver.create_input_topic("users").pipe_key_values([("ada", "Rome"), ("bob", "Rome")])
        ...     driver.get_key_value_store("counts").get("Rome")
        2
        """
        option = self._option("count", materialized)
        store = self._draft.store(option, _AGGREGATE, key_serde=self._key_serde, value_serde=Serdes.long())
        operation = ops.TableAggregate(store.name, zero, add_one, subtract_one)
        return self._aggregate(operation, store, _AGGREGATE, name)

    def reduce(
        self,
        adder: Callable[[V, V], V],
        subtractor: Callable[[V, V], V | None],
        materialized: Materialized[K, V] | None = None,
        *,
        name: str | None = None,
    ) -> KTable[K, V]:
        """Combines the values of each group with ``adder``, and takes those that leave it out with ``subtractor``.

        Both get ``(aggregate, value)``. Stateful: the results are rows of a key-value store. The first value of a
        group is kept as it is; a subtractor that returns None empties the group and deletes its row.

        >>> from headrace import Materialized, StreamsBuilder, TopologyTestDriver
        >>> builder = StreamsBuilder()
        >>> by_city = builder.table("sales").group_by(lambda shop, sale: (sale["city"], sale["sum"]))
        >>> add, subtract = lambda total, value: total + value, lambda total, value: total - value
        >>> table = by_city.reduce(add, subtract, materialized=Materialized("totals"))
        >>> with TopologyTestDriver(builder.build()) as driver:
        ...     topic = driver.create_input_topic("sales")
        ...     topic.pipe_key_values([("s1", {"city": "Rome", "sum": 5}), ("s2", {"city": "Rome", "sum": 7})])
        ...     topic.pipe_input("s1", {"city": "Rome", "sum": 6})
        ...     driver.get_key_value_store("totals").get("Rome")
        13
        """
        option = self._option("reduce", materialized)
        for argument, function in (("adder", adder), ("subtractor", subtractor)):
            check_function(self._where("reduce"), argument, function, "(aggregate, value)")
        # The store takes its prefix from aggregations, the node does not.
        store = self._draft.store(option, _AGGREGATE, key_serde=self._key_serde, value_serde=self._value_serde)
        operation = ops.TableReduce(store.name, adder, subtractor)
        return self._aggregate(operation, store, "KTABLE-REDUCE-", name)

    def aggregate(
        self,
        initializer: Callable[[], VR],
        adder: Callable[[K, V, VR], VR],
        subtractor: Callable[[K, V, VR], VR],
        materialized: Materialized[K, VR] | None = None,
        *,
        name: str | None = None,
    ) -> KTable[K, VR]:
        """Aggregates each group with ``adder``, and takes values that leave it out with ``subtractor``.

        Both get ``(key, value, aggregate)``, starting from ``initializer()``. Stateful: the aggregates are rows of a
        key-value store; name the serde of their type in ``materialized``.

        >>> from headrace import Materialized, StreamsBuilder, TopologyTestDriver
        >>> builder = StreamsBuilder()
        >>> by_city = builder.table("users").group_by(lambda user, city: (city, user))
        >>> table = by_city.aggregate(
        ...     list,
        ...     lambda city, user, users: [*users, user],
        ...     lambda city, user, users: [other for other in users if other != user],
        ...     materialized=Materialized("users-of-city"),
        ... )
        >>> with TopologyTestDriver(builder.build()) as driver:
        ...     driver.create_input_topic("users").pipe_key_values([("ada", "Rome"), ("bob", "Rome"), ("ada", "Oslo")])
        ...     driver.get_key_value_store("users-of-city").get("Rome")
        ['bob']
        """
        option = self._option("aggregate", materialized)
        check_initializer(self._where("aggregate"), initializer)
        for argument, function in (("adder", adder), ("subtractor", subtractor)):
            check_function(self._where("aggregate"), argument, function, "(key, value, aggregate)")
        store = self._draft.store(option, _AGGREGATE, key_serde=self._key_serde)
        operation = ops.TableAggregate(store.name, initializer, adder, subtractor)
        return self._aggregate(operation, store, _AGGREGATE, name)

    def _option(self, method: str, materialized: Materialized[Any, Any] | None) -> Materialized[Any, Any]:
        option = check_option(self._where(method), "materialized", materialized, Materialized, Materialized())
        remedy = "nothing could be subtracted from a row that is gone: give the table before it a ttl"
        check_lasting(self._where(method), option, "the aggregate of a table", remedy)
        return option

    def _aggregate(self, operation: ops.Operation, store: StoreSpec, prefix: str, name: str | None) -> KTable[Any, Any]:
        draft, names = self._draft, self._draft.names
        sink = names.suffixed(name, "-sink", "KSTREAM-SINK-")
        source = names.suffixed(name, "-source", "KSTREAM-SOURCE-")
        node_name = names.named(name, prefix)
        topic = (self._grouped_name or store.name) + REPARTITION_SUFFIX
        slot = ("grouped table", self._group)
        if slot not in draft.shared_repartitions or self._grouped_name is None:
            draft.shared_repartitions[slot] = draft.add(
                Repartition,
                source,
                (self._node,),
                topic=topic,
                sink=sink,
                guard=None,
                key_serde=self._key_serde,
                value_serde=ChangeSerde(self._value_serde),
                serdes_from="Grouped({}_serde=…)",
            )
        else:
            draft.add_again(draft.shared_repartitions[slot])
        repartition = draft.shared_repartitions[slot]
        node = draft.add(
            Process,
            node_name,
            (repartition,),
            operation=operation,
            stores=(store,),
            versioned=store.versioned,
        )
        sources = frozenset((draft.nodes[repartition].name,))
        queryable_name = store.name if store.queryable else None
        return ktable.KTable(draft, node, node_name, store.key_serde, store.value_serde, sources, queryable_name)


def group(
    table: KTable[Any, Any], selector: Callable[..., tuple[Any, Any] | None], grouped: Grouped[Any, Any]
) -> KGroupedTable[Any, Any]:
    """Adds the node that gives a table's changes their new key."""
    draft = table._draft
    name = draft.names.named(grouped.name, "KTABLE-SELECT-")
    node = draft.add(
        Process, name, (table._node,), operation=ops.TableGroupBy(lookup_name(draft, table._node), selector)
    )
    ask_for_old_values(draft, table._node, force=True)
    return KGroupedTable(
        draft, node, name, grouped.key_serde, grouped.value_serde, table._sources, grouped.name, draft.next_group()
    )

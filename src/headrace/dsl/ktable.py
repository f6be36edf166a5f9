"""Tables: the latest value of each key, and every change of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar, cast, overload

from headrace.arguments.hints import explaining
from headrace.dsl import foreign_key_join, grouped_table, hints, kstream, suppress, table_joins
from headrace.dsl.argument_checks import check_function, check_option, check_type
from headrace.dsl.graph import Process
from headrace.dsl.handle import Handle
from headrace.dsl.materialized import Materialized
from headrace.dsl.options import Grouped, TableJoined
from headrace.dsl.requests import ask_for_old_values, lookup_name
from headrace.dsl.stores import StoreSpec, check_lasting, key_value_store
from headrace.dsl.suppressed import Suppressed
from headrace.errors import TopologyError
from headrace.record import WithKey
from headrace.topology import operations as ops

if TYPE_CHECKING:
    from headrace.dsl.grouped_table import KGroupedTable
    from headrace.dsl.kstream import KStream
    from headrace.processor import ValueTransformerWithKey
    from headrace.serdes import Serde

K = TypeVar("K")
V = TypeVar("V")
K1 = TypeVar("K1")
V1 = TypeVar("V1")
VO = TypeVar("VO")
VR = TypeVar("VR")


@explaining
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class KTable(Handle[K, V]):
    """A table: each record is an update of its key's row, and None deletes the row.

    Made by `StreamsBuilder.table`, by aggregations, by operations on tables, and by `KStream.to_table`. A handle is
    immutable: every method adds a node to the builder's topology and returns a new handle.
    """

    _HINTS: ClassVar[Mapping[str, str]] = hints.TABLE

    _queryable_name: str | None = None

    @property
    def queryable_store_name(self) -> str | None:
        """Name of the store with the table's rows, or None if it has none that can be queried.

        >>> from headrace import Materialized, StreamsBuilder
        >>> StreamsBuilder().table("users", materialized=Materialized("users-store")).queryable_store_name
        'users-store'
        """
        return self._queryable_name

    def filter(
        self,
        predicate: Callable[[K, V], bool],
        materialized: Materialized[K, V] | None = None,
        *,
        name: str | None = None,
    ) -> KTable[K, V]:
        """Keeps the rows for which ``predicate(key, value)`` is true; the others are deleted from the result.

        Stateless unless ``materialized`` names a store. A row that does not pass becomes a tombstone in the result;
        rows that were not in the result before are left out if the table's old values are known. Deleted rows stay
        deleted, without a call of the predicate.

        >>> from headrace import StreamsBuilder, TopologyTestDriver
        >>> builder = StreamsBuilder()
        >>> builder.table("in").filter(lambda key, value: value > 1).to_stream().to("out")
        >>> with TopologyTestDriver(builder.build()) as driver:
        ...     driver.create_input_topic("in").pipe_key_values([("a", 1), ("b", 2)])
        ...     driver.create_output_topic("out").read_key_values()
        [KeyValue(key='a', value=None), KeyValue(key='b', value=2)]
        """
        return self._filter("filter", predicate, materialized, name, negate=False)

    def filter_not(
        self,
        predicate: Callable[[K, V], bool],
        materialized: Materialized[K, V] | None = None,
        *,
        name: str | None = None,
    ) -> KTable[K, V]:
        """Keeps the rows for which ``predicate(key, value)`` is false; the others are deleted from the result.

        The opposite of `filter`, with the same rules for tombstones and stores.

        >>> from headrace import StreamsBuilder, TopologyTestDriver
        >>> builder = StreamsBuilder()
        >>> builder.table("in").filter_not(lambda key, value: value > 1).to_stream().to("out")
        >>> with TopologyTestDriver(builder.build()) as driver:
        ...     driver.create_input_topic("in").pipe_key_values([("a", 1)])
        ...     driver.create_output_topic("out").read_key_values()
        [KeyValue(key='a', value=1)]
        """
        return self._filter("filter_not", predicate, materialized, name, negate=True)

    @overload
    def map_values(
        self, mapper: WithKey[VR], materialized: Materialized[K, VR] | None = None, *, name: str | None = None
    ) -> KTable[K, VR]: ...
    @overload
    def map_values(
        self, mapper: Callable[[V], VR], materialized: Materialized[K, VR] | None = None, *, name: str | None = None
    ) -> KTable[K, VR]: ...

    def map_values(
        self,
        mapper: Callable[[V], Any] | WithKey[Any],
        materialized: Materialized[K, Any] | None = None,
        *,
        name: str | None = None,
    ) -> KTable[K, Any]:
        """Replaces the value of each row by ``mapper(value)``; deleted rows are not given to the mapper.

        Stateless unless ``materialized`` names a store; otherwise rows are computed from the table before when they
        are looked up. Wrap the mapper in `with_key` if it wants the key.

        >>> from headrace import StreamsBuilder, TopologyTestDriver
        >>> builder = StreamsBuilder()
        >>> builder.table("in").map_values(str.upper).to_stream().to("out")
        >>> with TopologyTestDriver(builder.build()) as driver:
        ...     driver.create_input_topic("in").pipe_key_values([("a", "x"), ("a", None)])
        ...     driver.create_output_topic("out").read_key_values()
        [KeyValue(key='a', value='X'), KeyValue(key='a', value=None)]
        """
        where = self._where("map_values")
        check_function(where, "mapper", mapper, "(value)", with_key=True)
        option = None if materialized is None else check_type(where, "materialized", materialized, Materialized)
        if option is not None and option.name is None:
            self._draft.names.store("KTABLE-MAPVALUES-")
        store = self._own_store(option, None)
        node_name = self._draft.names.named(name, "KTABLE-MAPVALUES-")
        operation = ops.TableMapValues(self._lookup, mapper, None if store is None else store.name)
        return self._append(node_name, operation, option, store, value_serde=None)

    @overload
    def transform_values(
        self,
        supplier: Callable[[], ValueTransformerWithKey[K, V, VR]],
        *stores: str,
        materialized: Materialized[K, VR] | None = None,
        name: str | None = None,
    ) -> KTable[K, VR]: ...
    @overload
    def transform_values(
        self,
        supplier: Callable[[], ValueTransformerWithKey[K, V, VR]],
        materialized: Materialized[K, VR],
        /,
        *stores: str,
        name: str | None = None,
    ) -> KTable[K, VR]: ...

    def transform_values(
        self,
        supplier: Callable[[], Any],
        *stores: Any,
        materialized: Materialized[K, Any] | None = None,
        name: str | None = None,
    ) -> KTable[K, Any]:
        """Replaces the value of each row by what a `ValueTransformerWithKey` returns, which may use stores.

        ``supplier()`` makes a new transformer per task; a class is one. It is called for deleted rows, too, and
        cannot forward records. ``stores`` names the stores it uses. Give ``materialized`` a store if it keeps state:
        otherwise rows are computed again whenever they are looked up.

        >>> from headrace import StreamsBuilder, TopologyTestDriver, ValueTransformerWithKey
        >>> class Tag(ValueTransformerWithKey):
        ...     def transform(self, key, value):
        ...         return None if value is None else f"{key}:{value}"
        >>> builder = StreamsBuilder()
        >>> builder.table("in").transform_values(Tag).to_stream().to("out")
        >>> with TopologyTestDriver(builder.build()) as driver:
        ...     driver.create_input_topic("in").pipe_input("a", "x")
        ...     driver.create_output_topic("out").read_key_values()
        [KeyValue(key='a', value='a:x')]
        """
        where = self._where("transform_values")
        check_function(where, "supplier", supplier, "() that returns a new transformer")
        if materialized is None and stores and isinstance(stores[0], Materialized):
            materialized, stores = stores[0], stores[1:]
        for store_name in stores:
            check_type(where, "the name of a store", store_name, str)
        option = None if materialized is None else check_type(where, "materialized", materialized, Materialized)
        store = self._own_store(option, None)
        node_name = self._draft.names.named(name, "KTABLE-TRANSFORMVALUES-")
        operation = ops.TableTransformValues(self._lookup, supplier, None if store is None else store.name)
        return self._append(node_name, operation, option, store, value_serde=None, uses=stores)

    @overload
    def to_stream(self, key_selector: None = None, *, name: str | None = None) -> KStream[K, V]: ...
    @overload
    def to_stream(self, key_selector: Callable[[K, V], K1], *, name: str | None = None) -> KStream[K1, V]: ...

    def to_stream(self, key_selector: Callable[[K, V], Any] | None = None, *, name: str | None = None) -> Any:
        """Gives every change of the table as a record of a stream; a deleted row is a record with value None.

        Stateless. With ``key_selector(key, value)`` the records get a new key, so that a later grouping or join
        repartitions them; it is called with value None for deleted rows.

        >>> from headrace import StreamsBuilder, TopologyTestDriver
        >>> builder = StreamsBuilder()
        >>> builder.table("in").to_stream(lambda key, value: key.upper()).to("out")
        >>> with TopologyTestDriver(builder.build()) as driver:
        ...     driver.create_input_topic("in").pipe_key_values([("a", 1), ("a", None)])
        ...     driver.create_output_topic("out").read_key_values()
        [KeyValue(key='A', value=1), KeyValue(key='A', value=None)]
        """
        if key_selector is not None:
            check_function(self._where("to_stream"), "key_selector", key_selector, "(key, value)")
        node_name = self._draft.names.named(name, "KTABLE-TOSTREAM-")
        node = self._draft.add(Process, node_name, (self._node,), operation=ops.TableToStream())
        stream: KStream[Any, V] = kstream.KStream(
            self._draft, node, node_name, self._key_serde, self._value_serde, self._sources
        )
        return stream if key_selector is None else stream.select_key(key_selector)

    def suppress(self, suppressed: Suppressed) -> KTable[K, V]:
        """Holds updates back until a time limit has passed or their window has closed.

        Stateful: waiting updates are in a buffer in memory, backed by a changelog. Only the latest update of a key
        goes on. Time is that of the records, so without further records nothing comes out. A versioned table cannot
        be suppressed.

        >>> from datetime import timedelta
        >>> from headrace import BufferConfig, StreamsBuilder, Suppressed, TopologyTestDriver
        >>> builder = StreamsBuilder()
        >>> wait = Suppressed.until_time_limit(timedelta(seconds=10), BufferConfig.unbounded())
        >>> builder.table("in").suppress(wait).to_stream().to("out")
        >>> with TopologyTestDriver(builder.build()) as driver:
        ...     topic = driver.create_input_topic("in")
        ...     topic.pipe_key_values([("a", 1), ("a", 2)], start_ms=0)
        ...     topic.pipe_input("b", 3, timestamp_ms=10_000)
        ...     driver.create_output_topic("out").read_key_values()
        [KeyValue(key='a', value=2)]
        """
        option = check_type(self._where("suppress"), "suppressed", suppressed, Suppressed)
        return suppress.suppress(self, option)

    def group_by(
        self, selector: Callable[[K, V], tuple[K1 | None, V1 | None] | None], grouped: Grouped[K1, V1] | None = None
    ) -> KGroupedTable[K1, V1]:
        """Groups the rows by a new key: ``selector(key, value)`` gives the new key and the value to aggregate.

        The changes are always repartitioned, through an internal topic that `Grouped` names, and carry old values,
        for which the table is kept in a store. A row whose pair has None as key or value, or is None, takes no part.

        >>> from headrace import Materialized, StreamsBuilder, TopologyTestDriver
        >>> builder = StreamsBuilder()
        >>> by_city = builder.table("users").group_by(lambda user, city: (city, user))
        >>> table = by_city.count(materialized=Materialized("users-per-city"))
        >>> with TopologyTestDriver(builder.build()) as driver:
        ...     driver.create_input_topic("users").pipe_key_values([("ada", "Rome"), ("bob", "Rome"), ("ada", "Oslo")])
        ...     driver.get_key_value_store("users-per-city").get("Rome")
        1
        """
        where = self._where("group_by")
        check_function(where, "selector", selector, "(key, value) that gives a pair")
        return grouped_table.group(self, selector, check_option(where, "grouped", grouped, Grouped, Grouped()))

    def join(
        self,
        other: KTable[Any, VO],
        joiner: Callable[[V, VO], VR] | WithKey[VR],
        materialized: Materialized[K, VR] | None = None,
        *,
        foreign_key: Callable[[V], Any] | WithKey[Any] | None = None,
        table_joined: TableJoined[K, Any] | None = None,
        name: str | None = None,
    ) -> KTable[K, VR]:
        """Joins with a table, on the key or by a foreign key; a row without a partner is not in the result.

        A change on either side updates the result. Both tables are kept in stores. On the key, both must have equally
        many partitions. With ``foreign_key(value)``, which gives the key of a row of ``other``, subscriptions and
        responses go through two internal topics, and the tables may have different numbers of partitions; a row whose
        foreign key is None has no partner.

        ``joiner(value, other_value)`` gives the result's value; wrap it, or ``foreign_key``, in `with_key` if it
        wants the key. ``materialized`` keeps the result in a store of its own. ``table_joined`` is for joins by a
        foreign key.

        >>> from headrace import StreamsBuilder, TopologyTestDriver
        >>> builder = StreamsBuilder()
        >>> orders, users = builder.table("orders"), builder.table("users")
        >>> item_and_user = lambda order, user: [order["item"], user]
        >>> joined = orders.join(users, item_and_user, foreign_key=lambda order: order["user"])
        >>> joined.to_stream().to("out")
        >>> with TopologyTestDriver(builder.build()) as driver:
        ...     driver.create_input_topic("users").pipe_input("u1", "Ada")
        ...     driver.create_input_topic("orders").pipe_input("1", {"item": "tea", "user": "u1"})
        ...     driver.create_output_topic("out").read_key_values()
        [KeyValue(key='1', value=['tea', 'Ada'])]
        """
        return self._join("join", other, joiner, ops.JoinKind.INNER, foreign_key, table_joined, materialized, name)

    def left_join(
        self,
        other: KTable[Any, VO],
        joiner: Callable[[V, VO | None], VR] | WithKey[VR],
        materialized: Materialized[K, VR] | None = None,
        *,
        foreign_key: Callable[[V], Any] | WithKey[Any] | None = None,
        table_joined: TableJoined[K, Any] | None = None,
        name: str | None = None,
    ) -> KTable[K, VR]:
        """Joins with a table, on the key or by a foreign key; a row without a partner is joined with None.

        Like `join`, but no row of this table is lost; it is deleted from the result when it is deleted here.

        >>> from headrace import StreamsBuilder, TopologyTestDriver
        >>> builder = StreamsBuilder()
        >>> builder.table("left").left_join(builder.table("right"), lambda a, b: [a, b]).to_stream().to("out")
        >>> with TopologyTestDriver(builder.build()) as driver:
        ...     driver.create_input_topic("left").pipe_input("k", "a")
        ...     driver.create_input_topic("right").pipe_input("k", "b")
        ...     driver.create_output_topic("out").read_values()
        [['a', None], ['a', 'b']]
        """
        return self._join("left_join", other, joiner, ops.JoinKind.LEFT, foreign_key, table_joined, materialized, name)

    def outer_join(
        self,
        other: KTable[K, VO],
        joiner: Callable[[V | None, VO | None], VR] | WithKey[VR],
        materialized: Materialized[K, VR] | None = None,
        *,
        name: str | None = None,
    ) -> KTable[K, VR]:
        """Joins with a table on the key; a row of either side without a partner is joined with None.

        Like `join`, but no row of either table is lost; it is deleted from the result when it is deleted on both sides.

        >>> from headrace import StreamsBuilder, TopologyTestDriver
        >>> builder = StreamsBuilder()
        >>> builder.table("left").outer_join(builder.table("right"), lambda a, b: [a, b]).to_stream().to("out")
        >>> with TopologyTestDriver(builder.build()) as driver:
        ...     driver.create_input_topic("right").pipe_input("k", "b")
        ...     driver.create_input_topic("left").pipe_input("k", "a")
        ...     driver.create_output_topic("out").read_values()
        [[None, 'b'], ['a', 'b']]
        """
        return self._join("outer_join", other, joiner, ops.JoinKind.OUTER, None, None, materialized, name)

    @property
    def _lookup(self) -> str:
        return lookup_name(self._draft, self._node)

    def _own_store(self, option: Materialized[Any, Any] | None, value_serde: Serde[Any] | None) -> StoreSpec | None:
        if option is not None and option.name is None:
            check_lasting(
                f"table '{self._name}'", option, "rows that no store keeps", "name one: Materialized('…', ttl=…)"
            )
        if option is None or option.name is None:
            return None
        return key_value_store(option.name, option, key_serde=self._key_serde, value_serde=value_serde)

    def _filter(
        self,
        method: str,
        predicate: Callable[..., bool],
        materialized: Materialized[Any, Any] | None,
        name: str | None,
        *,
        negate: bool,
    ) -> KTable[K, V]:
        where = self._where(method)
        check_function(where, "predicate", predicate, "(key, value)")
        option = None if materialized is None else check_type(where, "materialized", materialized, Materialized)
        if option is not None and option.name is None:
            self._draft.names.store("KTABLE-FILTER-")
        store = self._own_store(option, self._value_serde)
        node_name = self._draft.names.named(name, "KTABLE-FILTER-")
        # Old values that cost nothing save the tombstones of rows that were never there.
        old = ask_for_old_values(self._draft, self._node, force=False)
        operation = ops.TableFilter(
            self._lookup, predicate, negate, None if store is None else store.name, send_old=old, use_old=old
        )
        return self._append(node_name, operation, option, store, value_serde=self._value_serde)

    def _append(
        self,
        node_name: str,
        operation: ops.Operation,
        option: Materialized[Any, Any] | None,
        store: StoreSpec | None,
        *,
        value_serde: Serde[Any] | None,
        uses: tuple[str, ...] = (),
    ) -> KTable[K, Any]:
        node = self._draft.add(
            Process,
            node_name,
            (self._node,),
            operation=operation,
            stores=() if store is None else (store,),
            uses=uses,
            versioned=None if option is None else store is not None and store.versioned,
        )
        return replace(
            self,
            _node=node,
            _name=node_name,
            _key_serde=(option and option.key_serde) or self._key_serde,
            _value_serde=(option and option.value_serde) or value_serde,
            _queryable_name=None if store is None else store.name,
        )

    def _join(
        self,
        method: str,
        other: KTable[Any, Any],
        joiner: Callable[..., Any] | WithKey[Any],
        kind: ops.JoinKind,
        foreign_key: Callable[..., Any] | WithKey[Any] | None,
        table_joined: TableJoined[Any, Any] | None,
        materialized: Materialized[Any, Any] | None,
        name: str | None,
    ) -> KTable[K, Any]:
        where = self._where(method)
        check_type(where, "other", other, KTable)
        self._check_same_builder(where, other)
        if callable(materialized):
            message = (
                f"{where}: a foreign key goes by keyword: {method}(other, joiner, foreign_key=…); found a function"
            )
            raise TopologyError(message)
        check_function(where, "joiner", joiner, "(value, other_value)", with_key=True)
        option = None if materialized is None else check_type(where, "materialized", materialized, Materialized)
        if foreign_key is None:
            return table_joins.join_on_key(self, other, joiner, kind, table_joined, option, name)
        check_function(where, "foreign_key", foreign_key, "(value) that gives the other table's key", with_key=True)
        joined = check_option(where, "table_joined", table_joined, TableJoined, TableJoined())
        if name is not None:
            joined = replace(joined, name=name)
        left = kind is ops.JoinKind.LEFT
        return foreign_key_join.join_on_foreign_key(self, other, foreign_key, joiner, joined, option, left=left)


def from_stream(stream: KStream[K, V], materialized: Materialized[K, V], name: str | None) -> KTable[K, V]:
    """Makes a table of a stream, which is repartitioned first if its key has changed."""
    draft = stream._draft
    node_name = draft.names.named(name, "KSTREAM-TOTABLE-")
    store = draft.store(materialized, "KSTREAM-TOTABLE-", key_serde=stream._key_serde, value_serde=stream._value_serde)
    parent, sources = stream._node, stream._sources
    if stream._key_changed:
        content = draft.repartition_content(
            node_name,
            key_serde=store.key_serde,
            value_serde=store.value_serde,
            named_by_user=name is not None,
            serdes_from="Materialized({}_serde=…)",
        )
        parent, sources = draft.repartition(parent, content), frozenset((cast("str", content["name"]),))
    node = draft.add(
        Process,
        node_name,
        (parent,),
        operation=ops.TableSource(store.name if store.kept else None),
        stores=(store,),
        versioned=store.versioned,
    )
    queryable_name = store.name if store.queryable else None
    return KTable(draft, node, node_name, store.key_serde, store.value_serde, sources, queryable_name)

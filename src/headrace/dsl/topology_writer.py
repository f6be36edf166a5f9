"""Topology writer: the logical graph as topology nodes, in the order in which Kafka Streams writes them."""

from __future__ import annotations

from collections.abc import Iterable
from functools import singledispatchmethod

from headrace.config import StreamsConfig
from headrace.dsl.graph import (
    GlobalStore,
    Graph,
    GraphNode,
    Process,
    Repartition,
    Sink,
    StateStore,
    StreamSource,
    TableJoin,
    TableSource,
    WindowedJoin,
)
from headrace.dsl.materialized import store_type
from headrace.dsl.stores import StoreSpec
from headrace.dsl.stream_joins import not_versioned
from headrace.errors import TopologyError
from headrace.state import StoreBuilder, VersionedSupplier
from headrace.timestamps import FailOnInvalidTimestamp
from headrace.topology import SourceNode, Topology
from headrace.topology import operations as ops


def write(graph: Graph, config: StreamsConfig) -> Topology:
    """Returns a new topology with the nodes, stores and internal topics of a graph."""
    return _Writer(graph, config).write()


class _Writer:
    def __init__(self, graph: Graph, config: StreamsConfig) -> None:
        self._graph = graph
        self._topology = Topology(config)
        self._store_type = store_type(config.default_dsl_store, "default_dsl_store")
        self._builders: dict[StoreSpec, StoreBuilder] = {}
        self._owners: dict[str, tuple[StoreSpec, str]] = {}
        self._readers: dict[str, StreamSource | TableSource | GlobalStore] = {}

    def write(self) -> Topology:
        topology = self._topology
        for node in self._graph.in_order():
            self._write(node)
        for group in self._graph.copartitions:
            topology.copartition(sorted(group))
        for names in self._graph.generated:
            topology.add_implicit_names(
                changelog_topic=names.changelog_topic,
                state_store=names.state_store,
                repartition_topic=names.repartition_topic,
            )
        topology.validate()
        topology.check_explicit_names()
        return topology

    def _builder(self, store: StoreSpec, node: str) -> StoreBuilder:
        # Two operations may ask for equal stores of one name; sharing rows must be meant, not an accident.
        first, owner = self._owners.setdefault(store.name, (store, node))
        if first is not store:
            message = (
                f"store '{store.name}': a store's name is unique; found different stores of that name at '{owner}' and "
                f"'{node}'; give each operation its own with Materialized(…)"
            )
            raise TopologyError(message)
        if store not in self._builders:
            self._builders[store] = store.builder(self._store_type)
        return self._builders[store]

    def _check_unread(self, node: StreamSource | TableSource | GlobalStore, topics: Iterable[str]) -> None:
        for topic in topics:
            first = self._readers.setdefault(topic, node)
            if first is not node:
                message = (
                    f"topic '{topic}' has already been registered: a topic is read once as a table or by streams only; "
                    f"found {_reader(first)} and {_reader(node)}; {_remedy(first, node)}"
                )
                raise TopologyError(message)

    @singledispatchmethod
    def _write(self, node: GraphNode) -> None:
        message = f"node '{node.name}': there is no way to write a {type(node).__name__}"
        raise NotImplementedError(message)

    @_write.register
    def _(self, node: StreamSource) -> None:
        consumed = node.consumed
        self._check_unread(node, sorted(node.topics))
        self._topology.add_source(
            node.name,
            *sorted(node.topics),
            pattern=node.pattern,
            key_serde=consumed.key_serde,
            value_serde=consumed.value_serde,
            timestamp_extractor=consumed.timestamp_extractor,
            offset_reset=consumed.offset_reset,
        )

    @_write.register
    def _(self, node: TableSource) -> None:
        consumed = node.consumed
        self._check_unread(node, (node.topic,))
        if node.is_global:
            source = SourceNode(
                node.source,
                (node.topic,),
                None,
                consumed.key_serde,
                consumed.value_serde,
                consumed.timestamp_extractor,
            )
            self._topology.add_global_operation(self._builder(node.store, node.name), source, node.name, node.operation)
            return
        self._topology.add_source(
            node.source,
            node.topic,
            key_serde=consumed.key_serde,
            value_serde=consumed.value_serde,
            timestamp_extractor=consumed.timestamp_extractor,
            offset_reset=consumed.offset_reset,
        )
        if node.operation.store is None:
            self._topology.add_operation(node.name, node.operation, (node.source,))
            return
        builder = self._builder(node.store, node.name)
        if node.reuses_topic:
            builder = builder.with_logging_disabled()
        self._topology.add_operation(node.name, node.operation, (node.source,), (builder,))
        if node.reuses_topic:
            self._topology.connect_source_store_and_topic(builder.name, node.topic)

    @_write.register
    def _(self, node: StateStore) -> None:
        self._topology.add_state_store(node.builder)

    @_write.register
    def _(self, node: GlobalStore) -> None:
        consumed = node.consumed
        self._check_unread(node, (node.topic,))
        self._topology.add_global_store(
            node.builder,
            node.source,
            node.topic,
            node.name,
            node.supplier,
            key_serde=consumed.key_serde,
            value_serde=consumed.value_serde,
            timestamp_extractor=consumed.timestamp_extractor,
        )

    @_write.register
    def _(self, node: Process) -> None:
        operation = node.operation
        kept = not (isinstance(operation, ops.TableSource) and operation.store is None)
        builders = [self._builder(store, node.name) for store in node.stores] if kept else []
        parents = self._graph.parent_names(node)
        self._topology.add_operation(node.name, operation, parents, (*builders, *node.uses))
        if node.buffer_ms is not None:
            self._check_history(node, node.buffer_ms)

    def _check_history(self, node: Process, grace_ms: int) -> None:
        for name in node.uses:
            supplier = self._topology.store_builders[name].supplier
            if not isinstance(supplier, VersionedSupplier):
                raise not_versioned(node.name)
            if grace_ms > supplier.history_retention_ms:
                message = (
                    f"join '{node.name}': the history retention of store '{name}' must be at least the grace period, "
                    f"{grace_ms} ms; found {supplier.history_retention_ms} ms; keep more history or wait less"
                )
                raise TopologyError(message)

    @_write.register
    def _(self, node: Repartition) -> None:
        topology, parents = self._topology, self._graph.parent_names(node)
        topology.add_internal_topic(node.topic, node.partitions)
        if node.guard is not None:
            guard = ops.NullKeyFilter() if node.drops_null_keys else ops.PassThrough()
            topology.add_operation(node.guard, guard, parents)
            parents = (node.guard,)
        topology.add_sink(
            node.sink,
            node.topic,
            *parents,
            key_serde=node.key_serde,
            value_serde=node.value_serde,
            partitioner=node.partitioner,
        )
        topology.serdes_named_in(node.sink, node.serdes_from)
        topology.add_source(
            node.name,
            node.topic,
            key_serde=node.key_serde,
            value_serde=node.value_serde,
            timestamp_extractor=FailOnInvalidTimestamp(),
        )

    @_write.register
    def _(self, node: Sink) -> None:
        if node.internal and node.topic is not None:
            self._topology.add_internal_topic(node.topic)
        target = node.topic if node.extractor is None else node.extractor
        assert target is not None  # a sink has a topic or an extractor
        self._topology.add_sink(
            node.name,
            target,
            *self._graph.parent_names(node),
            key_serde=node.key_serde,
            value_serde=node.value_serde,
            partitioner=node.partitioner,
        )
        inside = "Consumed or Materialized of the tables that are joined"
        self._topology.serdes_named_in(node.name, inside if node.internal else "Produced({}_serde=…)")

    @_write.register
    def _(self, node: WindowedJoin) -> None:
        add, this_store = self._topology.add_operation, self._builder(node.this_store, node.this_windowed)
        operation = node.this_operation
        if node.on_itself:
            join = ops.StreamSelfJoin(operation.windows, operation.joiner, this_store.name)
            add(node.name, join, (node.this_windowed,), (this_store,))
            return
        unmatched = [] if node.unmatched_store is None else [self._builder(node.unmatched_store, node.name)]
        other_store = self._builder(node.other_store, node.other_windowed)
        add(node.this, operation, (node.this_windowed,), (other_store, *unmatched))
        add(node.other, node.other_operation, (node.other_windowed,), (this_store, *unmatched))
        add(node.name, ops.PassThrough(), (node.this, node.other))

    @_write.register
    def _(self, node: TableJoin) -> None:
        topology, names = self._topology, self._graph.nodes
        topology.add_operation(node.this, node.this_operation, (names[node.this_table].name,))
        topology.add_operation(node.other, node.other_operation, (names[node.other_table].name,))
        stores = () if node.store is None else (self._builder(node.store, node.name),)
        topology.add_operation(node.name, node.merge_operation, (node.this, node.other), stores)
        topology.connect_processor_and_state_stores(node.this, *node.other_stores)
        topology.connect_processor_and_state_stores(node.other, *node.this_stores)


def _reader(node: GraphNode) -> str:
    if isinstance(node, TableSource):
        return f"the {'global table' if node.is_global else 'table'} '{node.name}'"
    return f"the stream '{node.name}'" if isinstance(node, StreamSource) else f"the global store '{node.name}'"


def _remedy(first: GraphNode, second: GraphNode) -> str:
    kinds = {type(first), type(second)}
    is_global = any(isinstance(node, GlobalStore) or getattr(node, "is_global", False) for node in (first, second))
    if is_global:
        return "a global table or store needs a topic of its own: write the records to another one, too"
    if kinds == {StreamSource, TableSource}:
        return "read it once, and call `.to_stream()` on the table or `.to_table()` on the stream"
    return "call table() once and use its result twice"

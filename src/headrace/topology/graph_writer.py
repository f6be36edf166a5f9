"""Graph writer: adds nodes, stores and internal topics to a topology, with the rules that they obey."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from headrace.config import StreamsConfig
from headrace.errors import TopologyError, describe_value, did_you_mean
from headrace.processor import ProcessorWrapper
from headrace.state import StoreBuilder
from headrace.topology.graph import Graph
from headrace.topology.node_checks import (
    brought_stores,
    check_function,
    check_name,
    check_names,
    check_serde,
    check_store_builder,
    check_supplier,
    check_topic,
    check_transformer_supplier,
    invalid,
)
from headrace.topology.nodes import (
    GlobalStore,
    ImplicitNames,
    InternalTopic,
    Node,
    ProcessorNode,
    SinkNode,
    SourceNode,
)
from headrace.topology.operations import Operation, TableTransformValues, UserProcessor
from headrace.topology.partitions import check_fixed_numbers

_logger = logging.getLogger(__name__)


class GraphWriter(Graph):
    """A graph that can grow. A call that fails leaves it as it was."""

    def __init__(self, config: StreamsConfig | None = None) -> None:
        super().__init__()
        if config is not None and not isinstance(config, StreamsConfig):
            where, found = "topology", f"found {describe_value(config)}"
            remedy = "pass StreamsConfig(…) or StreamsConfig.of({…})"
            raise invalid(where, "the configuration must be a StreamsConfig", found, remedy)
        self._explicit_names = config is not None and config.ensure_explicit_internal_resource_naming
        self._wrapper: ProcessorWrapper | None = None if config is None else config.processor_wrapper

    def __getstate__(self) -> dict[str, Any]:
        # The wrapper has done its work, and need not be able to travel.
        return vars(self) | {"_wrapper": None}

    def add_operation(
        self, name: str, operation: Operation, parents: Sequence[str], stores: Iterable[str | StoreBuilder] = ()
    ) -> None:
        """Adds a processor that runs an operation and uses stores, given by name or, if they are new, by builder.

        A user's processor is wrapped, and the stores that its supplier brings along are added.
        """
        self._check_new_name("processor", name)
        where = f"processor '{name}'"
        builders: list[StoreBuilder] = []
        if isinstance(operation, UserProcessor):
            check_supplier(where, operation.supplier, fixed_key=operation.fixed_key)
            brought = brought_stores(where, operation.supplier)
            operation = self._wrap_processor(name, operation)
            builders += brought_stores(where, operation.supplier) or brought
        elif isinstance(operation, TableTransformValues):
            check_transformer_supplier(where, operation.supplier)
            builders += brought_stores(where, operation.supplier)
        given = [store if isinstance(store, str) else check_store_builder(where, store) for store in stores]
        builders += [store for store in given if not isinstance(store, str)]
        checked = self._check_parents(where, name, parents)
        for builder in builders:
            self._check_store(where, builder)
        for store in given:
            if isinstance(store, str) and all(builder.name != store for builder in builders):
                self._check_connectable(where, store)
        self._put_processor(name, checked, operation)
        for builder in builders:
            self._stores[builder.name] = builder
            self._connect(name, builder.name)
        for store in given:
            if isinstance(store, str):
                self._connect(name, store)

    def add_global_operation(
        self,
        builder: StoreBuilder,
        source: SourceNode,
        processor: str,
        operation: Operation,
        *,
        reprocess_on_restore: bool = False,
    ) -> None:
        """Adds a global store, the source of its one topic and the processor that keeps it up to date."""
        checked = check_store_builder("global store", builder)
        where = f"global store '{checked.name}'"
        if checked.name in self._stores or checked.name in self._global_stores:
            remedy = "give this one another name"
            raise invalid(where, "a store's name is unique", "a store of that name has already been added", remedy)
        self._check_new_pair(where, source.name, processor)
        (topic,) = source.topics
        self._check_unread(where, check_topic(where, topic))
        self._check_input(where, source.key_serde, source.value_serde, source.timestamp_extractor)
        quiet = checked.with_logging_disabled()
        self._put(source)
        self._put(ProcessorNode(processor, (source.name,), operation, (quiet.name,)))
        self._global_stores[quiet.name] = GlobalStore(
            quiet, source.name, processor, topic, reprocess_on_restore=reprocess_on_restore
        )

    def add_internal_topic(self, name: str, partitions: int | None = None) -> None:
        """Declares a topic as internal; a number of partitions that was asked for is kept whatever happens."""
        where = f"internal topic '{name}'"
        check_topic(where, name)
        if partitions is not None and (
            not isinstance(partitions, int) or isinstance(partitions, bool) or partitions < 1
        ):
            found = f"found {describe_value(partitions)}"
            raise invalid(where, "the number of partitions must be at least 1", found, "pass a positive integer")
        self._internal_topics[name] = InternalTopic(name, partitions, enforced=partitions is not None)

    def copartition(self, source_names: Iterable[str]) -> None:
        """Demands that the topics of these sources have equally many partitions."""
        self._copartitions += (tuple(dict.fromkeys(source_names)),)

    def connect_source_store_and_topic(self, store: str, topic: str) -> None:
        """Makes a source topic the changelog of the store that is filled from it."""
        if store in self._source_changelogs:
            where, found = f"store '{store}'", f"'{self._source_changelogs[store]}' is already connected"
            raise invalid(where, "a store has one changelog", found, "connect it once")
        self._source_changelogs[store] = topic

    def serdes_named_in(self, sink: str, option: str) -> None:
        """Remembers in which option of the DSL the serdes of a sink are named, for messages."""
        node = self._nodes[sink]
        if isinstance(node, SinkNode):
            self._nodes[sink] = replace(node, serdes_from=option)

    def add_implicit_names(
        self,
        *,
        changelog_topic: str | None = None,
        state_store: str | None = None,
        repartition_topic: str | None = None,
    ) -> None:
        """Remembers names that were generated because the user gave none."""
        self._implicit_names += (ImplicitNames(changelog_topic, state_store, repartition_topic),)

    def check_explicit_names(self) -> None:
        """Refuses generated names of internal resources if the configuration demands explicit ones."""
        lines = []
        for kind, attribute in (
            ("changelog topic", "changelog_topic"),
            ("state store", "state_store"),
            ("repartition topic", "repartition_topic"),
        ):
            if names := [name for each in self._implicit_names if (name := getattr(each, attribute))]:
                lines.append(f"Following {kind}(s) has not been named: {', '.join(names)}")
        if not lines:
            return
        if not self._explicit_names:
            _logger.debug("Generated names change with the topology. %s", "; ".join(lines))
            return
        remedy = (
            "name stores with `Materialized`, `StreamJoined` or `Suppressed`, and repartition topics with `Grouped`, "
            "`Joined`, `StreamJoined` or `Repartitioned`; or turn `ensure_explicit_internal_resource_naming` off"
        )
        raise TopologyError("\n".join([*lines, remedy]))

    def validate(self) -> None:
        """Checks what can only be known once the topology is complete."""
        for sources in self._copartitions:
            for name in sources:
                if not isinstance(self._nodes.get(name), SourceNode):
                    where, found = "co-partitioning", f"'{name}' is not a source{did_you_mean(name, self._nodes)}"
                    raise invalid(where, "it concerns sources", found, "name the sources of both inputs")
        check_fixed_numbers(self._nodes, self._internal_topics, self._copartitions)

    def _put(self, node: Node) -> None:
        self._nodes[node.name] = node
        self._children[node.name] = ()
        for parent in node.parents:
            self._children[parent] += (node.name,)

    def _put_processor(self, name: str, parents: tuple[str, ...], operation: Operation) -> None:
        self._put(ProcessorNode(name, parents, operation))

    def _connect(self, processor: str, store: str) -> None:
        node = self._nodes[processor]
        if isinstance(node, ProcessorNode) and store not in node.stores:
            self._nodes[processor] = replace(node, stores=(*node.stores, store))

    def _wrap_processor(self, name: str, operation: UserProcessor) -> UserProcessor:
        if self._wrapper is None:
            return operation
        wrapped = f"processor '{name}', wrapped by {type(self._wrapper).__name__}"
        if operation.fixed_key:
            fixed_key_supplier = self._wrapper.wrap_fixed_key_processor_supplier(name, operation.supplier)
            check_supplier(wrapped, fixed_key_supplier)
            return replace(operation, supplier=fixed_key_supplier)
        supplier = self._wrapper.wrap_processor_supplier(name, operation.supplier)
        check_supplier(wrapped, supplier)
        return replace(operation, supplier=supplier)

    def _check_new_name(self, kind: str, name: str) -> None:
        if check_name(kind, name) in self._nodes:
            where, found = f"{kind} '{name}'", f"'{name}' is already added"
            raise invalid(where, "a node's name is unique", found, "give the second one another name")

    def _check_new_pair(self, where: str, source: str, processor: str) -> None:
        self._check_new_name("source", source)
        self._check_new_name("processor", processor)
        if source == processor:
            found = f"both are called '{source}'"
            raise invalid(where, "its source and its processor have different names", found, "rename one of them")

    def _check_input(self, where: str, key_serde: Any, value_serde: Any, timestamp_extractor: Any) -> None:
        check_serde(where, "key serde", key_serde)
        check_serde(where, "value serde", value_serde)
        check_function(where, "timestamp extractor", timestamp_extractor, "(record, partition_time_ms)")

    def _check_unread(self, where: str, topic: str) -> None:
        for node in self._nodes.values():
            if isinstance(node, SourceNode) and node.reads(topic):
                how = f"matches the pattern of source '{node.name}'" if node.pattern else f"is read by '{node.name}'"
                found = f"topic '{topic}' has already been registered: it {how}"
                remedy = f"use the records of '{node.name}'"
                raise invalid(where, "a topic can be read by one source only", found, remedy)

    def _check_pattern_is_free(self, where: str, pattern: re.Pattern[str]) -> None:
        for source in self.source_nodes:
            if taken := [topic for topic in source.topics if pattern.fullmatch(topic)]:
                found = f"pattern '{pattern.pattern}' matches '{taken[0]}', which is already read by '{source.name}'"
                raise invalid(where, "a topic can be read by one source only", found, "narrow the pattern")

    def _check_parents(self, where: str, name: str, parents: Iterable[str]) -> tuple[str, ...]:
        checked = check_names(where, "parent", parents)
        if not checked:
            remedy = "name the nodes whose records it gets"
            raise invalid(where, "at least one parent is needed", "none was given", remedy)
        of_global_stores = {each for store in self._global_stores.values() for each in (store.source, store.processor)}
        for parent in checked:
            if parent == name:
                raise invalid(where, "a node cannot be its own parent", f"'{parent}' is", "name another node")
            if parent not in self._nodes:
                found = f"parent '{parent}' is unknown{did_you_mean(parent, self._nodes)}"
                raise invalid(where, "a parent must be added first", found, "add it before its children")
            if isinstance(self._nodes[parent], SinkNode):
                remedy = "name a source or a processor"
                raise invalid(where, "a sink cannot be a parent", f"'{parent}' is a sink", remedy)
            if parent in of_global_stores:
                found, remedy = f"'{parent}' belongs to one", "read the global store from the processor instead"
                raise invalid(where, "the nodes of a global store have no other children", found, remedy)
        return checked

    def _check_store(self, where: str, builder: StoreBuilder) -> None:
        known = self._stores.get(builder.name)
        if builder.name in self._global_stores or (known is not None and known != builder):
            kind = "global store" if known is None else "store"
            users = [node.name for node in self.processor_nodes if builder.name in node.stores]
            used = f", used by '{users[0]}'" if users else ""
            found = f"a different {kind} has already been added with the name '{builder.name}'{used}"
            raise invalid(where, "a store's name is unique", found, "rename one of them, or share one builder")

    def _check_connectable(self, where: str, store: str) -> None:
        if store in self._global_stores:
            found, remedy = f"'{store}' is one", "leave it out, and get it by name"
            raise invalid(where, "a global store can be used without being connected", found, remedy)
        if store not in self._stores:
            found = f"store '{store}' is not added yet{did_you_mean(store, self._stores)}"
            raise invalid(where, "a store must be added before it is connected", found, "add it with add_state_store")

    def _check_processor(self, where: str, name: str) -> None:
        node = self._nodes.get(name)
        if node is None:
            found = f"processor '{name}' is not added yet{did_you_mean(name, self._nodes)}"
            raise invalid(where, "a processor must be added before its stores are connected", found, "add it first")
        if not isinstance(node, ProcessorNode):
            kind = "source" if isinstance(node, SourceNode) else "sink"
            remedy = "name a processor"
            raise invalid(where, "stores are connected to processors", f"'{name}' is a {kind}", remedy)

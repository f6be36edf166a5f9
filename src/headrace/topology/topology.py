"""The public way to build a topology node by node; the DSL writes its operations through the same calls."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Any, TypeAlias

from headrace.config import StreamsConfig
from headrace.config.named_objects import find_partitioner
from headrace.processor import FixedKeyProcessorSupplier, ProcessorSupplier, TopicNameExtractor
from headrace.serdes import Serde
from headrace.state import StoreBuilder
from headrace.topology.graph_writer import GraphWriter
from headrace.topology.node_checks import (
    check_function,
    check_name,
    check_names,
    check_pattern,
    check_serde,
    check_store_builder,
    check_supplier,
    check_target,
    check_topic,
    invalid,
)
from headrace.topology.nodes import Extractor, Partitioner, SinkNode, SourceNode
from headrace.topology.offset_reset import AutoOffsetReset
from headrace.topology.operations import UserProcessor

OffsetReset: TypeAlias = AutoOffsetReset | str | timedelta


class Topology(GraphWriter):
    """A graph of sources, processors, sinks and stores: the Processor API.

    Every call checks what it gets, adds to the topology and returns it, so that calls can be chained. With a
    configuration, its ``processor_wrapper`` wraps the processors as they are added.

    >>> from headrace import Processor, Record, Topology
    >>> class Shout(Processor[str, str, str, str]):
    ...     def process(self, record: Record[str, str]) -> None:
    ...         self.context.forward(record.with_value(record.value.upper()))
    >>> topology = Topology()
    >>> topology.add_source("source", "in").add_processor("shout", Shout, "source").add_sink("sink", "out", "shout")
    <Topology: 3 nodes, 0 stores>
    """

    def __init__(self, config: StreamsConfig | None = None) -> None:
        super().__init__(config)

    def add_source(
        self,
        name: str,
        *topics: str,
        pattern: re.Pattern[str] | None = None,
        key_serde: Serde[Any] | None = None,
        value_serde: Serde[Any] | None = None,
        timestamp_extractor: Extractor | None = None,
        offset_reset: OffsetReset | None = None,
    ) -> Topology:
        """Adds a source that reads topics, or all topics whose whole names match a pattern.

        A topic can be read by one source only. Serdes and extractor default to those of the application.

        >>> Topology().add_source("orders", "orders-eu", "orders-us", offset_reset="earliest")
        <Topology: 1 nodes, 0 stores>
        >>> Topology().add_source("orders", pattern=re.compile("orders-.*"))
        <Topology: 1 nodes, 0 stores>
        """
        self._check_new_name("source", name)
        where = f"source '{name}'"
        if bool(topics) == (pattern is not None):
            found = "both were given" if topics else "neither was given"
            remedy = "pass the names of topics, or pattern=re.compile('…')"
            raise invalid(where, "a source reads either topics or a pattern", found, remedy)
        for position, topic in enumerate(topics):
            check_topic(where, topic)
            self._check_unread(where, topic)
            if topic in topics[:position]:
                remedy = "name it once"
                raise invalid(where, "a topic can be read once only", f"topic '{topic}' has already been named", remedy)
        if pattern is not None:
            self._check_pattern_is_free(where, check_pattern(where, pattern))
        self._check_input(where, key_serde, value_serde, timestamp_extractor)
        reset = None if offset_reset is None else AutoOffsetReset.of(offset_reset)
        self._put(SourceNode(name, topics, pattern, key_serde, value_serde, timestamp_extractor, reset))
        return self

    def add_processor(
        self, name: str, supplier: ProcessorSupplier | FixedKeyProcessorSupplier, *parents: str
    ) -> Topology:
        """Adds a processor that gets the records of its parents, which must be there already.

        The supplier makes a new processor for each task, so it must return a new one each time; a class does. If it has
        ``stores``, those are added and connected.

        >>> from headrace import Processor
        >>> class Mine(Processor):
        ...     def process(self, record):
        ...         self.context.forward(record)
        >>> Topology().add_source("source", "in").add_processor("mine", Mine, "source")
        <Topology: 2 nodes, 0 stores>
        """
        self._check_new_name("processor", name)
        fixed_key = check_supplier(f"processor '{name}'", supplier)
        self.add_operation(name, UserProcessor(supplier, fixed_key=fixed_key), parents)
        return self

    def add_sink(
        self,
        name: str,
        topic: str | TopicNameExtractor,
        *parents: str,
        key_serde: Serde[Any] | None = None,
        value_serde: Serde[Any] | None = None,
        partitioner: Partitioner | str | None = None,
    ) -> Topology:
        """Adds a sink that writes the records of its parents to a topic.

        Instead of a topic it takes a function ``(key, value, context) -> topic`` that chooses one for each record. The
        partition comes from the key, as in Kafka, or from ``partitioner(topic, key, value, partitions)``, which can
        also be named as ``module:Name``.

        >>> def by_key(key, value, context):
        ...     return f"out-{key}"
        >>> Topology().add_source("source", "in").add_sink("sink", by_key, "source")
        <Topology: 2 nodes, 0 stores>
        """
        self._check_new_name("sink", name)
        where = f"sink '{name}'"
        check_target(where, topic)
        checked = self._check_parents(where, name, parents)
        check_serde(where, "key serde", key_serde)
        check_serde(where, "value serde", value_serde)
        if isinstance(partitioner, str):
            partitioner = find_partitioner(f"{where}: the partitioner", partitioner)
        check_function(where, "partitioner", partitioner, "(topic, key, value, partitions)")
        fixed, extractor = (topic, None) if isinstance(topic, str) else (None, topic)
        self._put(SinkNode(name, checked, fixed, extractor, key_serde, value_serde, partitioner))
        return self

    def add_state_store(self, builder: StoreBuilder, *processors: str) -> Topology:
        """Adds a store and connects it to processors, which then share it and belong to one sub-topology.

        >>> from headrace import Serdes, Stores
        >>> supplier = Stores.in_memory_key_value_store("counts")
        >>> Topology().add_state_store(Stores.key_value_store_builder(supplier, Serdes.string(), Serdes.long()))
        <Topology: 0 nodes, 1 stores>
        """
        checked = check_store_builder("state store", builder)
        where = f"state store '{checked.name}'"
        self._check_store(where, checked)
        names = check_names(where, "processor", processors)
        for name in names:
            self._check_processor(where, name)
        self._stores[checked.name] = checked
        for name in names:
            self._connect(name, checked.name)
        return self

    def add_read_only_state_store(
        self,
        builder: StoreBuilder,
        source: str,
        topic: str,
        processor: str,
        supplier: ProcessorSupplier,
        *,
        key_serde: Serde[Any] | None = None,
        value_serde: Serde[Any] | None = None,
        timestamp_extractor: Extractor | None = None,
    ) -> Topology:
        """Adds a store that a processor fills from a topic, and that other processors may only read.

        The topic is read from its beginning and is the store's changelog, so nothing is written for it.

        >>> from headrace import Processor, Serdes, Stores
        >>> class Keep(Processor):
        ...     def process(self, record):
        ...         self.context.get_state_store("prices").put(record.key, record.value)
        >>> prices = Stores.key_value_store_builder(
        ...     Stores.in_memory_key_value_store("prices"), Serdes.string(), Serdes.string()
        ... )
        >>> Topology().add_read_only_state_store(prices, "prices-source", "prices", "prices-update", Keep)
        <Topology: 2 nodes, 1 stores>
        """
        checked = check_store_builder("read-only state store", builder)
        where = f"read-only state store '{checked.name}'"
        self._check_store(where, checked)
        self._check_new_pair(where, source, processor)
        self._check_unread(where, check_topic(where, topic))
        self._check_input(where, key_serde, value_serde, timestamp_extractor)
        fixed_key = check_supplier(f"processor '{processor}'", supplier)
        reset = AutoOffsetReset.earliest()
        self._put(SourceNode(source, (topic,), None, key_serde, value_serde, timestamp_extractor, reset))
        self._put_processor(processor, (source,), UserProcessor(supplier, fixed_key=fixed_key))
        self._stores[checked.name] = checked.with_logging_disabled()
        self._connect(processor, checked.name)
        self.connect_source_store_and_topic(checked.name, topic)
        return self

    def add_global_store(
        self,
        builder: StoreBuilder,
        source: str,
        topic: str,
        processor: str,
        supplier: ProcessorSupplier,
        *,
        key_serde: Serde[Any] | None = None,
        value_serde: Serde[Any] | None = None,
        timestamp_extractor: Extractor | None = None,
    ) -> Topology:
        """Adds a store that every task sees as a whole, kept up to date from a topic by a processor of its own.

        All processors may read it without being connected. It is not logged: the topic is its changelog.

        >>> from headrace import Processor, Serdes, Stores
        >>> class Keep(Processor):
        ...     def process(self, record):
        ...         self.context.get_state_store("rates").put(record.key, record.value)
        >>> rates = Stores.key_value_store_builder(
        ...     Stores.in_memory_key_value_store("rates"), Serdes.string(), Serdes.double()
        ... )
        >>> Topology().add_global_store(rates, "rates-source", "rates", "rates-update", Keep)
        <Topology: 2 nodes, 1 stores>
        """
        check_name("global store: processor", processor)
        fixed_key = check_supplier(f"processor '{processor}'", supplier)
        self.add_global_operation(
            builder,
            SourceNode(source, (topic,), None, key_serde, value_serde, timestamp_extractor),
            processor,
            UserProcessor(supplier, fixed_key=fixed_key),
            reprocess_on_restore=True,
        )
        return self

    def connect_processor_and_state_stores(self, processor: str, *stores: str) -> Topology:
        """Connects a processor to stores that are there already, so that it may use them.

        Processors that share a store belong to one sub-topology. Global stores need no connection.

        >>> from headrace import Processor, Serdes, Stores
        >>> class Count(Processor):
        ...     def process(self, record):
        ...         store = self.context.get_state_store("counts")
        ...         store.put(record.key, (store.get(record.key) or 0) + 1)
        >>> supplier = Stores.in_memory_key_value_store("counts")
        >>> topology = Topology().add_source("source", "in").add_processor("count", Count, "source")
        >>> topology = topology.add_state_store(
        ...     Stores.key_value_store_builder(supplier, Serdes.string(), Serdes.long())
        ... )
        >>> topology.connect_processor_and_state_stores("count", "counts").nodes["count"].stores
        ('counts',)
        """
        where = f"processor '{check_name('processor', processor)}'"
        names = check_names(where, "store", stores)
        if not names:
            remedy = "name the stores that the processor uses"
            raise invalid(where, "at least one store is needed", "none was given", remedy)
        for name in names:
            self._check_connectable(where, name)
        self._check_processor(where, processor)
        for name in names:
            self._connect(processor, name)
        return self

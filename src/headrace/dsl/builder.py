"""StreamsBuilder: streams and tables from topics, and the topology that they add up to."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any, TypeVar, overload

from headrace.arguments.hints import Hinting, explaining
from headrace.config import StreamsConfig
from headrace.dsl.argument_checks import check_function, check_option, check_topic
from headrace.dsl.draft import Draft
from headrace.dsl.global_ktable import GlobalKTable
from headrace.dsl.graph import GlobalStore, StateStore, StreamSource, TableSource
from headrace.dsl.kstream import KStream
from headrace.dsl.ktable import KTable
from headrace.dsl.materialized import Materialized
from headrace.dsl.options import Consumed
from headrace.dsl.rewrites import rewrite
from headrace.dsl.stores import StoreSpec, check_lasting, key_value_store
from headrace.dsl.topology_writer import write
from headrace.errors import TopologyError, describe_value
from headrace.state import StoreBuilder
from headrace.topology import Topology
from headrace.topology import operations as ops

K = TypeVar("K")
V = TypeVar("V")


@explaining
class StreamsBuilder(Hinting):
    """Builds a topology from streams and tables.

    Every call on the builder, and on its streams and tables, adds nodes. Names that are left out are generated, as in
    Kafka Streams. ``config`` is the default for `build`: the type of stores, optimisations, required names.

    >>> from headrace import TopologyTestDriver
    >>> builder = StreamsBuilder()
    >>> words = builder.stream("lines").flat_map_values(str.split)
    >>> counts = words.group_by(lambda key, word: word).count(materialized=Materialized("counts"))
    >>> with TopologyTestDriver(builder.build()) as driver:
    ...     driver.create_input_topic("lines").pipe_input(None, "to be or not to be")
    ...     driver.get_key_value_store("counts").get("be")
    2
    """

    def __init__(self, config: StreamsConfig | Mapping[str, Any] | None = None) -> None:
        self._config = StreamsConfig.of(config)
        self._draft = Draft()

    @overload
    def stream(self, topics: str | Iterable[str] | re.Pattern[str], consumed: None = None) -> KStream[Any, Any]: ...
    @overload
    def stream(self, topics: str | Iterable[str] | re.Pattern[str], consumed: Consumed[K, V]) -> KStream[K, V]: ...

    def stream(self, topics: str | Iterable[str] | re.Pattern[str], consumed: Any = None) -> Any:
        """Reads one topic, several, or all whose names match a pattern, as a stream.

        Streams of the same topics share one source. A pattern must match a topic's whole name.

        >>> builder = StreamsBuilder()
        >>> builder.stream(["orders-eu", "orders-us"])
        <KStream 'KSTREAM-SOURCE-0000000000'>
        >>> builder.stream(re.compile("clicks-.*"), Consumed(name="clicks"))
        <KStream 'clicks'>
        """
        where = "stream()"
        if isinstance(consumed, str) and isinstance(topics, str):
            message = f"{where}: several topics are one argument; pass a list of topics: [{topics!r}, {consumed!r}]"
            raise TopologyError(message)
        option = check_option(where, "consumed", consumed, Consumed, Consumed())
        content = {"pattern": topics} if isinstance(topics, re.Pattern) else {"topics": _topics(where, topics)}
        name = self._draft.names.named(option.name, "KSTREAM-SOURCE-")
        node = self._draft.add(StreamSource, name, (), consumed=option, **content)
        return KStream(self._draft, node, name, option.key_serde, option.value_serde, frozenset((name,)))

    @overload
    def table(
        self, topic: str, consumed: None = None, materialized: Materialized[Any, Any] | None = None
    ) -> KTable[Any, Any]: ...
    @overload
    def table(
        self, topic: str, consumed: Consumed[K, V], materialized: Materialized[Any, Any] | None = None
    ) -> KTable[K, V]: ...

    def table(self, topic: str, consumed: Any = None, materialized: Materialized[Any, Any] | None = None) -> Any:
        """Reads a topic as a table: the latest value of each key.

        A record with value None deletes its key's row; one without a key is dropped. Rows are kept in a store if
        ``materialized`` names one, or if a later operation needs them. A topic can be read as a table only once, and
        not as a stream, too: use `KTable.to_stream`, or `KStream.to_table`.

        >>> from headrace import TopologyTestDriver
        >>> builder = StreamsBuilder()
        >>> users = builder.table("users", materialized=Materialized("users-store"))
        >>> with TopologyTestDriver(builder.build()) as driver:
        ...     driver.create_input_topic("users").pipe_key_values([("u1", "Ada"), ("u1", "Eve")])
        ...     driver.get_key_value_store("users-store").get("u1")
        'Eve'
        """
        node, name, source, store, option = self._table("table()", topic, consumed, materialized, is_global=False)
        queryable_name = store.name if store.queryable else None
        return KTable(
            self._draft, node, name, option.key_serde, option.value_serde, frozenset((source,)), queryable_name
        )

    @overload
    def global_table(
        self, topic: str, consumed: None = None, materialized: Materialized[Any, Any] | None = None
    ) -> GlobalKTable[Any, Any]: ...
    @overload
    def global_table(
        self, topic: str, consumed: Consumed[K, V], materialized: Materialized[Any, Any] | None = None
    ) -> GlobalKTable[K, V]: ...

    def global_table(self, topic: str, consumed: Any = None, materialized: Materialized[Any, Any] | None = None) -> Any:
        """Reads a whole topic on every task, as a table that streams can look up by any key.

        Its rows are always kept in a store, which the topic itself backs. It is complete before the first record of a
        stream is processed, and its updates do not move stream time.

        >>> from headrace import TopologyTestDriver
        >>> builder = StreamsBuilder()
        >>> rates = builder.global_table("rates")
        >>> orders = builder.stream("orders")
        >>> priced = orders.join(
        ...     rates, lambda order, rate: order["sum"] * rate, key_selector=lambda key, order: order["currency"]
        ... )
        >>> priced.to("out")
        >>> with TopologyTestDriver(builder.build()) as driver:
        ...     driver.create_input_topic("rates").pipe_input("EUR", 2)
        ...     driver.create_input_topic("orders").pipe_input("1", {"sum": 10, "currency": "EUR"})
        ...     driver.create_output_topic("out").read_key_values()
        [KeyValue(key='1', value=20)]
        """
        node, name, source, store, option = self._table("global_table()", topic, consumed, materialized, is_global=True)
        # Without options the store's generated name can be queried, with an unnamed Materialized it cannot.
        queryable = store.queryable or materialized is None
        return GlobalKTable(
            self._draft,
            node,
            name,
            option.key_serde,
            option.value_serde,
            frozenset((source,)),
            store.name,
            queryable,
        )

    def add_state_store(self, builder: StoreBuilder) -> StreamsBuilder:
        """Adds a store for processors, which name it in `KStream.process` or `KStream.process_values`.

        >>> from headrace import Processor, Serdes, Stores, TopologyTestDriver
        >>> class Count(Processor):
        ...     def init(self, context):
        ...         super().init(context)
        ...         self.counts = context.get_state_store("counts")
        ...     def process(self, record):
        ...         self.counts.put(record.key, (self.counts.get(record.key) or 0) + 1)
        >>> builder = StreamsBuilder()
        >>> supplier = Stores.in_memory_key_value_store("counts")
        >>> counts = Stores.key_value_store_builder(supplier, Serdes.string(), Serdes.long())
        >>> stream = builder.add_state_store(counts).stream("in").process(Count, "counts")
        >>> with TopologyTestDriver(builder.build()) as driver:
        ...     driver.create_input_topic("in").pipe_key_values([("a", "x"), ("a", "y")])
        ...     driver.get_key_value_store("counts").get("a")
        2
        """
        _check_store_builder("add_state_store()", builder)
        self._draft.add(StateStore, builder.name, (), builder=builder)
        return self

    def add_global_store(
        self,
        builder: StoreBuilder,
        topic: str,
        consumed: Consumed[Any, Any] | None,
        supplier: Callable[[], Any],
    ) -> StreamsBuilder:
        """Adds a store that every task has whole, kept up to date from a topic by a processor.

        All processors may read it without naming it. ``supplier()`` makes the processor that writes it, which also
        runs when the store is restored. It has no changelog: the topic is one.

        >>> from headrace import Processor, Serdes, Stores, TopologyTestDriver
        >>> class Keep(Processor):
        ...     def init(self, context):
        ...         self.store = context.get_state_store("rates")
        ...     def process(self, record):
        ...         self.store.put(record.key, record.value)
        >>> supplier = Stores.in_memory_key_value_store("rates")
        >>> rates = Stores.key_value_store_builder(supplier, Serdes.string(), Serdes.json())
        >>> builder = StreamsBuilder().add_global_store(rates, "rates", None, Keep)
        >>> with TopologyTestDriver(builder.build()) as driver:
        ...     driver.create_input_topic("rates").pipe_input("EUR", 2)
        ...     driver.get_key_value_store("rates").get("EUR")
        2
        """
        where = "add_global_store()"
        _check_store_builder(where, builder)
        check_topic(where, topic)
        check_function(where, "supplier", supplier, "() that returns a new processor")
        option = check_option(where, "consumed", consumed, Consumed, Consumed())
        names = self._draft.names
        source = names.suffixed(option.name, "-source", "KSTREAM-SOURCE-")
        name = names.named(option.name, "KTABLE-SOURCE-")
        self._draft.add(
            GlobalStore,
            name,
            (),
            builder=builder.with_logging_disabled(),
            source=source,
            topic=topic,
            consumed=option,
            supplier=supplier,
        )
        return self

    def build(self, config: StreamsConfig | Mapping[str, Any] | None = None) -> Topology:
        """Returns the topology of all calls so far, optimised as ``config.topology_optimization`` says.

        May be called again, also with another configuration: each topology is independent of the builder and of the
        others. Without ``config`` the builder's is taken. A mapping is read by `StreamsConfig.of`.

        >>> builder = StreamsBuilder()
        >>> builder.stream("in").to("out")
        >>> print(builder.build().describe())
        Topologies:
           Sub-topology: 0
            Source: KSTREAM-SOURCE-0000000000 (topics: [in])
              --> KSTREAM-SINK-0000000001
            Sink: KSTREAM-SINK-0000000001 (topic: out)
              <-- KSTREAM-SOURCE-0000000000
        """
        settings = self._config if config is None else StreamsConfig.of(config)
        return write(rewrite(self._draft.graph(), settings), settings)

    def _repr_mimebundle_(self, **chosen: Any) -> dict[str, str]:
        """Shows the graph of all calls so far in a notebook."""
        return self.build()._repr_mimebundle_(**chosen)

    def _table(
        self,
        where: str,
        topic: str,
        consumed: Consumed[Any, Any] | None,
        materialized: Materialized[Any, Any] | None,
        *,
        is_global: bool,
    ) -> tuple[int, str, str, StoreSpec, Consumed[Any, Any]]:
        check_topic(where, topic)
        option = check_option(where, "consumed", consumed, Consumed, Consumed())
        kept = check_option(where, "materialized", materialized, Materialized, Materialized())
        option = replace(
            option,
            key_serde=option.key_serde or kept.key_serde,
            value_serde=option.value_serde or kept.value_serde,
        )
        draft, names = self._draft, self._draft.names
        kept = replace(kept, key_serde=option.key_serde, value_serde=option.value_serde)
        if is_global:
            remedy = "leave it out, and let the topic's writers delete rows"
            check_lasting(where, kept, "the rows of a global table, which only its topic changes,", remedy)
            kept = replace(kept, logging=False, log_config={})
        store = key_value_store(draft.store_name(kept, f"{topic}-"), kept, key_serde=None, value_serde=None)
        if is_global and store.versioned:
            message = f"{where}: GlobalTables cannot be versioned; found the versioned store '{store.name}'"
            raise TopologyError(message)
        source = names.suffixed(option.name, "-source", "KSTREAM-SOURCE-")
        name = names.named(option.name, "KTABLE-SOURCE-")
        node = draft.add(
            TableSource,
            name,
            (),
            source=source,
            topic=topic,
            consumed=option,
            operation=ops.TableSource(store.name if store.kept or is_global else None),
            store=store,
            is_global=is_global,
            versioned=None if is_global else store.versioned,
        )
        return node, name, source, store, option


def _topics(where: str, topics: str | Iterable[str]) -> frozenset[str]:
    if isinstance(topics, str):
        return frozenset((check_topic(where, topics),))
    if not isinstance(topics, Iterable):
        message = f"{where}: topics must be a name, several names or a compiled pattern; found {describe_value(topics)}"
        raise TopologyError(message)
    names = frozenset(check_topic(where, topic) for topic in topics)
    if not names:
        message = f"{where}: at least one topic is needed; found none"
        raise TopologyError(message)
    return names


def _check_store_builder(where: str, builder: Any) -> None:
    if not isinstance(builder, StoreBuilder):
        message = (
            f"{where}: builder must be a StoreBuilder, as Stores.key_value_store_builder(…) makes one; "
            f"found {describe_value(builder)}"
        )
        raise TopologyError(message)

"""Streams: unbounded sequences of records, each a fact of its own."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar, cast, overload

from headrace.arguments.durations import to_ms
from headrace.arguments.hints import explaining
from headrace.arguments.values import whole_number
from headrace.dsl import branched, grouped_stream, hints, ktable, stream_joins
from headrace.dsl.argument_checks import (
    check_function,
    check_option,
    check_schema,
    check_serde,
    check_topic,
    check_type,
)
from headrace.dsl.graph import NodeId, Process, Sink
from headrace.dsl.handle import Handle
from headrace.dsl.materialized import Materialized, StreamJoined
from headrace.dsl.naming import checked
from headrace.dsl.options import Grouped, Joined, Printed, Produced, Repartitioned
from headrace.dsl.stores import distinct_store
from headrace.errors import TopologyError
from headrace.record import FixedKeyRecord, HasValue, WithKey
from headrace.serdes import Serde, Serdes
from headrace.topology import operations as ops
from headrace.windows import JoinWindows

if TYPE_CHECKING:
    from headrace.dsl.branched import BranchedKStream
    from headrace.dsl.global_ktable import GlobalKTable
    from headrace.dsl.grouped_stream import KGroupedStream
    from headrace.dsl.ktable import KTable
    from headrace.processor import FixedKeyProcessor, Processor

K = TypeVar("K")
V = TypeVar("V")
K1 = TypeVar("K1")
VO = TypeVar("VO")
VR = TypeVar("VR")


@explaining
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class KStream(Handle[K, V]):
    """A stream of records with keys ``K`` and values ``V``, each independent of the others with its key.

    Made by `StreamsBuilder.stream`, by operations on streams, and by `KTable.to_stream`. A handle is immutable: every
    method adds a node to the builder's topology and returns a new handle.
    """

    _HINTS: ClassVar[Mapping[str, str]] = hints.STREAM

    _key_changed: bool = False
    """Whether records may be in the wrong partition for their key, so that grouping and joining move them first."""

    @overload
    def filter(self: KStream[K, VR | None], predicate: HasValue, *, name: str | None = None) -> KStream[K, VR]: ...
    @overload
    def filter(self, predicate: Callable[[K, V], bool], *, name: str | None = None) -> KStream[K, V]: ...

    # Any: the overloads have the types.
    def filter(self, predicate: Callable[[Any, Any], bool], *, name: str | None = None) -> KStream[Any, Any]:
        """Keeps the records for which ``predicate(key, value)`` is true.

        Stateless; key, timestamp and headers stay as they are. Records with value None are given to the predicate, too.
        ``filter(has_value)`` leaves those out, and for type checkers a stream of ``V | None`` becomes one of ``V``.

        >>> from headrace import StreamsBuilder, TopologyTestDriver
        >>> builder = StreamsBuilder()
        >>> builder.stream("in").filter(lambda key, value: value > 1).to("out")
        >>> with TopologyTestDriver(builder.build()) as driver:
        ...     driver.create_input_topic("in").pipe_key_values([("a", 1), ("b", 2)])
        ...     driver.create_output_topic("out").read_key_values()
        [KeyValue(key='b', value=2)]
        """
        check_function(self._where("filter"), "predicate", predicate, "(key, value)")
        return self._append("KSTREAM-FILTER-", name, ops.Filter(predicate))

    def filter_not(self, predicate: Callable[[K, V], bool], *, name: str | None = None) -> KStream[K, V]:
        """Keeps the records for which ``predicate(key, value)`` is false.

        Stateless; the opposite of `filter`.

        >>> from headrace import StreamsBuilder, TopologyTestDriver
        >>> builder = StreamsBuilder()
        >>> builder.stream("in").filter_not(lambda key, value: value > 1).to("out")
        >>> with TopologyTestDriver(builder.build()) as driver:
        ...     driver.create_input_topic("in").pipe_key_values([("a", 1), ("b", 2)])
        ...     driver.create_output_topic("out").read_key_values()
        [KeyValue(key='a', value=1)]
        """
        check_function(self._where("filter_not"), "predicate", predicate, "(key, value)")
        return self._append("KSTREAM-FILTER-", name, ops.Filter(predicate, negate=True))

    @overload
    def map_values(self, mapper: WithKey[VR], *, name: str | None = None) -> KStream[K, VR]: ...
    @overload
    def map_values(self, mapper: Callable[[V], VR], *, name: str | None = None) -> KStream[K, VR]: ...

    def map_values(self, mapper: Callable[[V], Any] | WithKey[Any], *, name: str | None = None) -> KStream[K, Any]:
        """Replaces each value by ``mapper(value)``.

        Stateless; the key stays, so nothing is repartitioned. The mapper also gets values that are None. Wrap it in
        `with_key` if it wants the key: ``mapper(key, value)``.

        >>> from headrace import StreamsBuilder, TopologyTestDriver
        >>> builder = StreamsBuilder()
        >>> builder.stream("in").map_values(str.upper).to("out")
        >>> with TopologyTestDriver(builder.build()) as driver:
        ...     driver.create_input_topic("in").pipe_key_values([("a", "x")])
        ...     driver.create_output_topic("out").read_key_values()
        [KeyValue(key='a', value='X')]
        """
        check_function(self._where("map_values"), "mapper", mapper, "(value)", with_key=True)
        mapped = self._append("KSTREAM-MAPVALUES-", name, ops.MapValues(mapper), changes_value=True)
        return replace(mapped, _value_serde=None)

    @overload
    def flat_map_values(self, mapper: WithKey[Iterable[VR]], *, name: str | None = None) -> KStream[K, VR]: ...
    @overload
    def flat_map_values(self, mapper: Callable[[V], Iterable[VR]], *, name: str | None = None) -> KStream[K, VR]: ...

    def flat_map_values(
        self, mapper: Callable[[V], Iterable[Any]] | WithKey[Iterable[Any]], *, name: str | None = None
    ) -> KStream[K, Any]:
        """Replaces each value by any number of values: those of the iterable ``mapper(value)``, in its order.

        Stateless; the key stays, so nothing is repartitioned. All records get the timestamp and headers of the one
        they come from. Wrap the mapper in `with_key` if it wants the key.

        >>> from headrace import StreamsBuilder, TopologyTestDriver
        >>> builder = StreamsBuilder()
        >>> builder.stream("in").flat_map_values(str.split).to("out")
        >>> with TopologyTestDriver(builder.build()) as driver:
        ...     driver.create_input_topic("in").pipe_key_values([("a", "x y")])
        ...     driver.create_output_topic("out").read_key_values()
        [KeyValue(key='a', value='x'), KeyValue(key='a', value='y')]
        """
        check_function(self._where("flat_map_values"), "mapper", mapper, "(value)", with_key=True, generators=True)
        mapped = self._append("KSTREAM-FLATMAPVALUES-", name, ops.FlatMapValues(mapper), changes_value=True)
        return replace(mapped, _value_serde=None)

    @overload
    def map_batches(
        self,
        mapper: Callable[[list[FixedKeyRecord[K, V]]], Iterable[VR]],
        *,
        max_records: int = 1000,
        schema: None = None,
        name: str | None = None,
    ) -> KStream[K, VR]: ...
    @overload
    def map_batches(
        self, mapper: Callable[[Any], Any], *, max_records: int = 1000, schema: Any, name: str | None = None
    ) -> KStream[K, Any]: ...

    def map_batches(
        self,
        mapper: Callable[[Any], Any],
        *,
        max_records: int = 1000,
        schema: Any = None,
        name: str | None = None,
    ) -> KStream[K, Any]:
        """Replaces values by those that ``mapper`` gives for many records at once: for models and vectorised code.

        The mapper gets a list of `FixedKeyRecord`, at most ``max_records``, in their order, and returns as many values:
        a list, or an array of numpy, pandas or pyarrow. With a pyarrow ``schema`` it gets a `pyarrow.Table` instead,
        whose columns are taken from the values. Records with value None are among them.

        Stateless; keys, times, headers and order stay, so nothing is repartitioned. The result is that of `map_values`
        with a mapper for one value: whatever comes after it, joins and windows included, sees every record in its turn
        and at its time. A batch ends with the micro-batch; in the test driver's plain mode, with each record. If the
        mapper raises, the processing exception handler decides about each record of the batch.

        >>> from headrace import StreamsBuilder, TopologyTestDriver
        >>> def rank(records):
        ...     best = max(record.value for record in records)
        ...     return [f"{record.value} of {best}" for record in records]
        >>> builder = StreamsBuilder()
        >>> builder.stream("in").map_batches(rank, max_records=500).to("out")
        >>> with TopologyTestDriver(builder.build(), batched=True) as driver:
        ...     driver.create_input_topic("in").pipe_key_values([("a", 1), ("b", 3), ("c", 2)])
        ...     driver.commit()
        ...     driver.create_output_topic("out").read_key_values()
        [KeyValue(key='a', value='1 of 3'), KeyValue(key='b', value='3 of 3'), KeyValue(key='c', value='2 of 3')]
        """
        where = self._where("map_batches")
        check_function(where, "mapper", mapper, "(records)")
        whole_number(max_records, f"{where}: max_records", minimum=1)
        check_schema(where, schema)
        operation = ops.MapBatches(mapper, max_records, schema)
        mapped = self._append("KSTREAM-MAPBATCHES-", name, operation, changes_value=True)
        return replace(mapped, _value_serde=None)

    def map(self, mapper: Callable[[K, V], tuple[K1, VR]], *, name: str | None = None) -> KStream[K1, VR]:
        """Replaces key and value by the pair ``mapper(key, value)``.

        Stateless. The key may change, so a later grouping or join repartitions the stream; use `map_values` where the
        key stays. Key or value of the pair may be None, the pair itself must not.

        >>> from headrace import StreamsBuilder, TopologyTestDriver
        >>> builder = StreamsBuilder()
        >>> builder.stream("in").map(lambda key, value: (value, key)).to("out")
        >>> with TopologyTestDriver(builder.build()) as driver:
        ...     driver.create_input_topic("in").pipe_key_values([("a", "x")])
        ...     driver.create_output_topic("out").read_key_values()
        [KeyValue(key='x', value='a')]
        """
        check_function(self._where("map"), "mapper", mapper, "(key, value)")
        mapped = self._append("KSTREAM-MAP-", name, ops.Map(mapper), changes_key=True)
        return cast("KStream[K1, VR]", replace(mapped, _key_serde=None, _value_serde=None))

    def flat_map(
        self, mapper: Callable[[K, V], Iterable[tuple[K1, VR]]], *, name: str | None = None
    ) -> KStream[K1, VR]:
        """Replaces each record by any number of records: the pairs of ``mapper(key, value)``, in their order.

        Stateless. The key may change, so a later grouping or join repartitions the stream. All records get the
        timestamp and headers of the one they come from.

        >>> from headrace import StreamsBuilder, TopologyTestDriver
        >>> builder = StreamsBuilder()
        >>> builder.stream("in").flat_map(lambda key, value: [(word, 1) for word in value.split()]).to("out")
        >>> with TopologyTestDriver(builder.build()) as driver:
        ...     driver.create_input_topic("in").pipe_key_values([("a", "x y")])
        ...     driver.create_output_topic("out").read_key_values()
        [KeyValue(key='x', value=1), KeyValue(key='y', value=1)]
        """
        check_function(self._where("flat_map"), "mapper", mapper, "(key, value)", generators=True)
        mapped = self._append("KSTREAM-FLATMAP-", name, ops.FlatMap(mapper), changes_key=True)
        return cast("KStream[K1, VR]", replace(mapped, _key_serde=None, _value_serde=None))

    def select_key(self, selector: Callable[[K, V], K1], *, name: str | None = None) -> KStream[K1, V]:
        """Replaces each key by ``selector(key, value)``.

        Stateless. A later grouping or join repartitions the stream, through an internal topic. The new key may be
        None; such records are dropped where the stream is repartitioned, unless a left or outer join follows.

        >>> from headrace import StreamsBuilder, TopologyTestDriver
        >>> builder = StreamsBuilder()
        >>> builder.stream("in").select_key(lambda key, value: value[0]).to("out")
        >>> with TopologyTestDriver(builder.build()) as driver:
        ...     driver.create_input_topic("in").pipe_key_values([("a", "xyz")])
        ...     driver.create_output_topic("out").read_key_values()
        [KeyValue(key='x', value='xyz')]
        """
        check_function(self._where("select_key"), "selector", selector, "(key, value)")
        selected = self._append("KSTREAM-KEY-SELECT-", name, ops.SelectKey(selector), changes_key=True)
        return cast("KStream[K1, V]", replace(selected, _key_serde=None))

    def peek(self, action: Callable[[K, V], Any], *, name: str | None = None) -> KStream[K, V]:
        """Calls ``action(key, value)`` for each record and passes the record on.

        Stateless; for logging and debugging. The action runs again when records are processed again after a failure.

        >>> from headrace import StreamsBuilder, TopologyTestDriver
        >>> seen = []
        >>> builder = StreamsBuilder()
        >>> builder.stream("in").peek(lambda key, value: seen.append(value)).to("out")
        >>> with TopologyTestDriver(builder.build()) as driver:
        ...     driver.create_input_topic("in").pipe_input("a", 1)
        >>> seen
        [1]
        """
        check_function(self._where("peek"), "action", action, "(key, value)")
        return self._append("KSTREAM-PEEK-", name, ops.Peek(action))

    def for_each(self, action: Callable[[K, V], Any], *, name: str | None = None) -> None:
        """Calls ``action(key, value)`` for each record; the stream ends here.

        Stateless. The action runs again when records are processed again after a failure: exactly-once does not cover
        it.

        >>> from headrace import StreamsBuilder, TopologyTestDriver
        >>> seen = []
        >>> builder = StreamsBuilder()
        >>> builder.stream("in").for_each(lambda key, value: seen.append((key, value)))
        >>> with TopologyTestDriver(builder.build()) as driver:
        ...     driver.create_input_topic("in").pipe_input("a", 1)
        >>> seen
        [('a', 1)]
        """
        check_function(self._where("for_each"), "action", action, "(key, value)")
        self._append("KSTREAM-FOREACH-", name, ops.ForEach(action))

    def print(self, printed: Printed[K, V] | None = None) -> None:
        """Prints each record to standard output or a file; the stream ends here.

        Each line is ``[label]: key, value``; label and text can be changed with `Printed`.

        >>> from headrace import Printed, StreamsBuilder, TopologyTestDriver
        >>> builder = StreamsBuilder()
        >>> builder.stream("in").print(Printed.to_sys_out().with_label("orders"))
        >>> with TopologyTestDriver(builder.build()) as driver:
        ...     driver.create_input_topic("in").pipe_input("a", 1)
        [orders]: a, 1
        """
        option = check_option(self._where("print"), "printed", printed, Printed, Printed())
        label = self._name if option.label is None else option.label
        operation = ops.Print(label, option.formatter, None if option.path is None else str(option.path))
        self._append("KSTREAM-PRINTER-", option.name, operation)

    def split(self, *, name: str | None = None) -> BranchedKStream[K, V]:
        """Starts to split the stream into branches, each record going to the first whose predicate holds.

        Stateless. ``name`` is the prefix of the branches' names.

        >>> from headrace import Branched, StreamsBuilder, TopologyTestDriver
        >>> builder = StreamsBuilder()
        >>> split = builder.stream("in").split(name="size-")
        >>> branches = split.branch(lambda key, value: value > 10, Branched("large")).default_branch(Branched("small"))
        >>> branches["size-large"].to("large")
        >>> branches["size-small"].to("small")
        >>> with TopologyTestDriver(builder.build()) as driver:
        ...     driver.create_input_topic("in").pipe_key_values([("a", 1), ("b", 20)])
        ...     driver.create_output_topic("large").read_key_values()
        [KeyValue(key='b', value=20)]
        """
        return branched.split(self, name)

    def merge(self, other: KStream[K, V], *, name: str | None = None) -> KStream[K, V]:
        """Unites two streams; records keep their order within each input, not between them.

        Stateless. The serdes of the inputs are forgotten, because they may differ: name them where the result is
        written.

        >>> from headrace import StreamsBuilder, TopologyTestDriver
        >>> builder = StreamsBuilder()
        >>> builder.stream("eu").merge(builder.stream("us")).to("out")
        >>> with TopologyTestDriver(builder.build()) as driver:
        ...     driver.create_input_topic("eu").pipe_input("a", 1)
        ...     driver.create_input_topic("us").pipe_input("b", 2)
        ...     driver.create_output_topic("out").read_key_values()
        [KeyValue(key='a', value=1), KeyValue(key='b', value=2)]
        """
        where = self._where("merge")
        check_type(where, "other", other, KStream)
        self._check_same_builder(where, other)
        node_name = self._draft.names.named(name, "KSTREAM-MERGE-")
        parents = (self._node, other._node)
        node = self._draft.add(Process, node_name, parents, operation=ops.PassThrough(), merges=True)
        return replace(
            self,
            _node=node,
            _name=node_name,
            # Each input may have its own way of writing the same type.
            _key_serde=None,
            _value_serde=None,
            _sources=self._sources | other._sources,
            _key_changed=self._key_changed or other._key_changed,
        )

    def repartition(self, repartitioned: Repartitioned[K, V] | None = None) -> KStream[K, V]:
        """Writes the stream to an internal topic and reads it again, partitioned by the current key.

        Groupings and joins do this themselves when the key has changed. Use it to choose the number of partitions, or
        to repartition once for several operations. Records without a key are dropped, unless a left or outer join
        follows.

        >>> from headrace import Repartitioned, StreamsBuilder
        >>> builder = StreamsBuilder()
        >>> builder.stream("in").repartition(Repartitioned("by-user", partitions=8)).to("out")
        >>> builder.build().internal_topics("shop")["shop-by-user-repartition"].partitions
        8
        """
        option = check_option(
            self._where("repartition"), "repartitioned", repartitioned, Repartitioned, Repartitioned()
        )
        base = self._draft.names.node("KSTREAM-REPARTITION-") if option.name is None else option.name
        content = self._draft.repartition_content(
            base,
            key_serde=option.key_serde or self._key_serde,
            value_serde=option.value_serde or self._value_serde,
            named_by_user=option.name is not None,
            serdes_from="Repartitioned({}_serde=…)",
        )
        content |= {"partitioner": option.partitioner, "partitions": option.partitions}
        node = self._draft.repartition(self._node, content, mergeable=False)
        return self._repartition(node, content)

    def to(self, topic: str | Callable[..., str], produced: Produced[K, V] | None = None) -> None:
        """Writes the stream to a topic; a function ``(key, value, context)`` chooses one per record.

        The stream ends here. An application creates the topic if it does not exist. Records without a key are written,
        too. A value of None is a tombstone there.

        >>> from headrace import StreamsBuilder, TopologyTestDriver
        >>> builder = StreamsBuilder()
        >>> builder.stream("in").to(lambda key, value, context: f"out-{key}")
        >>> with TopologyTestDriver(builder.build()) as driver:
        ...     driver.create_input_topic("in").pipe_input("a", 1)
        ...     driver.create_output_topic("out-a").read_key_values()
        [KeyValue(key='a', value=1)]
        """
        where = self._where("to")
        option = check_option(where, "produced", produced, Produced, Produced())
        if callable(topic):
            check_function(where, "topic", topic, "(key, value, context) that chooses a topic")
            target: dict[str, Any] = {"extractor": topic}
        else:
            target = {"topic": check_topic(where, topic)}
        self._draft.add(
            Sink,
            self._draft.names.named(option.name, "KSTREAM-SINK-"),
            (self._node,),
            key_serde=option.key_serde or self._key_serde,
            value_serde=option.value_serde or self._value_serde,
            partitioner=option.partitioner,
            **target,
        )

    def to_table(self, materialized: Materialized[K, V] | None = None, *, name: str | None = None) -> KTable[K, V]:
        """Reads the stream as a table: the latest value of each key.

        A record with value None deletes its key's row; one without a key is dropped. The stream is repartitioned
        first if its key has changed. Rows are kept in a store if ``materialized`` names one, or if a later operation
        needs them.

        >>> from headrace import Materialized, StreamsBuilder, TopologyTestDriver
        >>> builder = StreamsBuilder()
        >>> table = builder.stream("in").to_table(Materialized("latest"))
        >>> with TopologyTestDriver(builder.build()) as driver:
        ...     driver.create_input_topic("in").pipe_key_values([("a", 1), ("a", 2)])
        ...     driver.get_key_value_store("latest").get("a")
        2
        """
        where = self._where("to_table")
        option = check_option(where, "materialized", materialized, Materialized, Materialized())
        return ktable.from_stream(self, option, name)

    def process(
        self, supplier: Callable[[], Processor[K, V, K1, VR]], *stores: str, name: str | None = None
    ) -> KStream[K1, VR]:
        """Gives each record to a `Processor`, which may forward any number of records with any key.

        ``supplier()`` makes a new processor per task; a class is a supplier. ``stores`` names the stores it uses, which
        were added with `StreamsBuilder.add_state_store`. Stores in the attribute ``stores`` of the supplier need not
        be named. The key may change, so a later grouping or join repartitions the stream.

        >>> from headrace import Processor, StreamsBuilder, TopologyTestDriver
        >>> class Swap(Processor):
        ...     def process(self, record):
        ...         self.context.forward(record.with_key(record.value).with_value(record.key))
        >>> builder = StreamsBuilder()
        >>> builder.stream("in").process(Swap).to("out")
        >>> with TopologyTestDriver(builder.build()) as driver:
        ...     driver.create_input_topic("in").pipe_input("a", "x")
        ...     driver.create_output_topic("out").read_key_values()
        [KeyValue(key='x', value='a')]
        """
        processed = self._process("process", "KSTREAM-PROCESSOR-", supplier, stores, name, fixed_key=False)
        changed = replace(processed, _key_serde=None, _value_serde=None, _key_changed=True)
        return cast("KStream[K1, VR]", changed)

    def process_values(
        self, supplier: Callable[[], FixedKeyProcessor[K, V, VR]], *stores: str, name: str | None = None
    ) -> KStream[K, VR]:
        """Gives each record to a `FixedKeyProcessor`, which may forward any number of records with the same key.

        Like `process`, but the key stays, so nothing is repartitioned.

        >>> from headrace import FixedKeyProcessor, StreamsBuilder, TopologyTestDriver
        >>> class Double(FixedKeyProcessor):
        ...     def process(self, record):
        ...         self.context.forward(record.with_value(record.value * 2))
        >>> builder = StreamsBuilder()
        >>> builder.stream("in").process_values(Double).to("out")
        >>> with TopologyTestDriver(builder.build()) as driver:
        ...     driver.create_input_topic("in").pipe_input("a", 4)
        ...     driver.create_output_topic("out").read_key_values()
        [KeyValue(key='a', value=8)]
        """
        processed = self._process("process_values", "KSTREAM-PROCESSVALUES-", supplier, stores, name, fixed_key=True)
        return replace(processed, _value_serde=None)

    def distinct(
        self,
        by: Callable[[K, V], Any] | None = None,
        *,
        within: timedelta,
        id_serde: Serde[Any] | None = None,
        name: str | None = None,
    ) -> KStream[K, V]:
        """Drops records that repeat one that has passed: one with the same key, and a time at most ``within`` away.

        With ``by``, only records with an equal ``by(key, value)`` are duplicates; ``id_serde`` writes it (JSON if
        not given). Stateful: a window store remembers the records that passed for as long as ``within``, by stream
        time. The first record to arrive passes, whatever its time. One that is older than ``within`` passes unless it
        repeats another, and is not remembered. Records with key None, or for which ``by`` returns None, always pass.
        The key stays; if it has changed before, the stream is repartitioned first. Dropped records are counted.

        >>> from datetime import timedelta
        >>> from headrace import StreamsBuilder, TopologyTestDriver
        >>> builder = StreamsBuilder()
        >>> builder.stream("in").distinct(by=lambda key, order: order["id"], within=timedelta(minutes=1)).to("out")
        >>> with TopologyTestDriver(builder.build()) as driver:
        ...     orders = driver.create_input_topic("in")
        ...     for seconds, number in ((0, 1), (5, 1), (6, 2), (90, 1)):
        ...         orders.pipe_input("ada", {"id": number, "at": seconds}, timestamp_ms=seconds * 1000)
        ...     [order["at"] for order in driver.create_output_topic("out").read_values()]
        [0, 6, 90]
        """
        where = self._where("distinct")
        if by is not None:
            check_function(where, "by", by, "(key, value)")
        check_serde(where, "id_serde", id_serde)
        within_ms = to_ms(within, f"{where}: within")
        if within_ms <= 0:
            message = f"{where}: within must be longer than 0; found {within}"
            raise TopologyError(message)
        node_name = self._draft.names.named(name, "KSTREAM-DISTINCT-")
        stream = self if not self._key_changed else self._move(node_name, named_by_user=name is not None)
        store = distinct_store(f"{node_name}-store", within_ms, stream._key_serde if by is None else Serdes.bytes())
        if name is None:
            self._draft.generated_store(store)
        operation = ops.Distinct(store.name, within_ms, by, stream._key_serde, id_serde)
        node = self._draft.add(
            Process, node_name, (stream._node,), operation=operation, stores=(store,), keeps_null_keys=True
        )
        return replace(stream, _node=node, _name=node_name)

    def _move(self, base: str, *, named_by_user: bool) -> KStream[K, V]:
        """Returns the stream, whose key has changed, partitioned by its key."""
        content = self._draft.repartition_content(
            base,
            key_serde=self._key_serde,
            value_serde=self._value_serde,
            named_by_user=named_by_user,
            serdes_from="Repartitioned({}_serde=…) before it",
        )
        return self._repartition(self._draft.repartition(self._node, content), content)

    def group_by_key(self, grouped: Grouped[K, V] | None = None) -> KGroupedStream[K, V]:
        """Groups the records by their key, to be aggregated.

        The stream is repartitioned only if its key has changed before. Records without a key, or without a value, are
        dropped by the aggregation.

        >>> from headrace import Materialized, StreamsBuilder, TopologyTestDriver
        >>> builder = StreamsBuilder()
        >>> table = builder.stream("in").group_by_key().count(materialized=Materialized("counts"))
        >>> with TopologyTestDriver(builder.build()) as driver:
        ...     driver.create_input_topic("in").pipe_key_values([("a", 1), ("a", 2)])
        ...     driver.get_key_value_store("counts").get("a")
        2
        """
        option = check_option(self._where("group_by_key"), "grouped", grouped, Grouped, Grouped())
        return grouped_stream.group(self, option, key_serde=self._key_serde)

    def group_by(self, selector: Callable[[K, V], K1], grouped: Grouped[K1, V] | None = None) -> KGroupedStream[K1, V]:
        """Groups the records by a new key ``selector(key, value)``, to be aggregated.

        The stream is always repartitioned, through an internal topic that `Grouped` names. Records whose new key is
        None are dropped.

        >>> from headrace import Grouped, Materialized, StreamsBuilder, TopologyTestDriver
        >>> builder = StreamsBuilder()
        >>> words = builder.stream("in").group_by(lambda key, value: value, Grouped("by-word"))
        >>> table = words.count(materialized=Materialized("counts"))
        >>> with TopologyTestDriver(builder.build()) as driver:
        ...     driver.create_input_topic("in").pipe_key_values([("a", "x"), ("b", "x")])
        ...     driver.get_key_value_store("counts").get("x")
        2
        """
        where = self._where("group_by")
        check_function(where, "selector", selector, "(key, value)")
        option = check_option(where, "grouped", grouped, Grouped, Grouped())
        selected = self._append("KSTREAM-KEY-SELECT-", option.name, ops.SelectKey(selector), changes_key=True)
        return grouped_stream.group(selected, option, key_serde=None)

    def join(
        self,
        other: KStream[K, VO] | KTable[K, VO] | GlobalKTable[Any, VO],
        joiner: Callable[[V, VO], VR] | WithKey[VR],
        *,
        windows: JoinWindows | None = None,
        joined: StreamJoined[K, V, VO] | Joined[K, V, VO] | None = None,
        key_selector: Callable[[K, V], Any] | None = None,
        name: str | None = None,
    ) -> KStream[K, VR]:
        """Joins with a stream, a table or a global table; a record without a partner gives no result.

        With a stream, records join whose keys are equal and whose times are as close as ``windows`` say; both sides
        are kept in window stores that long. With a table, each record looks up the table's row of its key. With a
        global table it looks up the row of ``key_selector(key, value)``. A stream whose key has changed is
        repartitioned first, except for a global table; the inputs must have equally many partitions. Records with key
        or value None are dropped.

        ``joiner(value, other_value)`` gives the result's value; wrap it in `with_key` if it wants the key. ``joined``
        is a `StreamJoined` for a stream and a `Joined` for a table.

        >>> from headrace import StreamsBuilder, TopologyTestDriver
        >>> builder = StreamsBuilder()
        >>> users = builder.table("users")
        >>> builder.stream("orders").join(users, lambda order, user: f"{order} for {user}").to("out")
        >>> with TopologyTestDriver(builder.build()) as driver:
        ...     driver.create_input_topic("users").pipe_input("u1", "Ada")
        ...     driver.create_input_topic("orders").pipe_key_values([("u1", "tea"), ("u2", "milk")])
        ...     driver.create_output_topic("out").read_key_values()
        [KeyValue(key='u1', value='tea for Ada')]
        """
        call = stream_joins.Call(self, "join", joiner, windows, joined, key_selector, name)
        return stream_joins.join(call, other, ops.JoinKind.INNER)

    def left_join(
        self,
        other: KStream[K, VO] | KTable[K, VO] | GlobalKTable[Any, VO],
        joiner: Callable[[V, VO | None], VR] | WithKey[VR],
        *,
        windows: JoinWindows | None = None,
        joined: StreamJoined[K, V, VO] | Joined[K, V, VO] | None = None,
        key_selector: Callable[[K, V], Any] | None = None,
        name: str | None = None,
    ) -> KStream[K, VR]:
        """Joins with a stream, a table or a global table; a record without a partner is joined with None.

        Like `join`, but no record of this stream is lost. With a stream, an unmatched record comes out when its
        window has closed; with a table, at once. Records without a key are joined with None.

        >>> from headrace import StreamsBuilder, TopologyTestDriver
        >>> builder = StreamsBuilder()
        >>> users = builder.global_table("users")
        >>> orders = builder.stream("orders")
        >>> joined = orders.left_join(
        ...     users, lambda order, user: [order["item"], user], key_selector=lambda key, order: order["user"]
        ... )
        >>> joined.to("out")
        >>> with TopologyTestDriver(builder.build()) as driver:
        ...     driver.create_input_topic("users").pipe_input("u1", "Ada")
        ...     topic = driver.create_input_topic("orders")
        ...     topic.pipe_key_values([("1", {"item": "tea", "user": "u1"}), ("2", {"item": "milk", "user": "u2"})])
        ...     driver.create_output_topic("out").read_values()
        [['tea', 'Ada'], ['milk', None]]
        """
        call = stream_joins.Call(self, "left_join", joiner, windows, joined, key_selector, name)
        return stream_joins.join(call, other, ops.JoinKind.LEFT)

    def outer_join(
        self,
        other: KStream[K, VO],
        joiner: Callable[[V | None, VO | None], VR] | WithKey[VR],
        *,
        windows: JoinWindows | None = None,
        joined: StreamJoined[K, V, VO] | None = None,
        name: str | None = None,
    ) -> KStream[K, VR]:
        """Joins two streams; records of both sides without a partner are joined with None.

        Windows, stores and repartitioning are those of `join`. Unmatched records come out when their window has
        closed, which only further records bring about.

        >>> from datetime import timedelta
        >>> from headrace import JoinWindows, StreamsBuilder, TopologyTestDriver
        >>> builder = StreamsBuilder()
        >>> within = JoinWindows.of_time_difference_with_no_grace(timedelta(seconds=5))
        >>> pairs = builder.stream("left").outer_join(builder.stream("right"), lambda a, b: [a, b], windows=within)
        >>> pairs.to("out")
        >>> with TopologyTestDriver(builder.build()) as driver:
        ...     left, right = driver.create_input_topic("left"), driver.create_input_topic("right")
        ...     left.pipe_input("k", "a", timestamp_ms=0)
        ...     right.pipe_input("k", "b", timestamp_ms=4_000)
        ...     right.pipe_input("x", "c", timestamp_ms=5_000)
        ...     left.pipe_input("k", "d", timestamp_ms=20_000)
        ...     driver.create_output_topic("out").read_values()
        [['a', 'b'], [None, 'c']]
        """
        call = stream_joins.Call(self, "outer_join", joiner, windows, joined, None, name)
        return stream_joins.join(call, other, ops.JoinKind.OUTER)

    def _append(
        self,
        prefix: str,
        name: str | None,
        operation: ops.Operation,
        *,
        changes_key: bool = False,
        changes_value: bool = False,
    ) -> KStream[Any, Any]:
        node_name = self._draft.names.named(name, prefix)
        node = self._draft.add(
            Process,
            node_name,
            (self._node,),
            operation=operation,
            changes_key=changes_key,
            changes_value=changes_value,
        )
        return replace(self, _node=node, _name=node_name, _key_changed=self._key_changed or changes_key)

    def _process(
        self,
        method: str,
        prefix: str,
        supplier: Callable[[], Any],
        stores: tuple[str, ...],
        name: str | None,
        *,
        fixed_key: bool,
    ) -> KStream[Any, Any]:
        where = self._where(method)
        check_function(where, "supplier", supplier, "() that returns a new processor")
        for store in stores:
            check_type(where, "the name of a store", store, str)
        # A name given here takes no index: Kafka Streams has it so.
        node_name = self._draft.names.node(prefix) if name is None else cast("str", checked(name))
        operation = ops.UserProcessor(supplier, fixed_key=fixed_key)
        node = self._draft.add(Process, node_name, (self._node,), operation=operation, uses=stores)
        return replace(self, _node=node, _name=node_name)

    def _repartition(self, node: NodeId, content: dict[str, Any]) -> KStream[K, V]:
        return replace(
            self,
            _node=node,
            _name=content["name"],
            _key_serde=content["key_serde"],
            _value_serde=content["value_serde"],
            _sources=frozenset((content["name"],)),
            _key_changed=False,
        )

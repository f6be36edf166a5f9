"""The Processor API: user code that sees one record at a time, keeps state and asks for time.

A *processor supplier* is any callable without arguments that returns a new processor; a class is one. If it has an
attribute ``stores`` (an iterable of store builders, or a method that returns one), those stores are added to the
topology and connected to the processor.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from datetime import timedelta
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, Protocol, TypeAlias, TypeVar

from headrace.record import FixedKeyRecord, Headers, Record, RecordMetadata
from headrace.serdes import Serde

# A processor takes what it can take: one for any object will do for a stream of texts.
KIn = TypeVar("KIn", contravariant=True)
VIn = TypeVar("VIn", contravariant=True)
KOut = TypeVar("KOut")
VOut = TypeVar("VOut")
if TYPE_CHECKING:
    # Type parameters that may be left out: type checkers know them, Python 3.11 itself does not.
    from typing_extensions import TypeVar as OptionalTypeVar

    KForward = OptionalTypeVar("KForward", default=Any)
    VForward = OptionalTypeVar("VForward", default=Any)
else:
    KForward, VForward = TypeVar("KForward"), TypeVar("VForward")
V = TypeVar("V")
VR = TypeVar("VR")

# A store's type depends on its builder, which the processor's author knows and the topology does not.
Store: TypeAlias = Any


class PunctuationType(Enum):
    """The clock that a punctuation follows."""

    STREAM_TIME = "stream_time"
    """The largest record timestamp that the task has seen: moves only with data."""
    WALL_CLOCK_TIME = "wall_clock_time"
    """The clock on the wall: moves without data."""


class Cancellable(Protocol):
    """A scheduled punctuation."""

    def cancel(self) -> None:
        """Stops all further calls; may be called from inside the punctuation."""
        ...


Punctuator: TypeAlias = Callable[[int], None]
"""Called with the clock's current time in milliseconds."""


class RecordContext(NamedTuple):
    """Origin of the current record, for topic name extractors."""

    topic: str | None
    partition: int
    offset: int
    timestamp_ms: int
    headers: Headers


TopicNameExtractor: TypeAlias = Callable[[Any, Any, RecordContext], str]
"""Chooses the output topic of a record: ``(key, value, context) -> topic``."""


class ProcessingContext(Protocol):
    """Context of a processor: stores, clocks, punctuations, and the metadata of the current record."""

    @property
    def application_id(self) -> str:
        """The name of the application."""
        ...

    @property
    def task_id(self) -> str:
        """Sub-topology and partition, as in ``0_1``."""
        ...

    @property
    def record_metadata(self) -> RecordMetadata | None:
        """Topic, partition and offset of the current input record; None inside a punctuation."""
        ...

    @property
    def key_serde(self) -> Serde[Any]:
        """The application's default serde for keys."""
        ...

    @property
    def value_serde(self) -> Serde[Any]:
        """The application's default serde for values."""
        ...

    @property
    def state_dir(self) -> Path:
        """The directory of the task's stores."""
        ...

    @property
    def metrics(self) -> Mapping[str, float]:
        """The counters of the application so far, by their names."""
        ...

    def get_state_store(self, name: str) -> Store:
        """Returns a store that is connected to this processor, or a global one (which is read-only here)."""
        ...

    def schedule(
        self,
        interval: timedelta,
        type: PunctuationType,
        callback: Punctuator,
        *,
        start_time_ms: int | None = None,
    ) -> Cancellable:
        """Calls ``callback`` every ``interval`` of the given clock.

        Missed calls collapse into one. Stream time: the first call comes with the first record, then at multiples of
        the interval. Wall clock: the first call comes one interval from now. With ``start_time_ms`` the grid starts
        there instead.
        """
        ...

    def commit(self) -> None:
        """Asks for a commit at the next opportunity."""
        ...

    def current_system_time_ms(self) -> int:
        """Returns the wall clock; within a micro-batch it stands still."""
        ...

    def current_stream_time_ms(self) -> int:
        """Returns the largest timestamp that the task has seen, the current record included; -1 before the first."""
        ...

    def app_configs(self) -> Mapping[str, Any]:
        """Returns the configuration under Kafka's names."""
        ...

    def app_configs_with_prefix(self, prefix: str) -> Mapping[str, Any]:
        """Returns the settings that start with a prefix, without it."""
        ...


class ProcessorContext(ProcessingContext, Protocol[KForward, VForward]):
    """The context of a ``Processor``, by the keys and values that it forwards: any, if they are left out."""

    def forward(self, record: Record[KForward, VForward], child: str | None = None) -> None:
        """Gives a record to all children, depth first, or to the child of that name."""
        ...


class FixedKeyProcessorContext(ProcessingContext, Protocol[KForward, VForward]):
    """The context of a ``FixedKeyProcessor``: what it forwards has the key of what it got."""

    def forward(self, record: FixedKeyRecord[KForward, VForward], child: str | None = None) -> None:
        """Gives a record to all children, depth first, or to the child of that name."""
        ...


class ValueTransformerContext(ProcessingContext, Protocol):
    """The context of a ``ValueTransformerWithKey``, which returns a value instead of forwarding records."""

    @property
    def timestamp_ms(self) -> int:
        """Time of the row that is transformed, or of the punctuation; -1 before the first, and for a row that a join
        looked up and that is not there.
        """
        ...

    @property
    def headers(self) -> Headers:
        """Headers of the record that changed the row; none in a punctuation, and for a row that a join looked up."""
        ...


class Processor(Generic[KIn, VIn, KOut, VOut]):
    """Takes records and forwards any number of records, with any key.

    Forwarding may change the key, so a key-based operation after it repartitions.

    >>> from headrace import Record, Serdes, StreamsBuilder, TopologyTestDriver
    >>> class Shout(Processor[str, str, str, str]):
    ...     def process(self, record: Record[str, str]) -> None:
    ...         self.context.forward(record.with_value(record.value.upper()))
    >>> builder = StreamsBuilder()
    >>> builder.stream("in").process(Shout).to("out")
    >>> with TopologyTestDriver(builder.build()) as driver:
    ...     driver.create_input_topic("in").pipe_input("k", "hello")
    ...     driver.create_output_topic("out").read_key_values()
    [KeyValue(key='k', value='HELLO')]
    """

    context: ProcessorContext[KOut, VOut]

    def init(self, context: ProcessorContext[KOut, VOut]) -> None:
        """Called once per task before the first record: get stores and schedule punctuations here."""
        self.context = context

    def process(self, record: Record[KIn, VIn]) -> None:
        """Called for every record."""
        raise NotImplementedError

    def close(self) -> None:
        """Called once when the task ends; the stores are still open."""


class FixedKeyProcessor(Generic[KIn, VIn, VOut]):
    """Takes records and forwards any number of records with the same key, so nothing has to be repartitioned.

    >>> from headrace import FixedKeyRecord, StreamsBuilder, TopologyTestDriver
    >>> class Twice(FixedKeyProcessor[str, str, str]):
    ...     def process(self, record: FixedKeyRecord[str, str]) -> None:
    ...         self.context.forward(record)
    ...         self.context.forward(record)
    >>> builder = StreamsBuilder()
    >>> builder.stream("in").process_values(Twice).to("out")
    >>> with TopologyTestDriver(builder.build()) as driver:
    ...     driver.create_input_topic("in").pipe_input("k", "v")
    ...     len(driver.create_output_topic("out").read_records())
    2
    """

    context: FixedKeyProcessorContext[KIn, VOut]

    def init(self, context: FixedKeyProcessorContext[KIn, VOut]) -> None:
        """Called once per task before the first record: get stores and schedule punctuations here."""
        self.context = context

    def process(self, record: FixedKeyRecord[KIn, VIn]) -> None:
        """Called for every record."""
        raise NotImplementedError

    def close(self) -> None:
        """Called once when the task ends; the stores are still open."""


class ValueTransformerWithKey(Generic[KIn, V, VR]):
    """Computes the value of a table's row from its key and value, with access to stores; it cannot forward.

    >>> from headrace import StreamsBuilder, TopologyTestDriver
    >>> class Tag(ValueTransformerWithKey[str, str, str]):
    ...     def transform(self, key: str, value: str | None) -> str | None:
    ...         return None if value is None else f"{key}:{value}"
    >>> builder = StreamsBuilder()
    >>> builder.table("in").transform_values(Tag).to_stream().to("out")
    >>> with TopologyTestDriver(builder.build()) as driver:
    ...     driver.create_input_topic("in").pipe_input("k", "v")
    ...     driver.create_output_topic("out").read_key_values()
    [KeyValue(key='k', value='k:v')]

    Time and headers of the row at hand are in the context:

    >>> class Stamp(ValueTransformerWithKey[str, str, str]):
    ...     def transform(self, key: str, value: str | None) -> str | None:
    ...         return None if value is None else f"{value} at {self.context.timestamp_ms}"
    >>> builder = StreamsBuilder()
    >>> builder.table("in").transform_values(Stamp).to_stream().to("out")
    >>> with TopologyTestDriver(builder.build()) as driver:
    ...     driver.create_input_topic("in").pipe_input("k", "v", timestamp_ms=7)
    ...     driver.create_output_topic("out").read_value()
    'v at 7'
    """

    context: ValueTransformerContext

    def init(self, context: ValueTransformerContext) -> None:
        """Called once per task before the first row."""
        self.context = context

    def transform(self, key: KIn, value: V | None) -> VR | None:
        """Returns the new value; called for deleted rows, too, with None."""
        raise NotImplementedError

    def close(self) -> None:
        """Called once when the task ends; the stores are still open."""


ProcessorSupplier: TypeAlias = Callable[[], Processor[Any, Any, Any, Any]]
FixedKeyProcessorSupplier: TypeAlias = Callable[[], FixedKeyProcessor[Any, Any, Any]]
ValueTransformerWithKeySupplier: TypeAlias = Callable[[], ValueTransformerWithKey[Any, Any, Any]]


class ProcessorWrapper(Protocol):
    """Wraps the processors of a topology as they are added: for tracing, metering, retries.

    Set as ``processor_wrapper`` in the configuration that the builder or topology is made with.
    """

    def wrap_processor_supplier(self, name: str, supplier: ProcessorSupplier) -> ProcessorSupplier:
        """Returns the supplier to use for the processor ``name`` instead."""
        ...

    def wrap_fixed_key_processor_supplier(
        self, name: str, supplier: FixedKeyProcessorSupplier
    ) -> FixedKeyProcessorSupplier:
        """Returns the supplier to use for the fixed-key processor ``name`` instead."""
        ...


def stores_of(supplier: Callable[[], Any]) -> tuple[Store, ...]:
    """Returns the builders of the stores that a supplier brings along."""
    stores = getattr(supplier, "stores", None)
    if stores is None:
        return ()
    brought: Iterable[Store] = stores() if callable(stores) else stores
    return tuple(brought or ())

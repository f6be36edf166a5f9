"""Options of DSL calls: what to read with, write with, group by, join with.

Every option is a frozen value with keyword arguments. A serde that is left out is taken from the stream before the call
if the type cannot have changed, else it is the application's default.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from os import PathLike
from typing import Any, ClassVar, Generic, TypeVar

from headrace.arguments.durations import to_ms
from headrace.arguments.hints import Hinting, OptionType
from headrace.dsl import hints
from headrace.dsl.argument_checks import check_function, check_partitioner, check_serde
from headrace.dsl.naming import checked
from headrace.errors import TopologyError, describe_value
from headrace.serdes import Serde
from headrace.topology.offset_reset import AutoOffsetReset

K = TypeVar("K")
V = TypeVar("V")
VO = TypeVar("VO")


def _put_partitioner(option: Produced[Any, Any] | Repartitioned[Any, Any] | TableJoined[Any, Any], field: str) -> None:
    found = check_partitioner(type(option).__name__, field, getattr(option, field))
    object.__setattr__(option, field, found)


@dataclass(frozen=True)
class Consumed(Hinting, Generic[K, V], metaclass=OptionType):
    """How a topic is read: serdes, timestamps, where to start, and the name of the source node.

    >>> from headrace import Serdes
    >>> Consumed(Serdes.string(), Serdes.long(), offset_reset="latest", name="orders").name
    'orders'
    """

    _HINTS: ClassVar[Mapping[str, str]] = hints.OPTION

    key_serde: Serde[K] | None = None
    """Serde of the keys; None: the application's default."""
    value_serde: Serde[V] | None = None
    """Serde of the values; None: the application's default."""
    timestamp_extractor: Callable[..., int] | None = None
    """Gives a record its time; None: the application's default."""
    offset_reset: AutoOffsetReset | str | timedelta | None = None
    """Where to start without a committed offset: ``"earliest"``, ``"latest"``, ``"none"`` or how long ago."""
    name: str | None = None
    """Name of the source node; a table's source gets ``-source`` appended."""

    def __post_init__(self) -> None:
        check_serde("Consumed", "key_serde", self.key_serde)
        check_serde("Consumed", "value_serde", self.value_serde)
        if self.timestamp_extractor is not None:
            check_function("Consumed", "timestamp_extractor", self.timestamp_extractor, "(record, partition_time_ms)")
        if self.offset_reset is not None:
            AutoOffsetReset.of(self.offset_reset)
        checked(self.name, "Consumed")


@dataclass(frozen=True)
class Produced(Hinting, Generic[K, V], metaclass=OptionType):
    """How a topic is written: serdes, partitioner, and the name of the sink node.

    >>> from headrace import Serdes
    >>> Produced(Serdes.string(), Serdes.string(), partitioner=lambda topic, key, value, n: 0).name is None
    True
    """

    _HINTS: ClassVar[Mapping[str, str]] = hints.OPTION

    key_serde: Serde[K] | None = None
    """Serde of the keys; None: the stream's, else the application's default."""
    value_serde: Serde[V] | None = None
    """Serde of the values; None: the stream's, else the application's default."""
    partitioner: Callable[..., Any] | str | None = None
    """(topic, key, value, partitions) -> a partition, several, or None for the default, which hashes the key.

    A text names one: ``module:Name``, or Kafka's ``DefaultPartitioner``.
    """
    name: str | None = None
    """Name of the sink node."""

    def __post_init__(self) -> None:
        check_serde("Produced", "key_serde", self.key_serde)
        check_serde("Produced", "value_serde", self.value_serde)
        _put_partitioner(self, "partitioner")
        checked(self.name, "Produced")


@dataclass(frozen=True)
class Grouped(Hinting, Generic[K, V], metaclass=OptionType):
    """How records are grouped: serdes of the repartition topic, should one be needed, and its name.

    >>> from headrace import Serdes
    >>> Grouped("by-user", Serdes.string(), Serdes.long()).name
    'by-user'
    """

    _HINTS: ClassVar[Mapping[str, str]] = hints.OPTION

    name: str | None = None
    """Base name of the repartition topic, and of the node that selects the key."""
    key_serde: Serde[K] | None = None
    """Serde of the new keys; None: the stream's if the key is kept, else the application's default."""
    value_serde: Serde[V] | None = None
    """Serde of the values; None: the stream's, else the application's default."""

    def __post_init__(self) -> None:
        checked(self.name, "Grouped")
        check_serde("Grouped", "key_serde", self.key_serde)
        check_serde("Grouped", "value_serde", self.value_serde)


@dataclass(frozen=True)
class Joined(Hinting, Generic[K, V, VO], metaclass=OptionType):
    """How a stream is joined with a table.

    With a grace period, records of the stream wait that long for late changes of the table, which must be versioned.

    >>> Joined(name="enrich", grace_period=timedelta(seconds=10)).grace_ms
    10000
    """

    _HINTS: ClassVar[Mapping[str, str]] = hints.OPTION

    key_serde: Serde[K] | None = None
    """Serde of the keys, for a repartition topic and the grace buffer."""
    value_serde: Serde[V] | None = None
    """Serde of the stream's values."""
    other_value_serde: Serde[VO] | None = None
    """Serde of the table's values."""
    name: str | None = None
    """Name of the join node, and base name of the repartition topic."""
    grace_period: timedelta | None = None
    """How long records wait for the table; None: they are joined at once."""

    def __post_init__(self) -> None:
        check_serde("Joined", "key_serde", self.key_serde)
        check_serde("Joined", "value_serde", self.value_serde)
        check_serde("Joined", "other_value_serde", self.other_value_serde)
        checked(self.name, "Joined")
        if self.grace_ms is not None and self.grace_ms < 0:
            message = f"Joined: grace_period must not be negative; found {self.grace_period}"
            raise TopologyError(message)

    @property
    def grace_ms(self) -> int | None:
        """The grace period in milliseconds.

        >>> Joined().grace_ms is None
        True
        """
        return None if self.grace_period is None else to_ms(self.grace_period, "Joined: grace_period")


@dataclass(frozen=True)
class TableJoined(Hinting, Generic[K, VO], metaclass=OptionType):
    """How two tables are joined by a foreign key.

    >>> TableJoined(name="orders-users").name
    'orders-users'
    """

    _HINTS: ClassVar[Mapping[str, str]] = hints.OPTION

    name: str | None = None
    """Prefix of the names of all nodes, topics and the store of the join."""
    partitioner: Callable[..., Any] | str | None = None
    """Partitions by the left table's key; the value it gets is None."""
    other_partitioner: Callable[..., Any] | str | None = None
    """Partitions by the foreign key; the value it gets is None."""

    def __post_init__(self) -> None:
        checked(self.name, "TableJoined")
        _put_partitioner(self, "partitioner")
        _put_partitioner(self, "other_partitioner")


@dataclass(frozen=True)
class Repartitioned(Hinting, Generic[K, V], metaclass=OptionType):
    """How a stream is written to a repartition topic and read again.

    >>> Repartitioned("by-user", partitions=8).partitions
    8
    """

    _HINTS: ClassVar[Mapping[str, str]] = hints.OPTION

    name: str | None = None
    """Base name of the topic."""
    key_serde: Serde[K] | None = None
    """Serde of the keys."""
    value_serde: Serde[V] | None = None
    """Serde of the values."""
    partitions: int | None = None
    """Number of partitions; None: as many as the stream has, or its partner in a join."""
    partitioner: Callable[..., Any] | str | None = None
    """(topic, key, value, partitions) -> a partition, or None for the default, which hashes the key.

    A text names one, as in ``Produced``.
    """

    def __post_init__(self) -> None:
        given: object = self.name
        hint = f"; write Repartitioned(partitions={given})" if isinstance(given, int) else ""
        checked(self.name, "Repartitioned", hint)
        check_serde("Repartitioned", "key_serde", self.key_serde)
        check_serde("Repartitioned", "value_serde", self.value_serde)
        if self.partitions is not None and (not isinstance(self.partitions, int) or self.partitions < 1):
            message = f"Repartitioned: partitions must be an int of at least 1; found {describe_value(self.partitions)}"
            raise TopologyError(message)
        _put_partitioner(self, "partitioner")


@dataclass(frozen=True, slots=True)
class Branched(Hinting, metaclass=OptionType):
    """Options of one branch of a split: its name, and a function or a consumer for its stream.

    >>> Branched("large", function=lambda stream: stream.map_values(str)).name
    'large'
    """

    _HINTS: ClassVar[Mapping[str, str]] = hints.OPTION

    name: str | None = None
    """Appended to the split's name; None: the branch's number, from 1, and 0 for the default branch."""
    function: Callable[..., Any] | None = None
    """Stream -> stream that takes the branch's place in the result; None as its result leaves the branch out."""
    consumer: Callable[..., None] | None = None
    """Takes the branch's stream; the branch is not in the result."""

    def __post_init__(self) -> None:
        if self.name is not None and (not isinstance(self.name, str) or not self.name):
            message = f"Branched: name must be a str that is not empty; found {describe_value(self.name)}"
            raise TopologyError(message)
        if self.function is not None and self.consumer is not None:
            message = "Branched: give a function, whose result is kept, or a consumer, not both"
            raise TopologyError(message)
        for field in ("function", "consumer"):
            if getattr(self, field) is not None:
                check_function("Branched", field, getattr(self, field), "(stream)")


@dataclass(frozen=True)
class Printed(Hinting, Generic[K, V], metaclass=OptionType):
    """How records are printed: a line ``[label]: text`` each, to standard output or a file.

    >>> Printed.to_file("/tmp/records.txt").with_label("orders")
    Printed(path='/tmp/records.txt', label='orders', formatter=None, name=None)
    """

    _HINTS: ClassVar[Mapping[str, str]] = hints.OPTION

    path: str | PathLike[str] | None = None
    """File to write; None: standard output."""
    label: str | None = None
    """Start of each line; None: the name of the stream's node."""
    formatter: Callable[[K, V], str] | None = None
    """(key, value) -> text; None: ``key, value``."""
    name: str | None = None
    """Name of the node."""

    def __post_init__(self) -> None:
        if self.path is not None and (not isinstance(self.path, str | PathLike) or not str(self.path).strip()):
            message = f"Printed: the path of the file must not be empty; found {describe_value(self.path)}"
            raise TopologyError(message)
        if self.label is not None and not isinstance(self.label, str):
            message = f"Printed: label must be a str; found {describe_value(self.label)}"
            raise TopologyError(message)
        if self.formatter is not None:
            check_function("Printed", "formatter", self.formatter, "(key, value)")
        checked(self.name, "Printed")

    @classmethod
    def to_sys_out(cls) -> Printed[K, V]:
        """Prints to standard output; on Spark it is that of the workers, which a program with a local master shows.

        >>> Printed.to_sys_out().path is None
        True
        """
        return cls()

    @classmethod
    def to_file(cls, path: str | PathLike[str]) -> Printed[K, V]:
        """Prints to a file, which is overwritten.

        >>> Printed.to_file("/tmp/records.txt").path
        '/tmp/records.txt'
        """
        return cls(path=path)

    def with_label(self, label: str) -> Printed[K, V]:
        """The same with another label.

        >>> Printed.to_sys_out().with_label("orders").label
        'orders'
        """
        return Printed(self.path, label, self.formatter, self.name)

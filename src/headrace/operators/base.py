"""Operators and their nodes: the seam between one operation and the task that runs it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from functools import singledispatch
from typing import Any, Protocol, TypeAlias

from headrace.config import StreamsConfig
from headrace.errors import ProcessingError, ProductionError, UncaughtHandlerError
from headrace.record import FixedKeyRecord, WithKey
from headrace.topics.log import Headers
from headrace.topology.operations import Operation

# Keys and values are the user's; a table edge carries (key, new, old, timestamp_ms, headers, latest),
# a stream edge (key, value, timestamp_ms, headers).
Edge = Callable[..., None]
BatchRecord: TypeAlias = FixedKeyRecord[Any, Any]

DECIDED = (ProcessingError, ProductionError, UncaughtHandlerError)
"""What a node or sink further down raises after its handler was asked: the code above it is not to blame."""


class Cell:
    """One value that an operator keeps between records, and that its task saves with the stores."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value


class TaskClock(Protocol):
    """The task as operators see it: the time it is at and the record it is working on."""

    stream_time_ms: int
    """Largest timestamp that the task has taken from its inputs; -1 before the first record."""
    origin: tuple[str, int] | None
    """Topic and partition of the current record; None in a punctuation."""
    offset: int
    """Offset of the current record; -1 in a punctuation."""
    pipelined: bool
    """Whether further records are processed before all that a record has caused has come back to the task."""

    @property
    def partition(self) -> int:
        """The partition of all its inputs."""
        ...

    def wall_clock_ms(self) -> int: ...


@dataclass(frozen=True, slots=True)
class HeldBack:
    """Changes of a table's rows that a cache holds back: they can be looked up, but nobody was told of them."""

    holds: Callable[[Any], bool]
    """Whether the row of a key has such a change."""
    told: Callable[[Any], tuple[Any, int] | None]
    """key -> the row as others were told of it."""
    release: Callable[[], None]
    """Tells of all changes."""


@dataclass(frozen=True, slots=True)
class ValueGetter:
    """Looks up the rows of a table, from its store or computed from its parent's."""

    get: Callable[[Any], tuple[Any, int] | None]
    """key -> (value, timestamp_ms), or None when there is no row."""
    get_as_of: Callable[[Any, int], tuple[Any, int] | None] | None = None
    """(key, timestamp_ms) -> the row as it was then; only for versioned tables."""
    held_back: HeldBack | None = None
    """None: whatever can be looked up was told."""

    def for_joins(self) -> Callable[[Any], tuple[Any, int] | None]:
        """Returns ``get`` for joins of tables, which take a result back when they are told that a row is gone.

        A row that is made and deleted while a cache holds it back is never told of. A join that has seen it would keep
        its result for ever, as Kafka Streams does, so all changes are told of before it sees the first of such a row.
        """
        get, held_back = self.get, self.held_back
        if held_back is None:
            return get
        holds, told, release = held_back.holds, held_back.told, held_back.release

        def get_told(key: Any) -> tuple[Any, int] | None:
            row = get(key)
            if row is None or not holds(key) or told(key) is not None:
                return row
            release()
            return get(key)

        return get_told


class StoreExpiry(Protocol):
    """Deletion of the rows of a store whose time to live is over, as the node of a table sees it."""

    def owned_by(self, node: str, save: Callable[[Any, Any, Any, int, int, Headers], None], *, send_old: bool) -> None:
        """Makes a node the one that deletes rows; ``save`` is called with None as the new value."""
        ...

    def settle(self, key: Any) -> None:
        """Deletes the row of a key if it is over and is still there because others are due before it."""
        ...


class Node(Protocol):
    """Interface of the runtime for the factory of one operator."""

    @property
    def name(self) -> str: ...
    @property
    def config(self) -> StreamsConfig: ...
    @property
    def task(self) -> TaskClock: ...
    @property
    def forward(self) -> Edge:
        """Gives a record (or a change) to all children, in their order, depth first."""
        ...

    def forward_to(self, child: str) -> Edge:
        """Gives a record to one child only."""
        ...

    def forward_from(self, node: str) -> Edge:
        """Gives a record to all children of another node of the task; to be asked for once records flow."""
        ...

    def store(self, name: str) -> Any:
        """Returns the store of that name, local or global."""
        ...

    def getter(self, table: str) -> ValueGetter:
        """Returns the rows of the table that node ``table`` makes."""
        ...

    def expiry(self, store: str) -> StoreExpiry | None:
        """Returns what deletes the rows of a store when their time to live is over; None: they have none."""
        ...

    def cell(self, store: str, name: str, default: Any, *, shared: bool = False) -> Cell:
        """Returns a saved value that goes with a store, so that it is found again when nodes get other names.

        Of several nodes that use the store alike, each has a value of its own, unless it is ``shared``.
        """
        ...

    def processor_context(self, *, fixed_key: bool = False, forwarding: bool = True) -> Any:
        """Returns the context for user code at this node."""
        ...

    def on_init(self, action: Callable[[], None]) -> None:
        """Registers what to call once the task's stores are open, in the order of the nodes."""
        ...

    def on_close(self, action: Callable[[], None]) -> None:
        """Registers what to call when the task closes, while its stores are still open."""
        ...

    def in_batches(self, answer: Callable[[list[BatchRecord]], Sequence[Any]], max_records: int) -> Edge:
        """Returns an edge that gathers records and forwards each with the value that ``answer`` gives for it."""
        ...

    def on_end(self, action: Callable[[], None]) -> None:
        """Registers what emits all that waits for a later record, when there will be none."""
        ...

    def drop(self) -> None:
        """Counts a record that Kafka Streams would drop with a warning."""
        ...

    def late(
        self, key: Any, value: Any, timestamp_ms: int, headers: Headers, *, window: Any, close_time_ms: int
    ) -> None:
        """Counts a dropped record as late as well and offers it to the ``on_late`` hook."""
        ...

    def fail(self, error: Exception, key: Any, value: Any, timestamp_ms: int, headers: Headers) -> None:
        """Asks the processing exception handler; returns if the record is to be skipped, raises otherwise."""
        ...


def with_made_functions(operation: Operation) -> Operation:
    """Returns the operation with the functions that are made where they run.

    An object with the method ``made_function`` travels as what the function is made of. Calling it works as well; the
    function that it makes saves a call per record.
    """
    given = {field.name: getattr(operation, field.name) for field in fields(operation)}
    made = {name: function for name, value in given.items() if (function := _made(value)) is not None}
    return replace(operation, **made) if made else operation


def _made(value: Any) -> Any:
    if isinstance(value, WithKey):
        inner = _made(value.function)
        return None if inner is None else WithKey(inner)
    # Looked up in the class: the user's objects may answer to any name.
    return value.made_function() if hasattr(type(value), "made_function") else None


@singledispatch
def operator(operation: Operation, node: Node) -> Edge:
    """Returns the code that runs ``operation`` at ``node``."""
    message = f"node '{node.name}': no operator is registered for {type(operation).__name__}"
    raise NotImplementedError(message)


@singledispatch
def getter(operation: Operation, node: Node) -> ValueGetter:
    """Returns how the rows of the table that ``operation`` makes are looked up."""
    message = f"node '{node.name}': {type(operation).__name__} does not make a table"
    raise NotImplementedError(message)

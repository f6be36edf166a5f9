"""Operations of the DSL's processors, as data: one frozen value per operation.

The DSL writes these values into the topology, ``operators`` turns each into the code that runs. They hold functions and
names of stores and nodes, never handles, so a topology can be pickled and shipped.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Any, ClassVar, Literal

from headrace.record import WithKey
from headrace.serdes import Serde
from headrace.windows import (
    EmitStrategy,
    JoinWindows,
    SessionWindows,
    SlidingWindows,
    Windows,
)

# User functions take and return whatever the user's types are; the DSL's handles carry those types.
Function = Callable[..., Any]
EdgeKind = Literal["stream", "table"]


@dataclass(frozen=True, slots=True)
class Operation:
    """Base of all operations; ``takes`` and ``gives`` say whether an edge carries records or table changes."""

    takes: ClassVar[EdgeKind] = "stream"
    gives: ClassVar[EdgeKind] = "stream"


@dataclass(frozen=True, slots=True)
class PassThrough(Operation):
    """Forwards every record: merges, branches."""


@dataclass(frozen=True, slots=True)
class TablePassThrough(Operation):
    """Forwards every change: the meeting point of cogrouped aggregations."""

    takes: ClassVar[EdgeKind] = "table"
    gives: ClassVar[EdgeKind] = "table"


@dataclass(frozen=True, slots=True)
class UserProcessor(Operation):
    """A processor of the user's: ``supplier()`` makes a new one per task."""

    supplier: Function
    fixed_key: bool = False


@dataclass(frozen=True, slots=True)
class Filter(Operation):
    predicate: Function
    negate: bool = False


@dataclass(frozen=True, slots=True)
class NullKeyFilter(Operation):
    """Guards a repartition topic: a record without a key has no partition to go to."""


@dataclass(frozen=True, slots=True)
class MapValues(Operation):
    mapper: Function | WithKey[Any]


@dataclass(frozen=True, slots=True)
class FlatMapValues(Operation):
    mapper: Function | WithKey[Any]


@dataclass(frozen=True, slots=True)
class MapBatches(Operation):
    """Gives at most ``max_records`` records at once to ``mapper``, as a list or as a table."""

    mapper: Function
    max_records: int
    schema: Any = None
    """The pyarrow schema of the table; None for a list. Any, because pyarrow is optional."""


@dataclass(frozen=True, slots=True)
class Map(Operation):
    mapper: Function


@dataclass(frozen=True, slots=True)
class FlatMap(Operation):
    mapper: Function


@dataclass(frozen=True, slots=True)
class SelectKey(Operation):
    selector: Function


@dataclass(frozen=True, slots=True)
class Peek(Operation):
    action: Function


@dataclass(frozen=True, slots=True)
class ForEach(Operation):
    action: Function


@dataclass(frozen=True, slots=True)
class Print(Operation):
    """Writes a line per record to a file, or to standard output when ``path`` is None."""

    label: str
    formatter: Function | None = None
    path: str | None = None


@dataclass(frozen=True, slots=True)
class Branch(Operation):
    """Sends a record to the child of the first predicate that holds, else to ``default`` if there is one."""

    predicates: tuple[Function, ...]
    children: tuple[str, ...]
    default: str | None = None


@dataclass(frozen=True, slots=True)
class Distinct(Operation):
    """Drops records that repeat one of the last ``within_ms``.

    ``identify`` gives what a record repeats besides its key; None: the key alone decides. ``store`` keeps keys then,
    and the bytes of key and identity otherwise.
    """

    store: str
    within_ms: int
    identify: Function | None = None
    key_serde: Serde[Any] | None = None
    identity_serde: Serde[Any] | None = None


@dataclass(frozen=True, slots=True)
class TableSource(Operation):
    """Turns records into changes of a table; ``store`` is None while nobody needs the table's rows."""

    gives: ClassVar[EdgeKind] = "table"
    store: str | None
    send_old: bool = False


@dataclass(frozen=True, slots=True)
class StreamAggregate(Operation):
    gives: ClassVar[EdgeKind] = "table"
    store: str
    initializer: Function
    aggregator: Function
    send_old: bool = False


@dataclass(frozen=True, slots=True)
class StreamCount(Operation):
    gives: ClassVar[EdgeKind] = "table"
    store: str
    send_old: bool = False


@dataclass(frozen=True, slots=True)
class StreamReduce(Operation):
    gives: ClassVar[EdgeKind] = "table"
    store: str
    reducer: Function
    send_old: bool = False


@dataclass(frozen=True, slots=True)
class WindowAggregate(Operation):
    """Tumbling, hopping and unlimited windows, and those of one's own.

    A windowed reduce has no initial value: ``initializer`` gives None.
    """

    gives: ClassVar[EdgeKind] = "table"
    store: str
    windows: Windows
    emit: EmitStrategy
    initializer: Function
    aggregator: Function
    send_old: bool = False


@dataclass(frozen=True, slots=True)
class SlidingAggregate(Operation):
    gives: ClassVar[EdgeKind] = "table"
    store: str
    windows: SlidingWindows
    emit: EmitStrategy
    initializer: Function
    aggregator: Function
    send_old: bool = False


@dataclass(frozen=True, slots=True)
class SessionAggregate(Operation):
    gives: ClassVar[EdgeKind] = "table"
    store: str
    windows: SessionWindows
    emit: EmitStrategy
    initializer: Function
    aggregator: Function
    merger: Function
    send_old: bool = False


@dataclass(frozen=True, slots=True)
class TableFilter(Operation):
    """``use_old``: the parent sends old values, so a row that was absent and stays absent is not forwarded."""

    takes: ClassVar[EdgeKind] = "table"
    gives: ClassVar[EdgeKind] = "table"
    parent: str
    predicate: Function
    negate: bool
    store: str | None
    send_old: bool = False
    use_old: bool = False
    versioned: bool = False


@dataclass(frozen=True, slots=True)
class TableMapValues(Operation):
    takes: ClassVar[EdgeKind] = "table"
    gives: ClassVar[EdgeKind] = "table"
    parent: str
    mapper: Function | WithKey[Any]
    store: str | None
    send_old: bool = False


@dataclass(frozen=True, slots=True)
class TableTransformValues(Operation):
    takes: ClassVar[EdgeKind] = "table"
    gives: ClassVar[EdgeKind] = "table"
    parent: str
    supplier: Function
    store: str | None
    send_old: bool = False


@dataclass(frozen=True, slots=True)
class TableToStream(Operation):
    takes: ClassVar[EdgeKind] = "table"


@dataclass(frozen=True, slots=True)
class TableGroupBy(Operation):
    """Re-keys a table's changes for a repartition topic; the records it sends have a ``Change`` as value."""

    takes: ClassVar[EdgeKind] = "table"
    parent: str
    selector: Function
    versioned: bool = False


@dataclass(frozen=True, slots=True)
class TableAggregate(Operation):
    """Takes the records of ``TableGroupBy`` from the repartition topic. A count has its own functions."""

    gives: ClassVar[EdgeKind] = "table"
    store: str
    initializer: Function
    adder: Function
    subtractor: Function
    send_old: bool = False


@dataclass(frozen=True, slots=True)
class TableReduce(Operation):
    gives: ClassVar[EdgeKind] = "table"
    store: str
    adder: Function
    subtractor: Function
    send_old: bool = False


@dataclass(frozen=True, slots=True)
class Suppress(Operation):
    """``wait_ms`` after an entry's buffer time it is emitted.

    ``by_window_end``: the buffer time is the window's end, and tombstones are dropped; otherwise it is the record's
    timestamp. ``shut_down``: a full buffer stops the application instead of emitting early.
    """

    takes: ClassVar[EdgeKind] = "table"
    gives: ClassVar[EdgeKind] = "table"
    parent: str
    store: str
    wait_ms: int
    by_window_end: bool
    max_records: int | None
    max_bytes: int | None
    shut_down: bool
    send_old: bool = False


class Side(Enum):
    """The input of a join that a processor handles."""

    LEFT = "left"
    RIGHT = "right"


@dataclass(frozen=True, slots=True)
class JoinWindowStore(Operation):
    """Forwards a record to the join first, then keeps it in ``store``, so that it never meets itself."""

    store: str


@dataclass(frozen=True, slots=True)
class StreamStreamJoin(Operation):
    """One side of a windowed join of two streams.

    ``joiner`` always takes (left, right), or (key, left, right) as ``WithKey``; ``outer``: this side's records come out
    unmatched too; ``unmatched_store`` keeps them, for both sides; ``join`` is the left side's store, with which
    goes the time that both sides share.
    """

    side: Side
    windows: JoinWindows
    joiner: Function | WithKey[Any]
    outer: bool
    other_store: str
    unmatched_store: str | None
    join: str


@dataclass(frozen=True, slots=True)
class StreamSelfJoin(Operation):
    windows: JoinWindows
    joiner: Function | WithKey[Any]
    store: str


@dataclass(frozen=True, slots=True)
class StreamTableJoin(Operation):
    """``table`` names the node whose rows are looked up; with ``grace_ms`` records wait in ``buffer_store``."""

    table: str
    joiner: Function | WithKey[Any]
    left: bool
    grace_ms: int | None = None
    buffer_store: str | None = None


@dataclass(frozen=True, slots=True)
class StreamGlobalJoin(Operation):
    store: str
    key_selector: Function
    joiner: Function | WithKey[Any]
    left: bool


class JoinKind(Enum):
    INNER = "inner"
    LEFT = "left"
    OUTER = "outer"


@dataclass(frozen=True, slots=True)
class TableTableJoin(Operation):
    """One side of a join of two tables on their key: a change here meets the row of ``other``.

    ``joiner`` always takes (left, right), or (key, left, right) as ``WithKey``.
    """

    takes: ClassVar[EdgeKind] = "table"
    gives: ClassVar[EdgeKind] = "table"
    kind: JoinKind
    side: Side
    this: str
    other: str
    joiner: Function | WithKey[Any]
    send_old: bool = False
    versioned: bool = False


@dataclass(frozen=True, slots=True)
class TableJoinMerge(Operation):
    """Merge of both sides of a table join; rows can be looked up through ``this`` side when there is no store."""

    takes: ClassVar[EdgeKind] = "table"
    gives: ClassVar[EdgeKind] = "table"
    this: str
    other: str
    store: str | None
    send_old: bool = False


@dataclass(frozen=True, slots=True)
class SubscriptionSend(Operation):
    """Foreign-key join, left table: tells the right table's partition which foreign key a row has now, and had."""

    takes: ClassVar[EdgeKind] = "table"
    foreign_key: Function | WithKey[Any]
    left: bool
    foreign_key_serde: Serde[Any] | None
    foreign_key_topic: str
    value_serde: Serde[Any] | None
    value_topic: str
    versioned: bool = False


@dataclass(frozen=True, slots=True)
class SubscriptionReceive(Operation):
    """Foreign-key join, right side: keeps the subscription, forwards it with its change."""

    store: str


@dataclass(frozen=True, slots=True)
class SubscriptionJoin(Operation):
    """Foreign-key join, right side: answers a subscription with the row of ``table``."""

    table: str


@dataclass(frozen=True, slots=True)
class ForeignTableJoin(Operation):
    """Foreign-key join, right side: a change of the right table answers all its subscriptions."""

    takes: ClassVar[EdgeKind] = "table"
    store: str
    versioned: bool = False


@dataclass(frozen=True, slots=True)
class ResponseJoin(Operation):
    """Foreign-key join, back on the left: joins an answer with the row of ``table`` if that has not changed since."""

    table: str
    sender: str
    """The node that sends subscriptions: one more may be needed."""
    foreign_key: Function | WithKey[Any]
    joiner: Function | WithKey[Any]
    left: bool
    value_serde: Serde[Any] | None
    value_topic: str

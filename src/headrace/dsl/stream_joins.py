"""Joins of a stream: with a stream in a window of time, with a table, with a global table."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from headrace.dsl import kstream, ktable
from headrace.dsl.argument_checks import check_function, check_option, check_type
from headrace.dsl.global_ktable import GlobalKTable
from headrace.dsl.graph import Process
from headrace.dsl.materialized import StreamJoined
from headrace.dsl.naming import checked
from headrace.dsl.options import Joined
from headrace.dsl.repartition import repartition_for_join
from headrace.dsl.requests import lookup_name, rows_of
from headrace.dsl.stores import grace_buffer
from headrace.dsl.windowed_join import join_streams
from headrace.errors import TopologyError, describe_value
from headrace.record import WithKey
from headrace.topology import operations as ops
from headrace.windows import JoinWindows

if TYPE_CHECKING:
    from headrace.dsl.kstream import KStream
    from headrace.dsl.ktable import KTable


@dataclass(frozen=True, slots=True)
class Call:
    """A call of a join method, as the user made it."""

    stream: KStream[Any, Any]
    method: str
    joiner: Callable[..., Any] | WithKey[Any]
    windows: JoinWindows | None
    joined: Any
    key_selector: Callable[..., Any] | None
    name: str | None

    @property
    def where(self) -> str:
        return f"{self.method}() on '{self.stream._name}'"

    def refuse(self, argument: str, other: str, hint: str) -> None:
        """Raises if an argument was given that this kind of join has no use for."""
        if getattr(self, argument) is not None:
            message = f"{self.where}: a join with {other} takes no {argument}; found one; {hint}"
            raise TopologyError(message)

    def with_name(self, option: Any) -> Any:
        """Returns the option with the name that was given as an argument of its own."""
        if checked(self.name) is None:
            return option
        if option.name not in {None, self.name}:
            message = f"{self.where}: two names were given, '{self.name}' and '{option.name}'; leave one out"
            raise TopologyError(message)
        return replace(option, name=self.name)


def join(call: Call, other: Any, kind: ops.JoinKind) -> KStream[Any, Any]:
    """Joins a stream with whatever ``other`` is."""
    check_function(call.where, "joiner", call.joiner, "(value, other_value)", with_key=True)
    if isinstance(other, kstream.KStream):
        call.stream._check_same_builder(call.where, other)
        call.refuse("key_selector", "a stream", "use select_key() before the join")
        if call.windows is None:
            message = f"{call.where}: a join of two streams needs windows; found none; pass windows=JoinWindows…"
            raise TopologyError(message)
        check_type(call.where, "windows", call.windows, JoinWindows)
        option = call.with_name(check_option(call.where, "joined", call.joined, StreamJoined, StreamJoined()))
        return join_streams(call.stream, other, call.joiner, call.windows, option, kind)
    if isinstance(other, ktable.KTable | GlobalKTable) and kind is not ops.JoinKind.OUTER:
        call.stream._check_same_builder(call.where, other)
        call.refuse("windows", "a table", "only a join of two streams is windowed")
        return _join_table(call, other, kind) if isinstance(other, ktable.KTable) else _join_global(call, other, kind)
    partners = "a KStream" if kind is ops.JoinKind.OUTER else "a KStream, KTable or GlobalKTable"
    message = f"{call.where}: other must be {partners}; found {describe_value(other)}"
    raise TopologyError(message)


def _join_table(call: Call, table: KTable[Any, Any], kind: ops.JoinKind) -> KStream[Any, Any]:
    call.refuse("key_selector", "a table", "use select_key() before the join")
    joined: Joined[Any, Any, Any] = call.with_name(check_option(call.where, "joined", call.joined, Joined, Joined()))
    stream, left = call.stream, kind is ops.JoinKind.LEFT
    if stream._key_changed:
        base = stream._name if joined.name is None else joined.name
        stream = repartition_for_join(
            stream,
            base,
            joined.key_serde,
            joined.value_serde,
            named_by_user=joined.name is not None,
            option="Joined({}_serde=…)",
        )
    draft = stream._draft
    sources = draft.copartition(stream._sources | table._sources)
    name = draft.names.named(joined.name, "KSTREAM-LEFTJOIN-" if left else "KSTREAM-JOIN-")
    key_serde = joined.key_serde or stream._key_serde
    buffer = None
    if joined.grace_ms is not None:
        if draft.nodes[table._node].versioned is False:
            raise not_versioned(name)
        buffer = grace_buffer(f"{name}-Buffer", joined.grace_ms, key_serde, joined.value_serde or stream._value_serde)
        if joined.name is None:
            draft.generated_store(buffer)
    node = draft.add(
        Process,
        name,
        (stream._node,),
        operation=ops.StreamTableJoin(
            lookup_name(draft, table._node),
            call.joiner,
            left,
            joined.grace_ms,
            None if buffer is None else buffer.name,
        ),
        stores=() if buffer is None else (buffer,),
        uses=rows_of(draft, table._node),
        buffer_ms=joined.grace_ms,
        keeps_null_keys=left,
    )
    return replace(
        stream, _node=node, _name=name, _key_serde=key_serde, _value_serde=None, _sources=sources, _key_changed=False
    )


def not_versioned(name: str) -> TopologyError:
    """Returns the error for a join that waits for a table which cannot tell its past."""
    message = (
        f"join '{name}': the KTable must be versioned to use a grace period in a stream-table join; found one that "
        "is not; materialize it with Stores.persistent_versioned_key_value_store, or leave out grace_period"
    )
    return TopologyError(message)


def _join_global(call: Call, table: GlobalKTable[Any, Any], kind: ops.JoinKind) -> KStream[Any, Any]:
    call.refuse("joined", "a global table", "it needs neither serdes nor a repartition topic; pass name=… for a name")
    check_function(call.where, "key_selector", call.key_selector, "(key, value) that gives the table's key")
    assert call.key_selector is not None  # just checked
    draft, stream, left = call.stream._draft, call.stream, kind is ops.JoinKind.LEFT
    name = draft.names.named(call.name, "KSTREAM-LEFTJOIN-")
    operation = ops.StreamGlobalJoin(table._store, call.key_selector, call.joiner, left)
    node = draft.add(Process, name, (stream._node,), operation=operation, keeps_null_keys=left)
    return replace(stream, _node=node, _name=name, _value_serde=None)

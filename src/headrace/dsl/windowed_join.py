"""The join of two streams in a window of time: five nodes, a store for each side, one for records without partner."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from headrace.dsl.graph import Process, WindowedJoin
from headrace.dsl.materialized import StreamJoined
from headrace.dsl.repartition import repartition_for_join
from headrace.dsl.stores import StoreSpec, join_window_store, unmatched_store
from headrace.record import WithKey
from headrace.serdes import Serde
from headrace.topology import operations as ops
from headrace.windows import JoinWindows

if TYPE_CHECKING:
    from headrace.dsl.kstream import KStream


def join_streams(
    left: KStream[Any, Any],
    right: KStream[Any, Any],
    joiner: Callable[..., Any] | WithKey[Any],
    windows: JoinWindows,
    joined: StreamJoined[Any, Any, Any],
    kind: ops.JoinKind,
) -> KStream[Any, Any]:
    """Joins two streams, repartitioning those whose key has changed."""
    left = _partitioned(left, "-left", joined, joined.value_serde)
    right = _partitioned(right, "-right", joined, joined.other_value_serde)
    sources = left._draft.copartition(left._sources | right._sources)
    return _WindowedJoinNames(left, right, joined, kind).add(joiner, windows, sources)


def _partitioned(
    stream: KStream[Any, Any], suffix: str, joined: StreamJoined[Any, Any, Any], value_serde: Serde[Any] | None
) -> KStream[Any, Any]:
    if not stream._key_changed:
        return stream
    base = stream._name if joined.name is None else joined.name + suffix
    return repartition_for_join(
        stream,
        base,
        joined.key_serde,
        value_serde,
        named_by_user=joined.name is not None,
        option="StreamJoined(…)",
    )


class _WindowedJoinNames:
    """Takes the names of the join's nodes in Kafka Streams' order, then adds the nodes."""

    def __init__(
        self,
        left: KStream[Any, Any],
        right: KStream[Any, Any],
        joined: StreamJoined[Any, Any, Any],
        kind: ops.JoinKind,
    ) -> None:
        self._left, self._right, self._joined, self._draft = left, right, joined, left._draft
        self._left_outer = kind is not ops.JoinKind.INNER
        self._right_outer = kind is ops.JoinKind.OUTER
        names, name = self._draft.names, joined.name
        self._this_windowed = names.suffixed(name, "-this-windowed", "KSTREAM-WINDOWED-")
        self._other_windowed = names.suffixed(name, "-other-windowed", "KSTREAM-WINDOWED-")
        self._this_counted = names.node("KSTREAM-OUTERTHIS-" if self._right_outer else "KSTREAM-JOINTHIS-")
        self._other_counted = names.node("KSTREAM-OUTEROTHER-" if self._left_outer else "KSTREAM-JOINOTHER-")
        self._this_suffix = "-outer-this-join" if self._right_outer else "-this-join"
        self._other_suffix = "-outer-other-join" if self._left_outer else "-other-join"
        self._this = self._this_counted if name is None else name + self._this_suffix
        self._other = self._other_counted if name is None else name + self._other_suffix
        self._merge = names.suffixed(name, "-merge", "KSTREAM-MERGE-")

    def add(
        self, joiner: Callable[..., Any] | WithKey[Any], windows: JoinWindows, sources: frozenset[str]
    ) -> KStream[Any, Any]:
        draft, left, right = self._draft, self._left, self._right
        this_store, other_store, unmatched = self._stores(windows)
        for name, stream, store in (
            (self._this_windowed, left, this_store),
            (self._other_windowed, right, other_store),
        ):
            draft.add(Process, name, (stream._node,), operation=ops.JoinWindowStore(store.name), stores=(store,))
        unmatched_name = None if unmatched is None else unmatched.name
        node = draft.add(
            WindowedJoin,
            self._merge,
            (left._node, right._node),
            this=self._this,
            other=self._other,
            this_windowed=self._this_windowed,
            other_windowed=self._other_windowed,
            this_operation=ops.StreamStreamJoin(
                ops.Side.LEFT, windows, joiner, self._left_outer, other_store.name, unmatched_name, this_store.name
            ),
            other_operation=ops.StreamStreamJoin(
                ops.Side.RIGHT, windows, joiner, self._right_outer, this_store.name, unmatched_name, this_store.name
            ),
            this_store=this_store,
            other_store=other_store,
            unmatched_store=unmatched,
            keeps_null_keys=self._left_outer,
        )
        return replace(
            left,
            _node=node,
            _name=self._merge,
            _key_serde=self._key_serde,
            _value_serde=None,
            _sources=sources,
            _key_changed=False,
        )

    @property
    def _key_serde(self) -> Serde[Any] | None:
        return self._joined.key_serde or self._left._key_serde

    def _stores(self, windows: JoinWindows) -> tuple[StoreSpec, StoreSpec, StoreSpec | None]:
        joined, base = self._joined, self._joined.store_name
        value_serde = joined.value_serde or self._left._value_serde
        other_value_serde = joined.other_value_serde or self._right._value_serde
        this_store = join_window_store(
            self._this_counted if base is None else base + self._this_suffix,
            joined,
            windows,
            joined.this_store_supplier,
            self._key_serde,
            value_serde,
        )
        other_store = join_window_store(
            self._other_counted if base is None else base + self._other_suffix,
            joined,
            windows,
            joined.other_store_supplier,
            self._key_serde,
            other_value_serde,
        )
        unmatched = None
        if self._left_outer and not windows.eager:
            name = f"{self._unmatched_base()}-store"
            unmatched = unmatched_store(name, joined, self._key_serde, value_serde, other_value_serde)
        if base is None:
            for store in (this_store, other_store, unmatched):
                if store is not None:
                    self._draft.generated_store(store)
        return this_store, other_store, unmatched

    def _unmatched_base(self) -> str:
        joined = self._joined
        suffix = "-outer-shared-join" if self._right_outer else "-left-shared-join"
        if joined.this_store_supplier is not None:
            return joined.this_store_supplier.name + suffix
        if joined.store_name is not None:
            return joined.store_name + suffix
        return f"KSTREAM-OUTERSHARED-{self._this_counted.rpartition('-')[2]}"

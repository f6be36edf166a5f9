"""Repartitioning a stream whose key has changed, before it is joined."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from headrace.serdes import Serde

if TYPE_CHECKING:
    from headrace.dsl.kstream import KStream


def repartition_for_join(
    stream: KStream[Any, Any],
    base: str,
    key_serde: Serde[Any] | None,
    value_serde: Serde[Any] | None,
    *,
    named_by_user: bool,
    option: str,
) -> KStream[Any, Any]:
    """Returns the stream partitioned by its key; joins without a name share one repartition topic."""
    draft = stream._draft
    content = draft.repartition_content(
        base,
        key_serde=key_serde or stream._key_serde,
        value_serde=value_serde or stream._value_serde,
        named_by_user=named_by_user,
        serdes_from=option,
    )
    slot = ("join", stream._node)
    if slot not in draft.shared_repartitions or stream._name != base:
        draft.shared_repartitions[slot] = draft.repartition(stream._node, content)
    node = draft.shared_repartitions[slot]
    return replace(stream._repartition(node, content), _sources=frozenset((draft.nodes[node].name,)))

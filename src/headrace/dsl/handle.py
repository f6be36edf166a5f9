"""Handle: the base of streams and tables, an immutable reference to a node of the logical graph."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from headrace.arguments.hints import Hinting
from headrace.dsl.draft import Draft
from headrace.dsl.graph import NodeId
from headrace.errors import TopologyError
from headrace.serdes import Serde

K = TypeVar("K")
V = TypeVar("V")


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Handle(Hinting, Generic[K, V]):
    """A stream, a table or a group of records with keys ``K`` and values ``V``."""

    _draft: Draft
    _node: NodeId
    _name: str
    _key_serde: Serde[Any] | None
    _value_serde: Serde[Any] | None
    _sources: frozenset[str]
    """Names of the sources that its records come from without crossing an internal topic."""

    def __repr__(self) -> str:
        return f"<{type(self).__name__} '{self._name}'>"

    def _where(self, method: str) -> str:
        return f"{method}() on '{self._name}'"

    def _check_same_builder(self, where: str, other: Handle[Any, Any]) -> None:
        if other._draft is not self._draft:
            message = (
                f"{where}: both sides must come from the same StreamsBuilder; "
                f"found '{other._name}' of another one; build both with one builder"
            )
            raise TopologyError(message)

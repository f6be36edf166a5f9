"""Verdicts of a comparison: what happens to each store and each sub-topology of an application that is changed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum


class Verdict(Enum):
    """The word for what happens."""

    KEPT = "kept"
    RENAMED = "renamed"
    CONVERTED = "converted"
    REBUILT = "rebuilt"
    NEW = "new"
    DROPPED = "dropped"
    REFUSED = "refused"


@dataclass(frozen=True)
class StoreChange:
    """Verdict on one store."""

    store: str
    """Its name in the new topology; the former one if it is dropped."""
    verdict: Verdict
    note: str = ""
    former: str | None = None
    """Its name before; None if it is new."""
    converts: bool = False
    """Whether its values are rewritten with another serde."""


@dataclass(frozen=True)
class PartChange:
    """Verdict on one sub-topology."""

    part: int
    """Its number in the new topology; the former one if it is dropped."""
    verdict: Verdict
    note: str = ""
    former: tuple[int, ...] = ()
    """The sub-topologies that have read what it reads."""


@dataclass(frozen=True)
class Options:
    """Options of a change, as the user gave them."""

    renames: Mapping[str, str] = field(default_factory=dict)
    """New names of stores by former ones."""
    keep_bytes: frozenset[str] = frozenset()
    """Stores, by new names, whose new serdes read what the former ones have written."""
    rebuild: frozenset[str] = frozenset()
    """Stores, by new names, whose inputs are read again from their beginning."""


@dataclass(frozen=True)
class Comparison:
    """Everything that a change from one topology to another one means."""

    stores: tuple[StoreChange, ...]
    parts: tuple[PartChange, ...]
    problems: tuple[str, ...] = ()
    """Why it cannot be applied, besides refusals of single stores."""
    store_names: Mapping[str, str] = field(default_factory=dict)
    """New names by former ones, of stores whose rows are taken over."""
    node_names: Mapping[str, str] = field(default_factory=dict)
    topic_names: Mapping[str, str] = field(default_factory=dict)
    """Of topics that go on to be read: short names of internal ones."""
    rebuilt_parts: frozenset[int] = frozenset()
    """Sub-topologies of the new topology that begin anew."""

    @property
    def is_refused(self) -> bool:
        return bool(self.problems) or any(change.verdict is Verdict.REFUSED for change in self.stores)

    @property
    def converted(self) -> frozenset[str]:
        """Stores whose values are rewritten, by their new names."""
        return frozenset(change.store for change in self.stores if change.converts)

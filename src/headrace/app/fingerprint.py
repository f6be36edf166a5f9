"""What of a topology its saved state depends on, and whether a changed topology still fits."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from headrace.errors import IncompatibleTopologyError
from headrace.state import StoreBuilder
from headrace.topology.levels import levels
from headrace.topology.subtopologies import Subtopology
from headrace.topology.topology import Topology

_GENERATED = re.compile(r"-\d{10}(-|$)")


@dataclass(frozen=True)
class Part:
    """What the tasks of one sub-topology keep and read."""

    level: int
    tasks: int
    inputs: Mapping[str, int] = field(default_factory=dict)
    """Partitions by topic; internal topics without the application's id."""
    patterns: tuple[str, ...] = ()
    stores: Mapping[str, str] = field(default_factory=dict)
    """Kind by name."""


@dataclass(frozen=True)
class Fingerprint:
    """The sub-topologies that have tasks, by id. Functions and stateless operators are not in it."""

    parts: Mapping[int, Part]

    @property
    def keeps_state(self) -> bool:
        """Whether any task has a store; if none has, it does not matter which task reads which partition."""
        return any(part.stores for part in self.parts.values())

    @classmethod
    def of(cls, topology: Topology, external: Mapping[str, int]) -> Fingerprint:
        """Takes the fingerprint of a topology, given the partitions of the topics of others.

        >>> from headrace import Materialized, StreamsBuilder
        >>> builder = StreamsBuilder()
        >>> table = builder.stream("in").group_by_key().count(materialized=Materialized("counts"))
        >>> Fingerprint.of(builder.build(), {"in": 2}).parts[0]
        Part(level=0, tasks=2, inputs={'in': 2}, patterns=(), stores={'counts': 'timestamped_key_value'})
        """
        counts, tasks = topology.partition_counts(external), topology.task_counts(external)
        depth = {part: number for number, level in enumerate(levels(topology)) for part in level.subtopologies}
        return cls(
            {
                part.id: _part(topology, part, depth[part.id], tasks[part.id], counts)
                for part in topology.subtopologies()
                if not part.is_global
            }
        )

    def to_json(self) -> dict[str, Any]:
        """Returns it as JSON has it."""
        parts = {
            str(number): {
                "level": part.level,
                "tasks": part.tasks,
                "inputs": dict(part.inputs),
                "patterns": list(part.patterns),
                "stores": dict(part.stores),
            }
            for number, part in self.parts.items()
        }
        return {"subtopologies": parts}

    @classmethod
    def from_json(cls, found: Mapping[str, Any]) -> Fingerprint:
        """Reads what ``to_json`` has made."""
        return cls(
            {
                int(number): Part(
                    int(part["level"]),
                    int(part["tasks"]),
                    dict(part["inputs"]),
                    tuple(part["patterns"]),
                    dict(part["stores"]),
                )
                for number, part in found["subtopologies"].items()
            }
        )


def check_compatible(application: str, old: Fingerprint, new: Fingerprint) -> None:
    """Raises if the state that was saved under the old topology cannot be used by the new one.

    >>> old = Fingerprint({0: Part(0, 2, {"in": 2}, stores={"counts": "key_value"})})
    >>> check_compatible("app", old, Fingerprint({0: Part(0, 2, {"in": 2}, stores={"totals": "key_value"})}))
    Traceback (most recent call last):
    ...
    headrace.errors.IncompatibleTopologyError: application 'app': the topology does not fit its saved state: \
sub-topology 0 kept the store 'counts' and now keeps 'totals' instead; give it its former name, for example with \
Materialized('counts'); or start over with `headrace reset app`
    """
    problems = list(_problems(old, new))
    if not problems:
        return
    remedies = list(dict.fromkeys([remedy for _, remedy in problems if remedy]))
    remedies = remedies or ["go back to the former topology"]
    message = (
        f"application '{application}': the topology does not fit its saved state: "
        f"{'; '.join(problem for problem, _ in problems)}; {'; '.join(remedies)}; "
        f"or start over with `headrace reset {application}`"
    )
    raise IncompatibleTopologyError(message)


def _part(topology: Topology, part: Subtopology, level: int, tasks: int, counts: Mapping[str, int]) -> Part:
    # What a pattern matches may grow as long as the number of tasks does not change.
    return Part(
        level,
        tasks,
        {topic: counts[topic] for topic in sorted(part.source_topics)},
        tuple(sorted(pattern.pattern for pattern in part.source_patterns)),
        {name: _kind(topology.store_builders[name]) for name in sorted(part.state_stores)},
    )


def _kind(builder: StoreBuilder) -> str:
    # These change how rows are laid out, so they are another kind to those who find the rows.
    flags = [name for name in ("time_index", "retain_duplicates") if getattr(builder.supplier, name, False)]
    return " ".join([builder.kind, *flags])


_Problem = tuple[str, str]
"""What has changed, and a remedy, which may be empty."""


def _problems(old: Fingerprint, new: Fingerprint) -> Iterator[_Problem]:
    """Stores first: where they went explains the rest."""
    yield from _moved(old, new)
    for number in sorted(old.parts.keys() | new.parts.keys()):
        before, after = old.parts.get(number), new.parts.get(number)
        if before is None and after is not None:
            what = f"sub-topology {number}, which reads {_inputs(after)}, is new"
            yield what, "let it be an application of its own, with another application_id"
        elif after is None and before is not None:
            yield f"sub-topology {number}, which read {_inputs(before)}, is gone", "go back to the former topology"
        elif before is not None and after is not None:
            stores, keeps_state = _homes(old).keys() & _homes(new).keys(), old.keeps_state or new.keeps_state
            yield from _changed(number, before, after, stores, keeps_state=keeps_state)


def _moved(old: Fingerprint, new: Fingerprint) -> Iterator[_Problem]:
    homes, remedy = _homes(new), "keep the order in which the topology is built"
    for store, number in _homes(old).items():
        if (home := homes.get(store, number)) != number:
            yield f"the store '{store}' was in sub-topology {number} and is now in sub-topology {home}", remedy


def _changed(number: int, before: Part, after: Part, kept: set[str], *, keeps_state: bool) -> Iterator[_Problem]:
    where = f"sub-topology {number}"
    yield from _changed_stores(where, before, after, kept)
    if set(before.inputs) != set(after.inputs) or before.patterns != after.patterns:
        yield f"{where} read {_inputs(before)} and now reads {_inputs(after)}", _naming_topics(before, after)
    for topic in sorted(before.inputs.keys() & after.inputs.keys()):
        # Who remembers nothing can have any number of tasks.
        if keeps_state and before.inputs[topic] != after.inputs[topic]:
            what = f"{where}: '{topic}' had {before.inputs[topic]} partitions and now has {after.inputs[topic]}"
            yield what, "keys would go to tasks that do not have their state: bring the former number back"
    if keeps_state and before.inputs == after.inputs and before.tasks != after.tasks:
        what = f"{where} had {before.tasks} tasks and now has {after.tasks}, by the topics that its pattern matches"
        yield what, "let the pattern match topics with as many partitions as before"
    if before.level != after.level:
        what = f"{where} was at level {before.level} of the repartitions and is now at level {after.level}"
        yield what, "go back to the former repartitions"


def _changed_stores(where: str, before: Part, after: Part, kept: set[str]) -> Iterator[_Problem]:
    gone = [store for store in before.stores if store not in after.stores and store not in kept]
    new = [store for store in after.stores if store not in before.stores and store not in kept]
    # Names that differ in pairs are one store under another name, as far as anybody can tell.
    renamed = list(zip(gone, new, strict=False)) if len(gone) == len(new) else []
    for old_name, new_name in renamed:
        why = ", a generated name, which counts the operators before it," if _GENERATED.search(new_name) else ""
        what = f"{where} kept the store '{old_name}' and now keeps '{new_name}'{why} instead"
        yield what, f"give it its former name, for example with Materialized('{old_name}')"
    if not renamed:
        for store in gone:
            yield f"{where} kept the store '{store}', which is gone", f"bring the store '{store}' back"
        for store in new:
            yield f"{where} has the new store '{store}'", "let what needs it be an application of its own"
    for store in sorted(before.stores.keys() & after.stores.keys()):
        if before.stores[store] != after.stores[store]:
            kinds = f"was a {_words(before.stores[store])} store and is now a {_words(after.stores[store])} store"
            yield f"{where}: '{store}' {kinds}", f"give the new store another name than '{store}', and start over"


def _naming_topics(before: Part, after: Part) -> str:
    changed = before.inputs.keys() ^ after.inputs.keys()
    if any(_GENERATED.search(topic) for topic in changed):
        return (
            "generated names count the operators before them: name repartitions with Grouped, Joined or Repartitioned"
        )
    return "read the former topics"


def _homes(fingerprint: Fingerprint) -> dict[str, int]:
    return {store: number for number, part in fingerprint.parts.items() for store in part.stores}


def _inputs(part: Part) -> str:
    named = [f"'{topic}'" for topic in part.inputs]
    return ", ".join([*named, *(f"the pattern '{pattern}'" for pattern in part.patterns)]) or "nothing"


def _words(kind: str) -> str:
    return kind.replace("_", " ")

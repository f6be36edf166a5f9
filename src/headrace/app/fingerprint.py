"""Fingerprint of a topology: the part that saved state depends on, and whether a changed topology still fits."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from headrace.errors import IncompatibleTopologyError
from headrace.state import StoreBuilder
from headrace.topology.levels import levels
from headrace.topology.matching import match_stores
from headrace.topology.outline import Outline, StoreOutline, is_generated
from headrace.topology.subtopologies import Subtopology
from headrace.topology.topology import Topology


@dataclass(frozen=True)
class Part:
    """The stores and inputs of one sub-topology's tasks."""

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
Materialized('counts'); or see what changing it means with `headrace plan-change MODULE:BUILD -a app`; or start over \
with `headrace reset app`
    """
    problems = list(_problems(old, new))
    if not problems:
        return
    remedies = list(dict.fromkeys([remedy for _, remedy in problems if remedy]))
    remedies = remedies or ["go back to the former topology"]
    raise _incompatible(application, "; ".join(problem for problem, _ in problems), remedies)


def check_formats(application: str, old: Outline, new: Outline) -> None:
    """Raises if rows of a store would be misread: its serdes or its windows are others than those they were saved by.

    >>> from headrace.topology.outline import StoreOutline
    >>> old = Outline(stores=(StoreOutline("counts", "key_value", "string", "long"),))
    >>> check_formats("app", old, Outline(stores=(StoreOutline("counts", "key_value", "string", "json"),)))
    Traceback (most recent call last):
    ...
    headrace.errors.IncompatibleTopologyError: application 'app': the topology does not fit its saved state: the store \
'counts' was written with the value serde long and is now read with json; bring the former serdes and windows back; or \
see what changing it means with `headrace plan-change MODULE:BUILD -a app`; or start over with `headrace reset app`
    """
    problems = [
        f"the store '{store.name}' {problem}"
        for store in new.stores
        if (before := old.store_named.get(store.name)) is not None and not store.is_global
        for problem in find_misread(before, store)
    ]
    if problems:
        raise _incompatible(application, "; ".join(problems), ["bring the former serdes and windows back"])


def check_generated_names(application: str, old: Outline, new: Outline) -> None:
    """Raises if stores whose names are generated have changed places: each would find the rows of another one."""
    pairs = match_stores(old, new).pairs
    moved = [
        f"the store '{before}' is now called '{now}', and another one has its name"
        for before, now in pairs.items()
        if before != now and before in new.store_named
    ]
    if moved:
        raise _incompatible(application, "; ".join(moved), ["give stores names, for example with Materialized('…')"])


def find_misread(before: StoreOutline, now: StoreOutline) -> Iterator[str]:
    """Returns why rows that one store has written mean something else to another one of the same kind."""
    for what in ("key", "value"):
        former, serde = getattr(before, f"{what}_serde"), getattr(now, f"{what}_serde")
        if former != serde:
            yield f"was written with the {what} serde {former} and is now read with {serde}"
    if before.window_ms != now.window_ms and before.window_ms is not None and now.window_ms is not None:
        yield f"had windows of {before.window_ms} ms and now has windows of {now.window_ms} ms"


def _incompatible(application: str, problems: str, remedies: Sequence[str]) -> IncompatibleTopologyError:
    return IncompatibleTopologyError(
        f"application '{application}': the topology does not fit its saved state: {problems}; {'; '.join(remedies)}; "
        f"or see what changing it means with `headrace plan-change MODULE:BUILD -a {application}`; or start over with "
        f"`headrace reset {application}`"
    )


def check_partitions(application: str, old: Fingerprint, external: Mapping[str, int]) -> None:
    """Raises if inputs have got more partitions than they had when state was saved, and names the command for it.

    >>> old = Fingerprint({0: Part(0, 2, {"orders": 2, "users": 2}, stores={"users": "key_value"})})
    >>> check_partitions("app", old, {"orders": 6, "users": 2})
    Traceback (most recent call last):
    ...
    headrace.errors.IncompatibleTopologyError: application 'app': 'orders' had 2 partitions and now has 6; its state \
is split by the former number, so keys would go to tasks that do not have theirs; split it anew with `headrace grow \
app MODULE:BUILD --topic orders=6 --topic users=6`, or start over with `headrace reset app`
    """
    if not old.keeps_state:
        return
    changed: dict[str, tuple[int, int]] = {}
    wanted: dict[str, int] = {}
    for part in old.parts.values():
        counts = {topic: (before, external[topic]) for topic, before in part.inputs.items() if topic in external}
        here = {topic: each for topic, each in counts.items() if each[0] != each[1]}
        changed.update(here)
        if here:
            # What is read together must have equally many.
            widest = max(after for _, after in here.values())
            wanted.update({topic: max(widest, wanted.get(topic, 0)) for topic in counts})
    if not changed:
        return
    found = " and ".join(f"'{topic}' had {old} partitions and now has {new}" for topic, (old, new) in changed.items())
    why = "its state is split by the former number, so keys would go to tasks that do not have theirs"
    options = " ".join(f"--topic {topic}={number}" for topic, number in wanted.items())
    remedy = f"split it anew with `headrace grow {application} MODULE:BUILD {options}`"
    if any(new % old for old, new in changed.values()):
        remedy = "only a whole multiple of the former number can be reached by `headrace grow`"
    message = (
        f"application '{application}': {found}; {why}; {remedy}, or start over with `headrace reset {application}`"
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
    # These change how rows are laid out, so the rows are of another kind.
    flags = [name for name in ("time_index", "retain_duplicates") if getattr(builder.supplier, name, False)]
    return " ".join([builder.kind, *flags])


_Problem = tuple[str, str]
"""What has changed, and a remedy, which may be empty."""


def _problems(old: Fingerprint, new: Fingerprint) -> Iterator[_Problem]:
    """Stores first: where they went explains the rest."""
    yield from _find_moved(old, new)
    for number in sorted(old.parts.keys() | new.parts.keys()):
        before, after = old.parts.get(number), new.parts.get(number)
        if before is None and after is not None:
            what = f"sub-topology {number}, which reads {_inputs(after)}, is new"
            yield what, "let it be an application of its own, with another application_id"
        elif after is None and before is not None:
            yield f"sub-topology {number}, which read {_inputs(before)}, is gone", "go back to the former topology"
        elif before is not None and after is not None:
            stores, keeps_state = (
                _store_parts(old).keys() & _store_parts(new).keys(),
                old.keeps_state or new.keeps_state,
            )
            yield from _find_changed(number, before, after, stores, keeps_state=keeps_state)


def _find_moved(old: Fingerprint, new: Fingerprint) -> Iterator[_Problem]:
    homes, remedy = _store_parts(new), "keep the order in which the topology is built"
    for store, number in _store_parts(old).items():
        if (home := homes.get(store, number)) != number:
            yield f"the store '{store}' was in sub-topology {number} and is now in sub-topology {home}", remedy


def _find_changed(number: int, before: Part, after: Part, kept: set[str], *, keeps_state: bool) -> Iterator[_Problem]:
    where = f"sub-topology {number}"
    yield from _changed_stores(where, before, after, kept)
    if set(before.inputs) != set(after.inputs) or before.patterns != after.patterns:
        yield f"{where} read {_inputs(before)} and now reads {_inputs(after)}", _naming_topics(before, after)
    for topic in sorted(before.inputs.keys() & after.inputs.keys()):
        # An application without state can have any number of tasks.
        if keeps_state and before.inputs[topic] != after.inputs[topic]:
            what = f"{where}: '{topic}' had {before.inputs[topic]} partitions and now has {after.inputs[topic]}"
            yield what, "keys would go to tasks that do not have their state: split it with `headrace grow`"
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
        why = ", a generated name, which counts the operators before it," if is_generated(new_name) else ""
        what = f"{where} kept the store '{old_name}' and now keeps '{new_name}'{why} instead"
        yield what, f"give it its former name, for example with Materialized('{old_name}')"
    if not renamed:
        for store in gone:
            yield f"{where} kept the store '{store}', which is gone", f"bring the store '{store}' back"
        for store in new:
            yield f"{where} has the new store '{store}'", "let what needs it be an application of its own"
    for store in sorted(before.stores.keys() & after.stores.keys()):
        if before.stores[store] != after.stores[store]:
            kinds = (
                f"was a {_kind_words(before.stores[store])} store and is now a {_kind_words(after.stores[store])} store"
            )
            yield f"{where}: '{store}' {kinds}", f"give the new store another name than '{store}', and start over"


def _naming_topics(before: Part, after: Part) -> str:
    changed = before.inputs.keys() ^ after.inputs.keys()
    if any(is_generated(topic) for topic in changed):
        return (
            "generated names count the operators before them: name repartitions with Grouped, Joined or Repartitioned"
        )
    return "read the former topics"


def _store_parts(fingerprint: Fingerprint) -> dict[str, int]:
    return {store: number for number, part in fingerprint.parts.items() for store in part.stores}


def _inputs(part: Part) -> str:
    named = [f"'{topic}'" for topic in part.inputs]
    return ", ".join([*named, *(f"the pattern '{pattern}'" for pattern in part.patterns)]) or "nothing"


def _kind_words(kind: str) -> str:
    return kind.replace("_", " ")

"""Invariants at the end of a history: everything was done exactly once, and stores say the same as outputs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from tests.simulation.program import DROPPED, LOOPED, PARTITIONS, TICKS

Records = Sequence[tuple[str, Mapping[str, object]]]
"""Key and value."""


class Violation(AssertionError):
    """Something that must never happen."""


def check_outputs(
    outputs: Mapping[str, Sequence[Records]],
    written: Sequence[tuple[str, str]] | None,
    stores: Mapping[str, Mapping[str, str]] | None,
) -> None:
    """Checks outputs by topic and partition; those from before a reset need not be complete, so nothing is given."""
    last = {topic: check_chains(topic, partitions) for topic, partitions in outputs.items()}
    first = _counted(outputs["first-out"])
    out = _counted(outputs["out"])
    if written is not None:
        _check_complete(first, out, written)
    if stores is not None:
        for topic, store in (("first-out", "first"), ("out", "second")):
            rows = {key: value for key, value in stores[store].items() if not key.startswith("ticks-")}
            wanted = {key: token for key, token in last[topic].items() if token is not None}
            if rows != wanted:
                message = f"store '{store}' has {rows}, and its outputs say {wanted}"
                raise Violation(message)


def _counted(partitions: Sequence[Records]) -> Counter[str]:
    found = Counter(str(value["id"]) for records in partitions for _, value in records)
    twice = sorted(id_ for id_, count in found.items() if count > 1)
    if twice:
        message = f"written more than once: {twice}"
        raise Violation(message)
    return found


def check_chains(topic: str, partitions: Sequence[Records]) -> dict[str, object]:
    """Checks that each record of a key names the one before it; returns the last tokens."""
    last: dict[str, object] = {}
    for records in partitions:
        for key, value in records:
            if value["before"] != last.get(key):
                message = (
                    f"'{topic}': {value['id']} of key {key} was written when the store had {value['before']}, and the "
                    f"output before it was {last.get(key)}"
                )
                raise Violation(message)
            last[key] = value["token"]
    return last


def check_table(partitions: Sequence[Records], previous: Mapping[str, str | None]) -> None:
    """Checks that the table of the input had what came before a record, and nothing that came later."""
    for records in partitions:
        for key, value in records:
            id_, _, hop = str(value["id"]).partition("/")
            if hop != "0" or id_ not in previous:
                continue
            if value["previous"] != previous[id_]:
                message = (
                    f"the table had {value['previous']} when {id_} of key {key} was read, and the record before that "
                    f"was {previous[id_]}"
                )
                raise Violation(message)


def _check_complete(first: Counter[str], out: Counter[str], written: Sequence[tuple[str, str]]) -> None:
    wanted_first: set[str] = set()
    wanted_out: set[str] = set()
    ticks = [("plain", f"tick-0_{number}-{n}") for number in range(PARTITIONS) for n in range(1, TICKS + 1)]
    for kind, id_ in [*written, *ticks]:
        if kind == DROPPED and f"{id_}/0" not in first:
            # Dropped by the first level: nothing of it may be anywhere.
            continue
        wanted_first.add(f"{id_}/0")
        if kind == LOOPED:
            wanted_first.add(f"{id_}/1")
        wanted_out.add(id_)
    for topic, found, wanted in (("first-out", set(first), wanted_first), ("out", set(out), wanted_out)):
        if found != wanted:
            message = f"'{topic}' lacks {sorted(wanted - found)} and has {sorted(found - wanted)} too much"
            raise Violation(message)

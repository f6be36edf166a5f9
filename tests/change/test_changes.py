"""A table of changes: ``plan-change`` says what happens to every store, and then that happens."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from headrace.change.topology_change import apply_evolution, plan_evolution
from headrace.change.verdicts import Options
from headrace.errors import IncompatibleTopologyError
from headrace.topics.journal import DurableLog
from tests.change.cases import CASES, Case
from tests.change.kit import Program, Row, read_by_key, write

TOPICS = ("in", "other", "users")
GUIDE = Path(__file__).parents[2] / "docs" / "guide" / "changing-a-topology.md"


def write_all(log: DurableLog, rows: Mapping[str, list[Row]]) -> None:
    for topic, records in rows.items():
        write(log, topic, records)


def last_values(log: DurableLog, topic: str) -> dict[str, Any]:
    found = read_by_key(log, topic)
    return {key.decode(): None if (last := rows[-1][1]) is None else json.loads(last) for key, rows in found.items()}


def options_of(case: Case) -> Options:
    given = list(zip(case.options[::2], case.options[1::2], strict=True))
    return Options(
        dict(value.split("=", 1) for option, value in given if option == "--rename"),
        frozenset(value for option, value in given if option == "--keep-bytes"),
        frozenset(value for option, value in given if option == "--rebuild"),
    )


def run_case(case: Case, log: DurableLog, directory: Path) -> None:
    for topic in TOPICS:
        log.create_topic(topic, partitions=2)
    before, after = (Program(log, directory, build, emit_interval=0) for build in (case.before, case.after))
    write_all(log, case.first)
    before.run()
    evolution = plan_evolution(after.topology, after.config, log, options_of(case))
    comparison = evolution.comparison
    if case.stores:
        assert {each.store: each.verdict.value for each in comparison.stores} == case.stores, comparison.stores
    notes = [*(each.note for each in comparison.stores), *(each.note for each in comparison.parts)]
    said = "\n".join([*notes, *comparison.problems])
    for note in case.notes:
        assert note in said
    assert comparison.is_refused == case.is_refused, said
    assert evolution.can_start == case.can_start
    if not case.can_start:
        with pytest.raises(IncompatibleTopologyError, match="headrace plan-change MODULE:BUILD -a app"):
            after.run()
    if case.is_refused:
        with pytest.raises(IncompatibleTopologyError, match="the change is refused"):
            apply_evolution(evolution, log)
        return
    assert {each.part: each.verdict.value for each in comparison.parts if each.verdict.value != "dropped"} == case.parts
    if evolution.is_needed:
        apply_evolution(evolution, log)
    write_all(log, case.then)
    after.run()
    assert {topic: last_values(log, topic) for topic in case.gives} == case.gives
    assert not set(case.deleted) & set(log.topics())
    assert not plan_evolution(after.topology, after.config, log, Options()).is_needed


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_what_is_said_happens(case: Case, log: DurableLog, tmp_path: Path) -> None:
    run_case(case, log, tmp_path)


def test_the_guide_has_every_change_with_what_is_said_of_it() -> None:
    rows = [line.split(" | ") for line in GUIDE.read_text(encoding="utf-8").splitlines() if line.startswith("| ")]
    said = {cells[0].removeprefix("| "): cells[1] for cells in rows if len(cells) == 3}
    assert len(CASES) >= 20
    for case in CASES:
        for verdict in {*case.stores.values()}:
            assert verdict in said[case.name]


ON_KAFKA = {
    "operators, so that one store gets the generated name of another",
    "values that mean something else, and a new name",
    "operators above a foreign-key join without a name",
}


@pytest.mark.kafka
@pytest.mark.parametrize("case", [case for case in CASES if case.name in ON_KAFKA], ids=lambda case: case.name)
def test_what_is_said_happens_on_kafka(case: Case, log: DurableLog, tmp_path: Path) -> None:
    run_case(case, log, tmp_path)

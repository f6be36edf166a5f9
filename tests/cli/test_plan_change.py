from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from headrace import Materialized, StreamsBuilder
from headrace.app.lock import lock_directory
from headrace.topics.embedded import EmbeddedLog
from tests.change.kit import Program, read_by_key, write
from tests.cli.conftest import Command

TOPOLOGY = """
from headrace import Materialized, Serdes

def build(builder):
    store = Materialized("{store}", value_serde=Serdes.{serde}())
    builder.stream("in").group_by_key().count(materialized=store).to_stream().to("out")
"""

Target = Callable[..., str]


@pytest.fixture(autouse=True)
def application(log: EmbeddedLog, state_dir: Path) -> None:
    """An application that has counted."""

    def build(builder: StreamsBuilder) -> None:
        builder.stream("in").group_by_key().count(materialized=Materialized("counts")).to_stream().to("out")

    log.create_topic("in", partitions=2)
    write(log, "in", [("a", 1, 0), ("a", 1, 1)])
    Program(log, state_dir, build, "shop").run()


@pytest.fixture
def target(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Target]:
    """Writes a topology with a store of that name, and returns what to call it on the command line."""
    made: list[str] = []

    def make(store: str, serde: str = "long") -> str:
        name = f"{request.node.name.partition('[')[0]}_{store}"
        (tmp_path / f"{name}.py").write_text(TOPOLOGY.format(store=store, serde=serde))
        made.append(name)
        return f"{tmp_path / name}.py:build"

    yield make
    for name in made:
        sys.modules.pop(name, None)


def test_nothing_is_touched_without_apply(headrace: Command, log: EmbeddedLog, target: Target) -> None:
    done = headrace("plan-change", target("totals"), "-a", "shop", "--rename", "counts=totals")
    assert [line.split()[:2] for line in done.lines] == [
        ["store", "what"],
        ["totals", "renamed"],
        [],
        ["sub-topology", "what"],
        ["0", "kept"],
    ]
    assert "was 'counts'; its rows are copied to 'shop-totals-changelog'" in done.lines[1]
    assert "--apply makes the change" in done.err
    assert log.topics() == ["in", "out", "shop-counts-changelog"]


def test_apply_makes_the_change(headrace: Command, log: EmbeddedLog, target: Target) -> None:
    command = ("plan-change", target("totals"), "-a", "shop", "--rename", "counts=totals", "--apply")
    assert "application 'shop' was changed" in headrace(*command).err
    assert log.topics() == ["in", "out", "shop-totals-changelog"]
    assert read_by_key(log, "shop-totals-changelog") == {b"a": [(1, (2).to_bytes(8, "big"))]}
    done = headrace("plan-change", target("totals"), "-a", "shop", "--apply")
    assert "nothing has to be changed; start the new topology" in done.err


def test_the_same_command_given_again_renames_nothing(headrace: Command, log: EmbeddedLog, target: Target) -> None:
    command = ("plan-change", target("totals"), "-a", "shop", "--rename", "counts=totals", "--apply")
    headrace(*command)
    before = log.last_batch("shop")
    done = headrace(*command)
    assert "has had this name before, so nothing is renamed" in done.lines[1]
    assert "nothing has to be changed; start the new topology" in done.err
    assert log.last_batch("shop") == before


def test_a_topology_with_the_same_stores_is_rebuilt(headrace: Command, log: EmbeddedLog, target: Target) -> None:
    command = ("plan-change", target("counts"), "-a", "shop", "--rebuild", "counts")
    done = headrace(*command)
    assert "emptied, and filled from 'in', from the beginning" in done.lines[1]
    assert "--apply makes the change" in done.err
    assert headrace(*command, "--json").json["is_needed"] is True
    assert "application 'shop' was changed" in headrace(*command, "--apply").err
    assert log.positions("shop") == {("in", 0): 0, ("in", 1): 0}


def test_json_says_the_same_to_programs(headrace: Command, target: Target) -> None:
    found = headrace("plan-change", target("totals"), "-a", "shop", "--json").json
    assert [(each["store"], each["former"], each["verdict"]) for each in found["stores"]] == [
        ("totals", None, "new"),
        ("counts", "counts", "dropped"),
    ]
    assert [(each["subtopology"], each["former"], each["verdict"]) for each in found["subtopologies"]] == [
        (0, [0], "kept")
    ]
    assert (found["application"], found["can_start"], found["is_refused"]) == ("shop", False, False)


def test_a_change_that_is_refused_ends_with_1(headrace: Command, log: EmbeddedLog, target: Target) -> None:
    done = headrace("plan-change", target("counts", "json"), "-a", "shop", "--apply", code=1)
    assert done.lines[1].split()[:2] == ["counts", "refused"]
    assert "its values are written with the serde long, and it now has json" in done.out
    assert "the change is refused; nothing was touched" in done.err
    assert log.topics() == ["in", "out", "shop-counts-changelog"]


def test_apply_is_refused_while_the_application_runs(headrace: Command, state_dir: Path, target: Target) -> None:
    lock = lock_directory(state_dir / "shop", "shop")
    try:
        done = headrace("plan-change", target("totals"), "-a", "shop", "--apply", code=1)
        assert "only one instance runs an application" in done.err
        # To look is allowed.
        headrace("plan-change", target("totals"), "-a", "shop")
    finally:
        lock.release()


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (("-a", "ship"), 1, "application 'ship': the log knows of no topology to compare with"),
        (("-a", "shop", "--rename", "counts"), 2, "'counts' names no two stores; write OLD=NEW"),
        (("-a", "shop", "--rename", "count=totals"), 1, "no store 'count'; did you mean 'counts'"),
        (("-a", "shop", "--rename", "counts=sums"), 1, "the new topology has no store 'sums'; it has 'totals'"),
        (("-a", "shop", "--rebuild", "total"), 1, "--rebuild total: the new topology has no store 'total'; did you"),
    ],
)
def test_what_cannot_be_compared_is_told(
    headrace: Command, target: Target, words: tuple[str, ...], code: int, message: str
) -> None:
    assert message in headrace("plan-change", target("totals"), *words, code=code).err

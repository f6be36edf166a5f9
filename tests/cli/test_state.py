from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from headrace import StreamsConfig
from headrace.app.lock import lock_directory
from headrace.batches.working_copy import Applied, WorkingCopy
from headrace.state.engines.changes import Changes
from headrace.topics.embedded import EmbeddedLog
from tests.batches.test_figures import run, send
from tests.cli.conftest import Command


@pytest.fixture(autouse=True)
def application(log: EmbeddedLog, state_dir: Path) -> Path:
    log.create_topic("orders")
    log.append("orders", [(0, n, None, b"1", ()) for n in range(10)])
    log.open_journal("shop", []).commit(0, [], {("orders", 0): 6})
    directory = state_dir / "shop"
    lock_directory(directory, "shop").release()
    for task, rows in (("0_2", 3), ("0_10", 0)):
        copy = WorkingCopy(directory / task, {"totals": "lmdb"}, StreamsConfig())
        copy.settle({"totals": Changes(rows={b"%d" % n: b"x" for n in range(rows)})}, {"totals": Applied("1", rows)})
        copy.write()
        copy.close()
    return directory


def test_tasks_stores_and_positions(headrace: Command) -> None:
    found = headrace("state", "shop", "--json").json
    assert [(task["task"], task["stores"]) for task in found["tasks"]] == [
        ("0_2", {"totals": 3}),
        ("0_10", {"totals": 0}),
    ]
    assert found["positions"] == [{"topic": "orders", "partition": 0, "position": 6, "lag": 4}]
    lines = headrace("state", "shop").lines
    assert lines[1].split()[:3] == ["0_2", "totals", "3"]
    assert lines[-1].split() == ["orders", "0", "6", "4"]


def test_unknown_application(headrace: Command) -> None:
    assert "did you mean 'shop'?" in headrace("state", "shp", code=1).err


def test_rows_are_the_windows_and_sessions_that_there_are(headrace: Command, state_dir: Path, log: EmbeddedLog) -> None:
    config = StreamsConfig(application_id="app", state_dir=state_dir)
    for topic in ("other", "rows", "versioned"):
        send(config, topic)
    send(config, "in", ("a", 1, 0), ("b", 1, 1_000), ("a", 1, 2_000), ("a", 1, 70_000))
    run(config)
    shown: Counter[str] = Counter()
    for task in headrace("state", "app", "--json").json["tasks"]:
        shown.update(task["stores"])
    assert (shown["keys"], shown["minutes"], shown["visits"]) == (2, 3, 3)
    # The reads of a store leave out what has expired; its changelog has all that was not deleted.
    assert {store: changelogged(log, f"app-{store}-changelog") for store in ("minutes", "visits")} == {
        "minutes": shown["minutes"],
        "visits": shown["visits"],
    }


def changelogged(log: EmbeddedLog, topic: str) -> int:
    last: dict[bytes | None, bytes | None] = {}
    for partition in range(log.partitions_of(topic)):
        last |= {key: value for _, _, key, value, _ in log.read(topic, partition, 0)}
    return sum(value is not None for value in last.values())

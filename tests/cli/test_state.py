from __future__ import annotations

from pathlib import Path

import pytest

from headrace import StreamsConfig
from headrace.app.lock import lock_directory
from headrace.batches.working_copy import Applied, WorkingCopy
from headrace.state.engines.changes import Changes
from headrace.topics.embedded import EmbeddedLog
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

"""Processes that are killed with -9 at random moments: what they had acknowledged is there, whole and once."""

from __future__ import annotations

import random
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest

from headrace.errors import BatchError
from headrace.topics.embedded import EmbeddedLog
from headrace.topics.journal import TaskRecord, TaskStatus
from tests.topics.kit import everything

KILLS = 10
RECORDS = 40
APPENDED, LEFT, RIGHT = "appended", "left", "right"

# Appends, commits, cleans and deletes in a loop, and says what it has done only when the log has acknowledged it.
CHILD = """
import os, sys
from headrace.topics.embedded import EmbeddedLog
from headrace.topics.journal import TaskRecord
directory, sync = sys.argv[1:]
log = EmbeddedLog(directory, sync=sync, map_size=1 << 16)
journal = log.open_journal("app", ["left", "right"])
batch = journal.state.batch_id + 1
appended = sum(log.end_offsets([("appended", 0), ("appended", 1)]).values()) // 40
def outputs(number, size):
    return [(n % 2, number, b"%d" % n, b"%d" % number + b" " * size, ()) for n in range(40)]
os.write(1, b"ready\\n")
while True:
    log.append("appended", outputs(appended, 20))
    os.write(1, b"a %d\\n" % appended)
    appended += 1
    receipts = []
    for task in ("left", "right"):
        part = log.task_journal("app", journal.incarnation, task, [])
        part.open()
        written = [(task, outputs(batch, 3000 if batch % 5 == 0 else 20))]
        receipts.append(part.commit(TaskRecord(batch, f"{batch}", [("in", 0, batch)], None, b""), written, []))
    journal.commit(batch, receipts)
    os.write(1, b"c %d\\n" % batch)
    batch += 1
    log.clean(max_bytes=200_000)
"""


def run_and_kill(directory: Path, sync: str, after: float) -> tuple[int, int]:
    """Returns how many appends and commits the process has acknowledged as its last ones, -1 for none."""
    with subprocess.Popen([sys.executable, "-c", CHILD, str(directory), sync], stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        first = child.stdout.readline()
        assert first == b"ready\n"
        time.sleep(after)
        child.kill()
        lines = child.stdout.read().splitlines()
    said = {kind: int(number) for kind, number in (line.split() for line in lines)}
    return said.get(b"a", -1), said.get(b"c", -1)


def batches(log: EmbeddedLog, topic: str) -> list[int]:
    """Returns the numbers of the batches in a topic; each must be whole, and in its order in both partitions."""
    halves = []
    for partition in range(2):
        numbers = [int(value or b"") for _, _, _, value, _ in everything(log, topic, partition)]
        assert numbers == sorted(numbers)
        assert set(Counter(numbers).values()) <= {RECORDS // 2}
        halves.append(sorted(set(numbers)))
    assert halves[0] == halves[1]
    return halves[0]


@pytest.mark.parametrize("sync", ["commit", "none"])
def test_killed_process_leaves_exactly_what_was_committed(tmp_path: Path, sync: str) -> None:
    rng = random.Random(sync)
    with EmbeddedLog(tmp_path, sync=sync, map_size=1 << 16) as log:  # type: ignore[arg-type]
        for topic in (APPENDED, LEFT, RIGHT):
            log.create_topic(topic, partitions=2)
    for _ in range(KILLS):
        appended, committed = run_and_kill(tmp_path, sync, rng.uniform(0.0, 0.15))
        with EmbeddedLog(tmp_path, sync=sync) as log:  # type: ignore[arg-type]
            found, left, right = (batches(log, topic) for topic in (APPENDED, LEFT, RIGHT))
            last = log.last_batch("app")
            position = log.positions("app").get(("in", 0), -1)
        # The one in flight may have made it, as a whole; nothing else can be there.
        assert found == list(range(len(found)))
        assert appended == -1 or len(found) - 1 in (appended, appended + 1)
        assert left == right == list(range(position + 1))
        assert (-1 if last is None else last.batch_id) == position
        assert committed == -1 or position in (committed, committed + 1)
    assert position > 10
    with EmbeddedLog(tmp_path, sync=sync) as log:  # type: ignore[arg-type]
        state = log.open_journal("app", []).state
        assert state.tasks == {task: TaskStatus(f"{position}", None) for task in (LEFT, RIGHT)}
        assert not list(tmp_path.rglob("*.staged"))


def test_what_a_killed_driver_s_tasks_had_staged_is_never_committed(tmp_path: Path) -> None:
    big = [(None, 0, b"k", b"x" * 1000, ()) for _ in range(100)]
    with EmbeddedLog(tmp_path) as log:
        log.create_topic(LEFT)
        killed = log.open_journal("app", ["0_0"])
        part = log.task_journal("app", killed.incarnation, "0_0", [])
        part.open()
        receipt = part.commit(TaskRecord(0, "killed", [], None, b""), [(LEFT, big)], [])
    with EmbeddedLog(tmp_path) as log:
        journal = log.open_journal("app", ["0_0"])
        # Receipts die with the driver; if one survives, nobody takes it.
        with pytest.raises(BatchError, match="has a receipt of batch 0 of instance 1"):
            journal.commit(0, [receipt])
        assert everything(log, LEFT) == []
        assert not list(tmp_path.rglob("*.staged"))
        assert log.last_batch("app") is None

"""Several processes on one log: writers, a committing one, a cleaning one and a reading one at the same time."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from headrace.topics.embedded import EmbeddedLog
from tests.topics.kit import everything

WRITERS = 3
ROUNDS = 120

HEAD = """
import sys
from headrace.topics.embedded import EmbeddedLog
from headrace.topics.journal import TaskRecord
log = EmbeddedLog(sys.argv[1], sync="none", map_size=1 << 16)
me, rounds = int(sys.argv[2]), int(sys.argv[3])
"""
APPEND = (
    HEAD
    + """
for n in range(rounds):
    log.append("t", [(partition, n, b"%d" % me, b"%d " % n + b"x" * 500, ()) for partition in (0, 1) for _ in range(3)])
"""
)
COMMIT = (
    HEAD
    + """
journal = log.open_journal("app", ["0_0"])
part = log.task_journal("app", journal.incarnation, "0_0", [])
for n in range(rounds):
    part.open()
    outputs = [(partition, n, b"%d" % me, b"%d " % n + b"y" * 500, ()) for partition in (0, 1)] * 3
    journal.commit(n, [part.commit(TaskRecord(n, f"{n}", [], None, b""), [("t", outputs)], [])])
    log.append("latest", [(None, n, b"%d" % (n % 7), b"%d" % n, ())])
"""
)
CLEAN = (
    HEAD
    + """
while not log.end_offsets([("over", 0)])[("over", 0)]:
    log.clean(max_bytes=100_000)
    for partition in (0, 1):
        offsets = [record[0] for record in log.read("t", partition, 0)]
        assert offsets == list(range(len(offsets)))
"""
)


def test_writers_in_many_processes_lose_and_mix_nothing(tmp_path: Path) -> None:
    with EmbeddedLog(tmp_path, sync="none", map_size=1 << 16) as log:
        log.create_topic("t", partitions=2)
        log.create_topic("latest", configs={"cleanup.policy": "compact", "min.cleanable.dirty.ratio": 0})
        log.create_topic("over")

        def start(script: str, number: int) -> subprocess.Popen[bytes]:
            command = [sys.executable, "-c", script, str(tmp_path), str(number), str(ROUNDS)]
            return subprocess.Popen(command)

        cleaner = start(CLEAN, 0)
        writers = [*(start(APPEND, number) for number in range(WRITERS)), start(COMMIT, WRITERS)]
        try:
            assert [writer.wait(60) for writer in writers] == [0] * len(writers)
        finally:
            log.append("over", [(None, 0, None, b"", ())])
            assert cleaner.wait(60) == 0
        for partition in (0, 1):
            records = everything(log, "t", partition)
            assert [record[0] for record in records] == list(range((WRITERS + 1) * ROUNDS * 3))
            for number in range(WRITERS + 1):
                own = [int((value or b"").split()[0]) for _, _, key, value, _ in records if key == b"%d" % number]
                assert own == [n for n in range(ROUNDS) for _ in range(3)]
        log.clean()
        assert [int(value or b"") for _, _, _, value, _ in everything(log, "latest")] == list(range(ROUNDS - 7, ROUNDS))


OPEN = """
import sys
from headrace.topics.embedded import EmbeddedLog
for _ in range(int(sys.argv[3])):
    EmbeddedLog(sys.argv[1], sync="none", map_size=1 << 16).close()
"""


def test_a_log_can_be_opened_while_others_make_it_grow(tmp_path: Path) -> None:
    with EmbeddedLog(tmp_path, sync="none", map_size=1 << 16) as log:
        log.create_topic("t")
        command = [sys.executable, "-c", OPEN, str(tmp_path), "0", "2000"]
        with subprocess.Popen(command) as opener:
            while opener.poll() is None:
                log.append("t", [(0, 0, None, b"x" * 20_000, ())])
        assert opener.returncode == 0

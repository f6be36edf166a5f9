"""A disk that refuses to take more: a clear error, nothing acknowledged is lost, and it goes on when there is room."""

from __future__ import annotations

import resource
import subprocess
import sys
from pathlib import Path

from headrace.topics.embedded import EmbeddedLog
from tests.topics.kit import everything

# The limit of the file size stands for the end of the disk: the system answers a write with an error just the same.
CHILD = """
import resource, sys
from headrace.errors import LogError
from headrace.topics.embedded import EmbeddedLog
from headrace.topics.journal import TaskRecord
log = EmbeddedLog(sys.argv[1], map_size=1 << 20)
log.create_topic("t")
log.create_topic("out")
big = [(None, 0, b"k", b"x" * 1000, ())] * 4000
_, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
resource.setrlimit(resource.RLIMIT_FSIZE, (2 << 20, hard))
count = 0
for n in range(10):
    try:
        while True:
            log.append("t", [(None, count, b"k", b"%d " % count + b"x" * 50_000, ())])
            count += 1
    except LogError as error:
        message = str(error)
assert len(log.read("t", 0, 0)) == count
resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))
journal = log.open_journal("app", ["0_0"])
part = log.task_journal("app", journal.incarnation, "0_0", [])
part.open()
record = TaskRecord(0, "first", [], None, b"")
resource.setrlimit(resource.RLIMIT_FSIZE, (2 << 20, hard))
try:
    part.commit(record, [("out", big)], [])
except LogError as error:
    staging = str(error)
try:
    part.commit(record, [("out", big[:1])] * 4000, [])
except LogError as error:
    bit_by_bit = str(error)
resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))
receipt = part.commit(record, [("out", big)], [])
resource.setrlimit(resource.RLIMIT_FSIZE, (2 << 20, hard))
try:
    journal.commit(0, [receipt])
except LogError as error:
    commit = str(error)
assert log.last_batch("app") is None
resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))
assert journal.commit(0, [receipt]).records == 4000
log.append("t", [(None, count, b"k", b"%d " % count, ())])
print(count, message, staging, bit_by_bit, commit, sep="\\n")
"""


def test_full_disk_is_said_and_loses_nothing(tmp_path: Path) -> None:
    assert resource.getrlimit(resource.RLIMIT_FSIZE)[1] == resource.RLIM_INFINITY, "the test needs a free hand"
    done = subprocess.run([sys.executable, "-c", CHILD, str(tmp_path)], capture_output=True, text=True, check=False)
    assert done.stderr == ""
    count, *messages = done.stdout.splitlines()
    assert int(count) > 10
    assert len(messages) == 4
    for text in messages:
        assert "cannot be written" in text
        assert "nothing of this write was kept" in text
        assert "the disk is full" in text
    with EmbeddedLog(tmp_path) as log:
        values = [int((value or b"").split()[0]) for _, _, _, value, _ in everything(log, "t")]
        assert values == list(range(int(count) + 1))
        assert len(everything(log, "out")) == 4000
        assert not list(tmp_path.rglob("*.staged"))

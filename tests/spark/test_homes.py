"""Work that one process does for another: what is asked for, what comes back, and when one of them goes."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from headrace.errors import ProcessorStateError
from headrace.spark.chunks import Cells, Head
from headrace.spark.homes import Home, Note, TaskName, Work, ask
from headrace.spark.receipts import Row
from tests.spark.memory_cells import MemoryCells

TASK = TaskName("digest", "0_1")
HEAD = Head(first=3, last=4, id="four")
ROW = Row("0_1", "edge/0/0", 7, b"blob")


def cells_of_spark() -> MemoryCells:
    """Returns state that only the asker can reach."""
    return MemoryCells(HEAD, {3: b"three", 4: bytes(1_000_000)})


class Tasks:
    """Knows one task, and does with its work what a test wants."""

    def __init__(self, act: Callable[[Cells | None, Callable[[], None]], None] = lambda cells, check: None) -> None:
        self._act = act
        self.done: list[Work] = []

    def knows(self, task: TaskName) -> bool:
        return task == TASK

    def run(self, work: Work, cells: Cells | None, check: Callable[[], None]) -> list[Row]:
        self._act(cells, check)
        self.done.append(work)
        return [*work.rows, Row("0_1", "!", 0, work.plan.encode())]


def work(task: TaskName = TASK, *, is_stateful: bool = True) -> Work:
    return Work(task, "a plan", [ROW], is_stateful)


@pytest.fixture
def at_home() -> Iterator[Callable[[Tasks], Home]]:
    homes: list[Home] = []

    def start(tasks: Tasks) -> Home:
        homes.append(Home(tasks, threading.Lock()))
        return homes[-1]

    yield start
    for home in homes:
        home.close()


def test_work_is_done_where_the_task_is_known(at_home: Callable[[Tasks], Home]) -> None:
    tasks = Tasks()
    home = at_home(tasks)
    for _ in range(3):
        assert ask(home.note, work(), cells_of_spark()) == [ROW, Row("0_1", "!", 0, b"a plan")]
    assert ask(home.note, work(is_stateful=False), None) == [ROW, Row("0_1", "!", 0, b"a plan")]
    assert [each.rows for each in tasks.done] == 4 * [[ROW]]


def test_state_is_that_of_the_asker(at_home: Callable[[Tasks], Home]) -> None:
    def act(cells: Cells | None, check: Callable[[], None]) -> None:
        assert cells is not None
        assert cells.read_head() == HEAD
        assert (cells.read(3), cells.read(9)) == (b"three", None)
        assert cells.read(4) == bytes(1_000_000)
        cells.write(5, b"five" * 100_000)
        cells.remove(3)
        cells.write_head(Head(first=4, last=5))
        check()

    cells = cells_of_spark()
    assert ask(at_home(Tasks(act)).note, work(), cells) is not None
    assert cells.head == Head(first=4, last=5)
    assert cells.chunks == {4: bytes(1_000_000), 5: b"five" * 100_000}


def test_what_is_not_known_or_comes_at_a_bad_time_is_refused(at_home: Callable[[Tasks], Home]) -> None:
    begun, go_on = threading.Event(), threading.Event()

    def act(cells: Cells | None, check: Callable[[], None]) -> None:
        begun.set()
        assert go_on.wait(60)

    home = at_home(Tasks(act))
    assert ask(home.note, work(TaskName("digest", "0_2")), None) is None
    assert ask(home.note, work(TaskName("of another run", "0_1")), None) is None
    first = threading.Thread(target=ask, args=(home.note, work(), cells_of_spark()))
    first.start()
    assert begun.wait(60)
    assert ask(home.note, work(), cells_of_spark()) is None
    go_on.set()
    first.join()
    assert ask(home.note, work(), cells_of_spark()) is not None


def test_who_does_not_know_the_token_gets_no_answer(at_home: Callable[[Tasks], Home]) -> None:
    tasks = Tasks()
    home = at_home(tasks)
    assert ask(home.note._replace(token=bytes(16)), work(), None) is None
    assert not tasks.done


def test_nobody_at_home() -> None:
    home = Home(Tasks(), threading.Lock())
    home.close()
    assert ask(home.note, work(), None) is None


def test_a_failure_is_told_with_its_place(at_home: Callable[[Tasks], Home]) -> None:
    def act(cells: Cells | None, check: Callable[[], None]) -> None:
        _ = dict[str, int]()["amount"]

    home = at_home(Tasks(act))
    with pytest.raises(ProcessorStateError, match=r"task 0_1 failed in process(?s:.*)KeyError: 'amount'"):
        ask(home.note, work(), cells_of_spark())
    with pytest.raises(ProcessorStateError, match="KeyError"):
        ask(home.note, work(), cells_of_spark())


def test_a_failure_of_sparks_state_is_told(at_home: Callable[[Tasks], Home]) -> None:
    def act(cells: Cells | None, check: Callable[[], None]) -> None:
        assert cells is not None
        cells.remove(99)

    with pytest.raises(ProcessorStateError, match="Spark's state could not be used: KeyError: 99"):
        ask(at_home(Tasks(act)).note, work(), cells_of_spark())


CHILD = """
import os, sys, threading, time
from headrace.spark import homes
from tests.spark.test_homes import Tasks

homes._PATIENCE_S, homes._BEAT_S, homes._STUCK_S = 0.3, 0.05, 0.5

def end(cells, check): os._exit(3)
def hang(cells, check): time.sleep(600)
def hold(cells, check): (10 ** 4_000_000) ** 9
def ask_back(cells, check):
    time.sleep(0.5)
    cells.read_head()

home = homes.Home(Tasks(globals()[sys.argv[1]]), threading.Lock())
print(*home.note[:2], home.note.token.hex(), flush=True)
sys.stdin.read()
"""


@pytest.fixture
def child() -> Iterator[Callable[[str], tuple[subprocess.Popen[str], Note]]]:
    started: list[subprocess.Popen[str]] = []

    def start(act: str) -> tuple[subprocess.Popen[str], Note]:
        root = Path(__file__).parents[2]
        process = subprocess.Popen(
            [sys.executable, "-c", CHILD, act], cwd=root, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        started.append(process)
        assert process.stdout is not None
        pid, port, token = process.stdout.readline().split()
        return process, Note(int(pid), int(port), bytes.fromhex(token))

    yield start
    for process in started:
        process.kill()
        process.communicate()


def test_a_home_that_dies_fails_the_work(child: Callable[[str], tuple[subprocess.Popen[str], Note]]) -> None:
    process, note = child("end")
    with pytest.raises(ProcessorStateError, match=f"the process {note.pid}, where task 0_1 is at home, has ended"):
        ask(note, work(), cells_of_spark())
    assert process.wait(60) == 3
    assert ask(note, work(), cells_of_spark()) is None


ASKER = """
import os, sys
from headrace.spark.homes import Note, ask
from tests.spark.test_homes import MemoryCells, work

class Gone(MemoryCells):
    def read_head(self): os._exit(0)

print(flush=True)
ask(Note(int(sys.argv[1]), int(sys.argv[2]), bytes.fromhex(sys.argv[3])), work(), Gone())
"""


def asker_of(note: Note) -> subprocess.Popen[bytes]:
    """Starts a process that is about to ask, and that ends when it is asked for the head."""
    command = [sys.executable, "-c", ASKER, str(note.pid), str(note.port), note.token.hex()]
    asker = subprocess.Popen(command, cwd=Path(__file__).parents[2], stdout=subprocess.PIPE)
    assert asker.stdout is not None
    asker.stdout.readline()
    return asker


@pytest.mark.parametrize("act", ["hang", "hold"])
def test_work_that_hangs_ends_with_its_asker(
    child: Callable[[str], tuple[subprocess.Popen[str], Note]], act: str
) -> None:
    """Spark kills the process that it has given the task to: it does not know of the other one."""
    process, note = child(act)
    asker = asker_of(note)
    time.sleep(0.3)
    asker.kill()
    asker.communicate()
    assert process.wait(60) == 1


def test_work_whose_asker_is_gone_fails(child: Callable[[str], tuple[subprocess.Popen[str], Note]]) -> None:
    """Nothing that it does may become visible; the process goes on."""
    process, note = child("ask_back")
    asker = asker_of(note)
    asker.communicate(timeout=60)
    assert asker.returncode == 0
    deadline = time.monotonic() + 60
    # It takes other work as soon as it has noticed.
    while ask(note, work(), cells_of_spark()) is None:
        assert time.monotonic() < deadline
        time.sleep(0.05)
    assert process.poll() is None


def test_notes(tmp_path: Path) -> None:
    path = tmp_path / "homes" / "0_1"
    assert Note.read(path) is None
    note = Note(12, 34567, bytes(range(16)))
    note.write(path)
    note.write(path)
    assert Note.read(path) == note
    assert path.stat().st_mode & 0o777 == 0o600
    assert [each.name for each in path.parent.iterdir()] == ["0_1"]
    path.write_text("half of")
    assert Note.read(path) is None

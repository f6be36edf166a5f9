"""Failed tasks are told soon, by one thread for all applications of a process."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from headrace.app.failure_watch import FailureWatch
from headrace.batches.failure_note import take_failure_note, write_failure_note

NAME = "headrace-failures"


def until(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 20
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.005)


def watching() -> set[threading.Thread]:
    """Returns the threads that watch; those of earlier tests may be about to end."""
    return {thread for thread in threading.enumerate() if thread.name == NAME}


def test_failures_of_all_applications_are_told_by_one_thread(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.ERROR, "headrace.app.failing")
    directories = [tmp_path / name for name in ("orders", "users", "gone")]
    for directory in directories:
        directory.mkdir()
    # Left by a process that was killed.
    write_failure_note(directories[0], "0_0", ValueError("old"))
    before, watch = watching(), FailureWatch(every_s=0.01)
    for directory in directories:
        watch.add(directory)
    [thread] = watching() - before
    watch.remove(directories[2])
    for directory in directories:
        write_failure_note(directory, "0_1", ValueError(f"new in {directory.name}"))
    until(lambda: len(caplog.messages) >= 2)
    assert sorted(caplog.messages) == [
        f"new in {name}; the micro-batch ends when its other tasks have ended" for name in ("orders", "users")
    ]
    for directory in directories:
        watch.remove(directory)
    until(lambda: not thread.is_alive())


def test_note_of_a_failure_that_ends_its_application_at_once_is_left_to_it(tmp_path: Path) -> None:
    write_failure_note(tmp_path, "0_0", ValueError("new"))
    assert take_failure_note(tmp_path, age_s=60) is None
    # As the application does when it ends.
    assert take_failure_note(tmp_path) == "new"
    assert take_failure_note(tmp_path) is None

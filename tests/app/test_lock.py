"""An application's directory belongs to one process, and to one application."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from headrace.app.lock import LOCK, lock_directory, locked
from headrace.errors import LockError, StateDirectoryError
from tests.app.kit import Engines, application

HOLDER = """
import sys
import threading
from pathlib import Path
from headrace.app.lock import lock_directory
lock = lock_directory(Path(sys.argv[1]), "app")
print("locked", flush=True)
sys.stdin.readline()
"""


def test_second_instance_in_this_process_is_refused(place: Path) -> None:
    with (
        application(place, Engines()),
        pytest.raises(LockError, match=r"'app': .*in use by another Streams of this process; .*stop the other one"),
    ):
        application(place, Engines()).start()
    with application(place, Engines()):
        """The directory is free again."""


def test_refused_instance_can_start_when_the_other_has_ended(place: Path) -> None:
    second = application(place, Engines())
    with application(place, Engines()), pytest.raises(LockError):
        second.start()
    with second:
        """A start that was refused has changed nothing."""


def test_second_process_is_told_who_has_the_directory_until_that_one_dies(tmp_path: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(tmp_path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "locked\n"
        with pytest.raises(LockError, match=rf"in use by process {holder.pid} on {socket.gethostname()}"):
            lock_directory(tmp_path, "app")
        holder.kill()
    lock_directory(tmp_path, "app").release()


def test_lock_says_who_has_it_and_stays_when_released(tmp_path: Path) -> None:
    lock = lock_directory(tmp_path / "new" / "app", "app")
    lock.release()
    lock.release()
    content = json.loads((tmp_path / "new" / "app" / LOCK).read_text())
    assert content == {"application": "app", "pid": os.getpid(), "host": socket.gethostname()}


@pytest.mark.parametrize("content", ["", "{", "[1]", "{}"])
def test_lock_file_with_anything_in_it_can_be_taken(tmp_path: Path, content: str) -> None:
    (tmp_path / LOCK).write_text(content)
    lock_directory(tmp_path, "app").release()


def test_held_lock_with_nothing_in_it_is_in_use_by_another_process(tmp_path: Path) -> None:
    with locked(tmp_path, "app"):
        (tmp_path / LOCK).write_text("")
        with pytest.raises(LockError, match="in use by another process"):
            lock_directory(tmp_path, "app")


def test_deleted_lock_file_is_not_taken_for_the_new_one(tmp_path: Path) -> None:
    first = lock_directory(tmp_path, "app")
    (tmp_path / LOCK).unlink()
    second = lock_directory(tmp_path, "app")
    with pytest.raises(LockError):
        lock_directory(tmp_path, "app")
    first.release()
    second.release()


def test_directory_of_another_application_is_refused_and_left_free(tmp_path: Path) -> None:
    lock_directory(tmp_path, "orders").release()
    for _ in range(2):
        with pytest.raises(StateDirectoryError, match="belongs to the application 'orders', and this is 'app'"):
            lock_directory(tmp_path, "app")
    lock_directory(tmp_path, "orders").release()


KEEPER = """
import subprocess, sys
from pathlib import Path
from headrace.app.lock import lock_directory
lock = lock_directory(Path(sys.argv[1]), "app")
child = [sys.executable, "-c", "import sys; print('child', flush=True); sys.stdin.readline()"]
subprocess.Popen(child, pass_fds=[lock.descriptor])
if sys.argv[2] == "release":
    lock.release()
    print("released", flush=True)
sys.stdin.readline()
"""


def keeper(directory: Path, way: str) -> subprocess.Popen[str]:
    """Starts a process that holds the lock, and a child of it that lives as long as its standard input is open."""
    return subprocess.Popen(
        [sys.executable, "-c", KEEPER, str(directory), way], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )

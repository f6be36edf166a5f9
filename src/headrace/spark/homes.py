"""Where tasks are at home: the process that has run a task runs it again, whichever process Spark gives it to.

Spark's Python workers take tasks at random. One that gets a task for the first time, or after another has had it, must
build it, bring the working copy up to date and read rows that the other has in memory, so that a batch takes twice as
long; on Kafka it also needs a consumer and a transactional producer of its own. So workers ask each other: whoever has
kept a task leaves a note, and who is given the task hands the work over, answers the other's calls to Spark's state,
and returns what comes back. If nobody is at home, or the one who is has other work to do, it does the work itself.
"""

from __future__ import annotations

import faulthandler
import logging
import os
import pickle
import socket
import threading
import time
import traceback
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import cache
from hmac import compare_digest
from pathlib import Path
from secrets import token_bytes
from struct import Struct
from typing import Any, NamedTuple, Protocol

from headrace.errors import ProcessorStateError
from headrace.spark.chunks import Cells, Head
from headrace.spark.receipts import Row

logger = logging.getLogger(__name__)

HOMES = "homes"
"""Folder of an application's directory with a note for each task."""

_LENGTH = Struct(">Q")
_HERE = "127.0.0.1"
_TOKEN_BYTES = 16
_HELLO_S = 2.0
"""Within which a process that is alive takes a call."""
_PATIENCE_S = 5.0
"""For work whose asker has gone: then it hangs, and a thread cannot be stopped."""
_STUCK_S = 60.0
"""After which a process ends in which a function lets no other thread run."""
_BEAT_S = 1.0
_ACCEPTED, _REFUSED, _CALL, _DONE, _FAILED = "accepted", "refused", "call", "done", "failed"


class TaskName(NamedTuple):
    """A task of an application that runs."""

    application: str
    """Digest of the application: the same for one run of it."""
    key: str


class Work(NamedTuple):
    """The part of a micro-batch that one task has to do."""

    task: TaskName
    plan: str
    """As JSON."""
    rows: Sequence[Row]
    is_stateful: bool


class Note(NamedTuple):
    """Who is at home for a task."""

    pid: int
    port: int
    token: bytes

    def write(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        new = path.with_name(f"{path.name}.{self.pid}")
        # Nobody else may read the token.
        with open(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600), "wb") as file:
            file.write(f"{self.pid} {self.port} {self.token.hex()}".encode())
        new.replace(path)

    @classmethod
    def read(cls, path: Path) -> Note | None:
        try:
            pid, port, token = path.read_text(encoding="ascii").split()
            return cls(int(pid), int(port), bytes.fromhex(token))
        except (OSError, ValueError):
            return None


class Worker(Protocol):
    """The tasks of this process."""

    def knows(self, task: TaskName) -> bool:
        """Returns whether the task was kept here."""
        ...

    def run(self, work: Work, cells: Cells | None, check: Callable[[], None]) -> list[Row]:
        """Does a piece of work with the cells of who has asked for it; ``check`` raises if nobody waits for it."""
        ...


class Home:
    """Lets other processes of this machine have their work done here: one piece at a time, or none."""

    def __init__(self, worker: Worker, busy: threading.Lock) -> None:
        self._worker = worker
        self._busy = busy
        self._listening = socket.create_server((_HERE, 0), backlog=64)
        self.note = Note(os.getpid(), self._listening.getsockname()[1], token_bytes(_TOKEN_BYTES))
        threading.Thread(target=self._accept, name="headrace-home", daemon=True).start()

    def _accept(self) -> None:
        while True:
            try:
                asker, _ = self._listening.accept()
            except OSError:
                # The process ends.
                return
            threading.Thread(target=self._serve, args=(asker,), name="headrace-home-work", daemon=True).start()

    def _serve(self, asker: socket.socket) -> None:
        with asker:
            asker.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            try:
                asker.settimeout(_HELLO_S)
                if not compare_digest(_receive_exactly(asker, _TOKEN_BYTES), self.note.token):
                    return
                task: TaskName = _receive(asker)
                if not self._busy.acquire(blocking=False):
                    _send(asker, (_REFUSED, None))
                    return
                try:
                    answer = self._run(asker, task)
                finally:
                    # Before the answer: who gets it may ask again at once.
                    self._busy.release()
                _send(asker, answer)
            except OSError as error:
                logger.debug("who asked for work has gone: %s", error)

    def _run(self, asker: socket.socket, task: TaskName) -> tuple[str, Any]:
        if not self._worker.knows(task):
            return _REFUSED, None
        _send(asker, (_ACCEPTED, None))
        asker.settimeout(None)
        work: Work = _receive(asker)
        over = threading.Event()
        _put_off_the_end()
        watch = threading.Thread(target=_watch, args=(asker, over), name="headrace-home-watch", daemon=True)
        watch.start()
        try:
            cells = _AskersCells(asker) if work.is_stateful else None
            rows = self._worker.run(work, cells, lambda: _check(asker))
        except BaseException:
            return _FAILED, traceback.format_exc()
        else:
            return _DONE, rows
        finally:
            over.set()
            watch.join()
            faulthandler.cancel_dump_traceback_later()

    def close(self) -> None:
        with suppress(OSError):
            # Closing alone would not wake who accepts.
            self._listening.shutdown(socket.SHUT_RDWR)
        self._listening.close()


def ask(note: Note, work: Work, cells: Cells | None) -> list[Row] | None:
    """Has work done by the process that a note names; None if it is not there, or has no time.

    Raises ProcessorStateError if the work fails, or the process ends meanwhile.
    """
    home = _called(note, work.task)
    if home is None:
        return None
    with home:
        try:
            _send(home, work)
            while True:
                kind, content = _receive(home)
                if kind != _CALL:
                    break
                assert cells is not None, "only work with state asks for it"
                _send(home, _answer(cells, content))
        except OSError as error:
            message = f"the process {note.pid}, where task {work.task.key} is at home, has ended: {error}"
            raise ProcessorStateError(message) from error
    if kind == _FAILED:
        message = f"task {work.task.key} failed in process {note.pid}:\n{content}"
        raise ProcessorStateError(message)
    rows: list[Row] = content
    return rows


def _called(note: Note, task: TaskName) -> socket.socket | None:
    """Returns the connection to a home that takes the work now; None if there is none."""
    try:
        home = socket.create_connection((_HERE, note.port), timeout=_HELLO_S)
    except OSError:
        return None
    try:
        home.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        home.sendall(note.token)
        _send(home, task)
        kind, _ = _receive(home)
        if kind == _ACCEPTED:
            home.settimeout(None)
            return home
    except OSError as error:
        logger.debug("process %d does not answer: %s", note.pid, error)
    home.close()
    return None


def _answer(cells: Cells, call: tuple[str, tuple[Any, ...]]) -> tuple[bool, Any]:
    name, arguments = call
    try:
        return True, getattr(cells, name)(*arguments)
    except Exception as error:
        return False, f"{type(error).__name__}: {error}"


class _AskersCells:
    """The state of a task, which only the process can reach that Spark has given the task to."""

    def __init__(self, asker: socket.socket) -> None:
        self._asker = asker

    # Any: what the methods of Cells take and return.
    def _call(self, name: str, *arguments: Any) -> Any:
        _send(self._asker, (_CALL, (name, arguments)))
        is_well, content = _receive(self._asker)
        if not is_well:
            message = f"Spark's state could not be used: {content}"
            raise ProcessorStateError(message)
        return content

    def read_head(self) -> Head | None:
        found: Head | None = self._call("read_head")
        return found

    def write_head(self, head: Head) -> None:
        self._call("write_head", head)

    def read(self, sequence: int) -> bytes | None:
        found: bytes | None = self._call("read", sequence)
        return found

    def write(self, sequence: int, data: bytes) -> None:
        self._call("write", sequence, data)

    def remove(self, sequence: int) -> None:
        self._call("remove", sequence)


def _check(asker: socket.socket) -> None:
    if _has_gone(asker):
        message = "nobody waits for this work any more"
        raise ProcessorStateError(message)


def _has_gone(asker: socket.socket) -> bool:
    try:
        return asker.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT) == b""
    except BlockingIOError:
        return False
    except OSError:
        return True


def _watch(asker: socket.socket, over: threading.Event) -> None:
    """Ends this process if work hangs that nobody waits for: Spark has ended the asker, and means this one."""
    gone_since: float | None = None
    while not over.wait(_BEAT_S):
        _put_off_the_end()
        if not _has_gone(asker):
            continue
        gone_since = gone_since or time.monotonic()
        if time.monotonic() - gone_since > _PATIENCE_S:
            os._exit(1)


def _put_off_the_end() -> None:
    """Lets this process end later, unless this is called again: by a thread, so by a function that lets others run.

    The clock that is set here needs nothing of the interpreter, which such a function would not give back.
    """
    faulthandler.dump_traceback_later(_STUCK_S, exit=True, file=_nowhere())


@cache
def _nowhere() -> int:
    return os.open(os.devnull, os.O_WRONLY | os.O_CLOEXEC)


# Any: both sides are of one program, and a token has shown it.
def _send(to: socket.socket, content: Any) -> None:
    data = pickle.dumps(content, protocol=5)
    to.sendall(_LENGTH.pack(len(data)))
    to.sendall(data)


def _receive(of: socket.socket) -> Any:
    (length,) = _LENGTH.unpack(_receive_exactly(of, _LENGTH.size))
    return pickle.loads(_receive_exactly(of, length))


def _receive_exactly(of: socket.socket, length: int) -> bytearray:
    data = bytearray(length)
    view, place = memoryview(data), 0
    while place < length:
        count = of.recv_into(view[place:])
        if not count:
            message = "the other side has gone"
            raise ConnectionError(message)
        place += count
    return data

"""The LMDB environment under a log: opened once per process, growing, with errors that say what to do."""

from __future__ import annotations

import os
import shutil
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from errno import EACCES, EDQUOT, EFBIG, EIO, ENOSPC, EROFS
from pathlib import Path
from typing import TypeAlias, TypeVar

import lmdb

from headrace.errors import LogError
from headrace.private_directory import make_directories

T = TypeVar("T")

Transaction: TypeAlias = "lmdb.Transaction[memoryview]"
"""Keys and values are views that are gone with the transaction."""

_FORMAT_KEY = b"F"
_FORMAT = b"headrace-log-3"
_RESERVE = 1 << 20
_FULL = frozenset({ENOSPC, EFBIG, EDQUOT})
_DAMAGED = (
    lmdb.InvalidError,
    lmdb.NotFoundError,
    lmdb.VersionMismatchError,
    lmdb.CorruptedError,
    lmdb.PageNotFoundError,
)


class Environment:
    """Transactions on one directory, from any thread. Take it from ``open_environment`` and give it back."""

    def __init__(self, directory: str, *, sync: bool, map_size: int, max_size: int | None) -> None:
        self.directory = directory
        self.sync = sync
        self.max_size = max_size
        self.users = 0
        self._map_size = map_size
        self._gate = _Gate()
        self._open()

    def _open(self) -> None:
        self._pid = os.getpid()
        try:
            make_directories(Path(self.directory))
            self._env = self._open_while_others_write()
            self._map_size = self._env.info()["map_size"]
            # A process that was killed while it read would keep old pages alive for ever.
            self._env.reader_check()
            self._check_format_while_others_write()
        except (lmdb.Error, OSError) as error:
            raise explain(self.directory, error, "opened") from error

    def _open_while_others_write(self) -> lmdb.Environment:
        while True:
            try:
                return lmdb.open(
                    self.directory,
                    map_size=self._map_size,
                    max_readers=1024,
                    sync=self.sync,
                    metasync=self.sync,
                    readahead=False,
                    mode=0o600,
                    # Pages that were allocated but not written hold nothing secret: the file is the user's own.
                    meminit=False,
                )
            except lmdb.MapResizedError:
                # Another process has made the map grow while it was opened here: the next attempt may be too late as
                # well, so ask for more than it was.
                self._map_size = min(self._map_size * 2, self.max_size or self._map_size * 2)

    def _check_format_while_others_write(self) -> None:
        while True:
            try:
                return self._check_format()
            except lmdb.MapResizedError:
                # Another process has made the map grow since it was opened here: take its size over.
                self._env.set_mapsize(0)
                self._map_size = self._env.info()["map_size"]

    def _check_format(self) -> None:
        with self._env.begin() as transaction:
            written = transaction.get(_FORMAT_KEY)
        if written == _FORMAT:
            return
        if written is not None or self._env.stat()["entries"]:
            found = "something else" if written is None else f"the format {bytes(written)!r}"
            message = (
                f"the directory '{self.directory}' holds {found}, and this version of Headrace reads {_FORMAT!r}; "
                "use the version that wrote it, or another directory"
            )
            raise LogError(message)
        with self._env.begin(write=True) as transaction:
            transaction.put(_FORMAT_KEY, _FORMAT)

    def write(self, action: Callable[[Transaction], T], *, reserve: bool = False) -> T:
        """Runs ``action`` in a write transaction, and again when the map had to grow for it.

        ``reserve`` is for what makes room: removing takes pages before it gives them back, so a full log lends some.
        """

        def attempt() -> T:
            with self._gate, self._env.begin(write=True, buffers=True) as transaction:
                return action(transaction)

        limit = self.max_size
        if limit is None or not reserve:
            return self._run(attempt, "written", limit)
        try:
            return self._run(attempt, "written", limit + limit // 8 + _RESERVE)
        finally:
            if self._map_size > limit:
                with self._gate.alone():
                    # LMDB takes the size in use if that is larger.
                    self._resize(limit)

    def read(self, action: Callable[[Transaction], T]) -> T:
        """Runs ``action`` in a read transaction; keep it short, since it keeps old pages alive."""

        def attempt() -> T:
            with self._gate, self._env.begin(buffers=True) as transaction:
                return action(transaction)

        return self._run(attempt, "read")

    def version(self) -> int:
        """Returns a number that changes with every transaction of any process; far cheaper than looking."""
        self._after_fork()
        with self._gate:
            return self._env.info()["last_txnid"]

    def used_bytes(self) -> int:
        """Returns how much of the file is in use or was."""
        with self._gate:
            return (self._env.info()["last_pgno"] + 1) * self._env.stat()["psize"]

    def forget_dead_readers(self) -> int:
        """Frees what killed processes have left; returns how many there were."""
        with self._gate:
            return self._env.reader_check()

    def flush(self) -> None:
        """Forces everything to the disk, whatever the policy."""
        with self._gate:
            self._env.sync(True)  # noqa: FBT003 - LMDB's own signature

    def close(self) -> None:
        with self._gate.alone():
            self._env.close()

    def _run(self, attempt: Callable[[], T], what: str, limit: int | None = None) -> T:
        self._after_fork()
        try:
            return self._retry(attempt, limit)
        except lmdb.PanicError as error:
            # A header could not be written. Opening anew finds the last one that could.
            with self._gate.alone():
                self._env.close()
                self._open()
            raise explain(self.directory, error, what) from error
        except lmdb.Error as error:
            raise explain(self.directory, error, what) from error

    def _retry(self, attempt: Callable[[], T], limit: int | None) -> T:
        while True:
            size = self._map_size
            try:
                return attempt()
            except lmdb.MapFullError as error:
                self._grow(size, limit, error)
            except lmdb.MapResizedError:
                # Another process has made the map larger: take over its size.
                with self._gate.alone():
                    self._resize(0)
            except lmdb.ReadersFullError:
                if not self.forget_dead_readers():
                    raise

    def _grow(self, size: int, limit: int | None, error: lmdb.Error) -> None:
        larger = size * 2 if limit is None else min(size * 2, limit)
        if larger <= size:
            message = (
                f"the log in '{self.directory}' has reached its limit, max_size={self.max_size} bytes; nothing of this "
                "write was kept; remove what is not needed (retention, delete_topic, then clean), or raise the limit"
            )
            raise LogError(message) from error
        # No transaction of this process may be open while the map moves.
        with self._gate.alone():
            # Another thread may have been here already.
            if self._map_size <= size:
                self._resize(larger)

    def _resize(self, size: int) -> None:
        self._env.set_mapsize(size)
        self._map_size = self._env.info()["map_size"]

    def _after_fork(self) -> None:
        if self._pid != os.getpid():
            with _LOCK:
                if self._pid != os.getpid():
                    # LMDB's locks belong to the parent. Closing here only gives up this process's share of the files.
                    self._gate = _Gate()
                    self._env.close()
                    self._open()


def explain(directory: str, error: Exception, what: str) -> LogError:
    """Returns the error to raise when the log cannot be opened, read or written."""
    code = error.code if isinstance(error, lmdb.Error) else getattr(error, "errno", 0)
    try:
        free = f"; {shutil.disk_usage(directory).free:,} bytes are free"
    except OSError:
        free = ""
    kept = "; nothing of this write was kept" if what == "written" else ""
    if code in _FULL:
        remedy = "the disk is full, or the process may not write more: make room, or raise the limit, and try again"
    elif code == EIO:
        remedy = "the disk is full or broken: make room or replace it, and try again"
    elif code in (EACCES, EROFS):
        remedy = "choose a directory that this user may write"
    elif isinstance(error, _DAMAGED):
        remedy = "what is there is not a log, or it is damaged: choose another directory, or restore it from a copy"
    else:
        remedy = "look at the directory and the disk, and try again"
    return LogError(f"the log in '{directory}' cannot be {what}: {error}{kept}{free}; {remedy}")


class _Gate:
    """Lets any number of transactions in (``with gate:``), or one change of the map (``with gate.alone():``)."""

    def __init__(self) -> None:
        self._condition = threading.Condition()
        self._inside = 0
        self._closed = False

    def __enter__(self) -> None:
        with self._condition:
            while self._closed:
                self._condition.wait()
            self._inside += 1

    def __exit__(self, *_: object) -> None:
        with self._condition:
            self._inside -= 1
            if self._closed:
                self._condition.notify_all()

    @contextmanager
    def alone(self) -> Iterator[None]:
        condition = self._condition
        with condition:
            while self._closed:
                condition.wait()
            self._closed = True
            while self._inside:
                condition.wait()
        try:
            yield
        finally:
            with condition:
                self._closed = False
                condition.notify_all()


_OPEN: dict[str, Environment] = {}
_LOCK = threading.Lock()
# A child forked while another thread holds the lock would wait for ever.
os.register_at_fork(after_in_child=lambda: globals().update(_LOCK=threading.Lock()))


def open_environment(directory: str, *, sync: bool, map_size: int, max_size: int | None) -> Environment:
    """Returns the environment of a directory: LMDB forbids to open one twice in a process, so it is shared."""
    path = os.path.realpath(directory)
    with _LOCK:
        environment = _OPEN.get(path)
        if environment is None:
            environment = _OPEN[path] = Environment(path, sync=sync, map_size=map_size, max_size=max_size)
        elif environment.sync != sync:
            message = (
                f"the log in '{path}' is open in this process with sync={'commit' if environment.sync else 'none'}; "
                "open it with the same setting, or close the other one first"
            )
            raise LogError(message)
        environment.users += 1
        return environment


def give_back(environment: Environment) -> None:
    """Closes the environment after its last user in this process."""
    with _LOCK:
        environment.users -= 1
        if not environment.users:
            del _OPEN[environment.directory]
            environment.close()

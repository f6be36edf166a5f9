"""Worker affinity: the process that has a slot's tasks open runs them again, whichever process Spark chooses.

Spark gives work to a random one of its Python workers. One that gets a slot for the first time has to open its tasks:
restore their state, and on Kafka make a consumer and a transactional producer. So a process that has opened tasks
leaves a note, and a process that is given their work hands it over: one request, one answer. If nobody takes it, it
does the work itself.

Processes talk over Unix sockets in a directory that only their user can enter, and each side looks at the user of the
other one. Bytes are passed on as they are; nothing is unpickled here. An exchange::

    asker    -> key of the work; LAST_KEY if it does the work itself unless it is taken now
    server   -> ACCEPTED, or BUSY: it has other work to do, or REFUSED: it does not know the key
    asker    -> the work
    server   -> DONE with the result, FAILED with the failure in the caller's own form, or BROKEN with a traceback

Every message is a mark, its kind, its length and its bytes: an unrelated service on the path is known by the mark.
"""

from __future__ import annotations

import faulthandler
import logging
import os
import re
import socket
import stat
import threading
import time
import traceback
from collections.abc import Callable
from contextlib import suppress
from enum import IntEnum
from functools import cache
from hashlib import blake2b
from pathlib import Path
from secrets import token_hex
from struct import Struct, unpack

from headrace.errors import ProcessorStateError
from headrace.private_directory import is_private, make_private, own_temporary_directory

logger = logging.getLogger(__name__)

_MARK = b"hrw1"
_HEADER = Struct(">4sBQ")
_LONGEST_KEY = 1000
_LONGEST_MESSAGE = 1 << 31
_LONGEST_PATH = 100
"""Bytes of a socket's name, of the 104 (macOS) or 108 (Linux) that the system allows."""
_LONGEST_NOTE = 4096
_HELLO_S = 2.0
"""Within which a process that is alive answers."""
_PATIENCE_S = 5.0
"""For work whose asker has gone: then it hangs, and a thread cannot be stopped."""
_STUCK_S = 60.0
"""After which a process ends in which a function lets no other thread run."""
_LOOK_S = 1.0
_ASK_AGAIN_S = 0.02
_ABANDONED_S = 3600.0
_SOCKET = re.compile(r"work-[0-9a-f]{16}")
_DRAFT = "draft-"
_NOTE = "note-"


class _Kind(IntEnum):
    KEY, LAST_KEY, WORK, ACCEPTED, BUSY, REFUSED, DONE, FAILED, BROKEN = range(9)


class WorkFailedError(ProcessorStateError):
    """Work failed where it was handed to; ``failure`` says why, as ``run`` has written it.

    ``run`` raises it with its failure, and ``hand_over`` raises it with the same.
    """

    def __init__(self, message: str, failure: bytes) -> None:
        super().__init__(message)
        self.failure = failure

    def __reduce__(self) -> tuple[type[WorkFailedError], tuple[str, bytes]]:
        return type(self), (str(self), self.failure)


class WorkServer:
    """Does work for other processes of this user and machine: one piece at a time, or none while ``busy`` is held.

    ``run`` is called with a key and the work, in a thread of this server, with ``busy`` held; its result is the answer.
    It raises WorkFailedError with a failure that the asker understands. ``knows`` says whether work of a key is taken.
    ``on_refused`` is called with the key of work that is refused because of other work and asked for the last time,
    before the asker is told. ``afterwards`` is called when an asker has the answer.
    """

    def __init__(
        self,
        directory: Path,
        run: Callable[[str, bytes], bytes],
        busy: threading.Lock,
        *,
        knows: Callable[[str], bool] = lambda key: True,
        on_refused: Callable[[str], None] = lambda key: None,
        afterwards: Callable[[], object] = lambda: None,
    ) -> None:
        self._run = run
        self._knows = knows
        self._on_refused = on_refused
        self._afterwards = afterwards
        self._busy = busy
        self._asker = threading.local()
        self._listening, path = _listen(directory)
        self.address = str(path)
        """Address for ``hand_over`` and notes; new for every server, so that a stale note leads nowhere."""
        threading.Thread(target=self._accept, name="headrace-work-server", daemon=True).start()

    def check(self) -> None:
        """Raises ProcessorStateError if this thread does work for another process, and that one is gone.

        To be called before anything of a piece of work becomes visible to others.
        """
        asker: socket.socket | None = getattr(self._asker, "socket", None)
        if asker is not None and _is_disconnected(asker):
            message = "the process that has handed this work over is gone, so nobody waits for its result"
            raise ProcessorStateError(message)

    def close(self) -> None:
        """Takes no more work."""
        with suppress(OSError):
            # Closing alone would not wake the thread that accepts.
            self._listening.shutdown(socket.SHUT_RDWR)
        self._listening.close()
        Path(self.address).unlink(missing_ok=True)

    def _accept(self) -> None:
        while True:
            try:
                asker, _ = self._listening.accept()
            except OSError:
                # Closed, or the process ends.
                return
            threading.Thread(target=self._serve, args=(asker,), name="headrace-work", daemon=True).start()

    def _serve(self, asker: socket.socket) -> None:
        with asker:
            try:
                if _peer_user(asker) != os.geteuid():
                    return
                asker.settimeout(_HELLO_S)
                kind, content = _receive_any(asker, _LONGEST_KEY)
                if kind not in (_Kind.KEY, _Kind.LAST_KEY):
                    return
                key = content.decode()
                if not self._busy.acquire(blocking=False):
                    if kind is _Kind.LAST_KEY:
                        self._on_refused(key)
                    _send(asker, _Kind.BUSY)
                    return
                try:
                    kind, answer = self._run_work(asker, key)
                finally:
                    # Before the answer: the asker may ask again at once.
                    self._busy.release()
                _send(asker, kind, answer)
            except (OSError, ValueError) as error:
                logger.debug("work was not handed over: %s", error)
        self._afterwards()

    def _run_work(self, asker: socket.socket, key: str) -> tuple[_Kind, bytes]:
        if not self._knows(key):
            return _Kind.REFUSED, b""
        _send(asker, _Kind.ACCEPTED)
        work = _receive(asker, _Kind.WORK)
        asker.settimeout(None)
        over = threading.Event()
        _postpone_exit()
        watch = threading.Thread(target=_watch, args=(asker, over), name="headrace-work-watch", daemon=True)
        watch.start()
        self._asker.socket = asker
        try:
            return _Kind.DONE, self._run(key, work)
        except WorkFailedError as error:
            return _Kind.FAILED, error.failure
        except BaseException:
            return _Kind.BROKEN, traceback.format_exc().encode(errors="replace")
        finally:
            self._asker.socket = None
            over.set()
            watch.join()
            faulthandler.cancel_dump_traceback_later()


def work_directory(of_driver: Path) -> Path:
    """Returns where processes of this machine find each other, given where those on the driver's machine do.

    The driver has made its own, with this user. A process without such a directory is on another machine.
    """
    return of_driver if is_private(of_driver) else make_private(own_temporary_directory() / of_driver.name)


def hand_over(address: str, key: str, work: bytes, *, patience_s: float = 0.0) -> bytes | None:
    """Hands work to the process at an address, and returns its result; None if no process takes it.

    One that is busy is asked again for as long as ``patience_s``.

    Raises ProcessorStateError if the process ends meanwhile, and WorkFailedError, which is one, if the work fails.
    """
    server = _connect(address, key, time.monotonic() + patience_s)
    if server is None:
        return None
    with server:
        try:
            _send(server, _Kind.WORK, work)
            kind, answer = _receive_any(server)
        except OSError as error:
            message = f"the process that was doing the work of '{key}' has ended: {error}"
            raise ProcessorStateError(message) from error
    if kind is _Kind.DONE:
        return answer
    if kind is _Kind.FAILED:
        message = f"the work of '{key}' failed in another process"
        raise WorkFailedError(message, answer)
    said = answer.decode(errors="replace") if kind is _Kind.BROKEN else f"it answers with {kind.name}"
    message = f"the work of '{key}' failed in another process:\n{said}"
    raise ProcessorStateError(message)


def is_served(address: str) -> bool:
    """Returns whether there is a process at an address, whatever it is doing."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.settimeout(_HELLO_S)
        try:
            probe.connect(address)
        except OSError:
            return False
    return True


def write_note(directory: Path, key: str, address: str) -> None:
    """Notes the owner of ``key``, replacing the former one.

    A key is the same in all runs of an application, so that there are not more and more notes.
    """
    make_private(directory)
    draft = directory / f"{_DRAFT}{token_hex(8)}"
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    with open(os.open(draft, flags, 0o600), "w", encoding="utf-8") as file:
        file.write(f"{key}\n{address}\n")
    draft.replace(_note_path(directory, key))


def read_note(directory: Path, key: str) -> str | None:
    """Returns the address that was noted for a key; None without a note that can be trusted."""
    if not is_private(directory):
        return None
    try:
        descriptor = os.open(_note_path(directory, key), os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        with open(descriptor, "rb") as file:
            found = os.fstat(descriptor)
            if not stat.S_ISREG(found.st_mode) or found.st_uid != os.geteuid() or found.st_mode & 0o022:
                return None
            lines = file.read(_LONGEST_NOTE).decode().splitlines()
    except (OSError, ValueError):
        return None
    if len(lines) != 2 or lines[0] != key or not _SOCKET.fullmatch(os.path.basename(lines[1])):
        return None
    return lines[1]


def _note_path(directory: Path, key: str) -> Path:
    return directory / f"{_NOTE}{blake2b(key.encode(), digest_size=12).hexdigest()}"


def _listen(directory: Path) -> tuple[socket.socket, Path]:
    name = f"work-{token_hex(8)}"
    make_private(directory)
    directory = directory.resolve()
    if len(os.fsencode(directory / name)) > _LONGEST_PATH:
        directory = make_private(own_temporary_directory() / "work")
    _forget_gone(directory)
    path, draft = directory / name, directory / f"{_DRAFT}{name[-6:]}"
    listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        listening.bind(str(draft))
        listening.listen(64)
        # Under its name it answers from the beginning; otherwise a process that cleans up would take it for a dead one.
        draft.rename(path)
    except BaseException:
        listening.close()
        draft.unlink(missing_ok=True)
        raise
    return listening, path


def _forget_gone(directory: Path) -> None:
    """Deletes sockets of processes that were killed, and drafts of those that were killed just then."""
    for path in directory.iterdir():
        with suppress(OSError):
            if _SOCKET.fullmatch(path.name) and stat.S_ISSOCK(path.lstat().st_mode):
                with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
                    probe.settimeout(0)
                    try:
                        probe.connect(str(path))
                    except ConnectionRefusedError:
                        path.unlink()
            elif path.name.startswith(_DRAFT) and path.lstat().st_mtime < time.time() - _ABANDONED_S:
                path.unlink()


def _connect(address: str, key: str, deadline: float) -> socket.socket | None:
    """Returns the connection to a process that takes the work; None if there is none before the deadline."""
    while True:
        is_last = time.monotonic() >= deadline
        kind, server = _ask(address, key, _Kind.LAST_KEY if is_last else _Kind.KEY)
        if kind is not _Kind.BUSY or is_last:
            return server
        time.sleep(_ASK_AGAIN_S)


def _ask(address: str, key: str, asking: _Kind) -> tuple[_Kind, socket.socket | None]:
    """Returns what a process says to work, and the connection if it takes it."""
    try:
        found = os.lstat(address)
    except (OSError, ValueError):
        return _Kind.REFUSED, None
    if not stat.S_ISSOCK(found.st_mode) or found.st_uid != os.geteuid() or not is_private(os.path.dirname(address)):
        return _Kind.REFUSED, None
    kind = _Kind.REFUSED
    server = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        server.settimeout(_HELLO_S)
        server.connect(address)
        if _peer_user(server) == os.geteuid():
            _send(server, asking, key.encode())
            kind, content = _receive_any(server, 0)
            if kind is _Kind.ACCEPTED and not content:
                server.settimeout(None)
                return kind, server
    except OSError as error:
        logger.debug("nobody takes work at '%s': %s", address, error)
    server.close()
    return kind, None


def _peer_user(connected: socket.socket) -> int:
    """Returns the user of the process at the other end."""
    if hasattr(socket, "SO_PEERCRED"):
        _, user, _ = unpack("3i", connected.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))
    else:
        # LOCAL_PEERCRED of macOS and the BSDs: struct xucred begins with a version and the user.
        _, user = unpack("=II", connected.getsockopt(0, 1, 76)[:8])
    return int(user)


def _is_disconnected(asker: socket.socket) -> bool:
    try:
        return asker.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT) == b""
    except BlockingIOError:
        return False
    except OSError:
        return True


def _watch(asker: socket.socket, over: threading.Event) -> None:
    """Ends this process if its work hangs after Spark has ended the process that asked for it."""
    gone_since: float | None = None
    while not over.wait(_LOOK_S):
        _postpone_exit()
        if not _is_disconnected(asker):
            continue
        gone_since = gone_since or time.monotonic()
        if time.monotonic() - gone_since > _PATIENCE_S:
            os._exit(1)


def _postpone_exit() -> None:
    """Lets this process end later, unless this is called again: by a thread, so by a function that lets others run.

    The clock that is set here needs nothing of the interpreter, which such a function would not give back.
    """
    faulthandler.dump_traceback_later(_STUCK_S, exit=True, file=_null_device())


@cache
def _null_device() -> int:
    return os.open(os.devnull, os.O_WRONLY | os.O_CLOEXEC)


def _send(to: socket.socket, kind: _Kind, content: bytes = b"") -> None:
    to.sendall(_HEADER.pack(_MARK, kind, len(content)))
    if content:
        to.sendall(content)


def _receive(of: socket.socket, kind: _Kind, longest: int = _LONGEST_MESSAGE) -> bytes:
    found, content = _receive_any(of, longest)
    if found is not kind:
        message = f"expected {kind.name}, got {found.name}"
        raise ConnectionError(message)
    return content


def _receive_any(of: socket.socket, longest: int = _LONGEST_MESSAGE) -> tuple[_Kind, bytes]:
    mark, kind, length = _HEADER.unpack(_receive_exactly(of, _HEADER.size))
    if mark != _MARK or kind > max(_Kind) or length > longest:
        message = "the process at the other end of the socket speaks another protocol"
        raise ConnectionError(message)
    return _Kind(kind), bytes(_receive_exactly(of, length))


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

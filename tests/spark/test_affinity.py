"""Work that one process does for another: who is asked, what comes back, and what happens when one of them goes."""

from __future__ import annotations

import os
import pickle
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from headrace.errors import ProcessorStateError
from headrace.private_directory import is_private
from headrace.spark import affinity
from headrace.spark.affinity import WorkFailedError, WorkServer, hand_over, read_note, work_directory, write_note

Start = Callable[[Callable[[bytes], bytes]], WorkServer]

as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files to other users")


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    return tmp_path / "work"


@pytest.fixture
def server(directory: Path) -> Iterator[Start]:
    started: list[WorkServer] = []

    def start(act: Callable[[bytes], bytes]) -> WorkServer:
        def run(key: str, work: bytes) -> bytes:
            return act(work)

        started.append(WorkServer(directory, run, threading.Lock(), knows=lambda key: key == "slot 1"))
        return started[-1]

    yield start
    for each in started:
        each.close()


def reverse(work: bytes) -> bytes:
    return work[::-1]


def listen(path: Path, answer: bytes) -> socket.socket:
    """Starts a service that has nothing to do with us: it answers whoever connects, at once."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    listening.bind(str(path))
    listening.listen()

    def serve() -> None:
        while True:
            try:
                asker, _ = listening.accept()
            except OSError:
                return
            with asker:
                asker.sendall(answer)

    threading.Thread(target=serve, daemon=True).start()
    return listening


def test_work_is_done_where_its_key_is_known(server: Start) -> None:
    there = server(reverse)
    assert hand_over(there.address, "slot 1", b"abc") == b"cba"
    assert hand_over(there.address, "slot 1", b"") == b""
    large = os.urandom(3_000_000)
    assert hand_over(there.address, "slot 1", large) == large[::-1]


def test_what_is_to_be_done_afterwards_does_not_hold_the_answer_up(directory: Path) -> None:
    answered, done = threading.Event(), threading.Event()

    def clean() -> None:
        assert answered.wait(30)
        done.set()

    server = WorkServer(directory, lambda key, work: work, threading.Lock(), afterwards=clean)
    try:
        assert hand_over(server.address, "slot 1", b"abc") == b"abc"
        answered.set()
        assert done.wait(30)
    finally:
        server.close()


def test_bytes_are_passed_on_as_they_are(server: Start) -> None:
    class Trap:
        def __reduce__(self) -> tuple[object, tuple[str]]:
            return os._exit, ("opened",)

    trap = pickle.dumps(Trap())
    assert hand_over(server(lambda work: work).address, "slot 1", trap) == trap


def test_unknown_key_is_refused(server: Start) -> None:
    assert hand_over(server(reverse).address, "slot 2", b"abc") is None


def test_second_piece_of_work_is_refused_until_the_first_is_done(server: Start) -> None:
    begun, go_on = threading.Event(), threading.Event()

    def act(work: bytes) -> bytes:
        begun.set()
        assert go_on.wait(60)
        return work

    there = server(act)
    first = threading.Thread(target=hand_over, args=(there.address, "slot 1", b"first"))
    first.start()
    assert begun.wait(60)
    assert hand_over(there.address, "slot 1", b"second") is None
    go_on.set()
    first.join()
    assert hand_over(there.address, "slot 1", b"second") == b"second"


def test_a_process_that_is_busy_is_waited_for(directory: Path) -> None:
    busy = threading.Lock()
    there = WorkServer(directory, lambda key, work: work + b" done", busy)
    busy.acquire()
    threading.Timer(0.1, busy.release).start()
    assert hand_over(there.address, "slot-0", b"work", patience_s=20.0) == b"work done"
    there.close()


def test_work_is_refused_while_the_process_is_busy_itself(directory: Path) -> None:
    busy = threading.Lock()
    there = WorkServer(directory, lambda key, work: work, busy)
    with busy:
        assert hand_over(there.address, "any", b"") is None
    assert hand_over(there.address, "any", b"") == b""
    there.close()


def test_failure_arrives_in_the_form_in_which_it_was_raised(server: Start) -> None:
    def act(work: bytes) -> bytes:
        message = "node 'parse' failed"
        raise WorkFailedError(message, b"\x00packed")

    there = server(act)
    with pytest.raises(WorkFailedError, match="work of 'slot 1' failed in another process") as caught:
        hand_over(there.address, "slot 1", b"")
    assert caught.value.failure == b"\x00packed"
    assert isinstance(caught.value, ProcessorStateError)
    assert pickle.loads(pickle.dumps(caught.value)).failure == b"\x00packed"


def test_unexpected_failure_is_told_with_its_place(server: Start) -> None:
    def act(work: bytes) -> bytes:
        return dict[bytes, bytes]()[work]

    there = server(act)
    for _ in range(2):
        with pytest.raises(ProcessorStateError, match=r"'slot 1' failed(?s:.*)in act(?s:.*)KeyError: b'amount'"):
            hand_over(there.address, "slot 1", b"amount")


def test_check_passes_outside_of_work_for_others(server: Start) -> None:
    there = server(reverse)
    there.check()


def test_nobody_is_there(server: Start, directory: Path) -> None:
    there = server(reverse)
    there.close()
    assert not list(directory.iterdir())
    assert hand_over(there.address, "slot 1", b"abc") is None
    for nonsense in ("", "nowhere", "/", "\0", str(directory)):
        assert hand_over(nonsense, "slot 1", b"abc") is None


def test_directory_is_this_users_alone(server: Start, directory: Path) -> None:
    server(reverse)
    assert directory.stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize("mode", [0o755, 0o770, 0o701])
def test_directory_that_others_may_enter_is_refused(server: Start, directory: Path, mode: int) -> None:
    there = server(reverse)
    write_note(directory, "slot 1", there.address)
    directory.chmod(mode)
    assert read_note(directory, "slot 1") is None
    assert hand_over(there.address, "slot 1", b"abc") is None
    with pytest.raises(PermissionError, match=r"must be a directory that only user .* chmod it to 0700"):
        server(reverse)
    with pytest.raises(PermissionError, match="must be a directory that only user"):
        write_note(directory, "slot 1", there.address)


def test_directory_behind_a_link_is_refused(server: Start, directory: Path, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir(mode=0o700)
    directory.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(PermissionError, match="must be a directory that only user"):
        server(reverse)
    assert read_note(directory, "slot 1") is None
    assert not list((tmp_path / "elsewhere").iterdir())


@as_root
def test_directory_and_socket_of_another_user_are_refused(server: Start, directory: Path) -> None:
    there = server(reverse)
    write_note(directory, "slot 1", there.address)
    os.chown(there.address, 12345, -1)
    assert hand_over(there.address, "slot 1", b"abc") is None
    os.chown(there.address, 0, -1)
    assert hand_over(there.address, "slot 1", b"abc") == b"cba"
    os.chown(directory, 12345, -1)
    assert hand_over(there.address, "slot 1", b"abc") is None
    assert read_note(directory, "slot 1") is None
    with pytest.raises(PermissionError, match="of user 12345"):
        server(reverse)


ANOTHER_USER = """
import os, socket, sys
listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
os.setuid(12345)
listening.bind(sys.argv[1])
listening.listen()
print(flush=True)
listening.accept()[0].sendall(bytes.fromhex(sys.argv[2]))
sys.stdin.read()
"""


@as_root
def test_process_of_another_user_behind_an_own_socket_file_is_refused(short_directory: Path) -> None:
    """The file's owner is not the process's: the peer's credentials decide."""
    path = short_directory / "work-0123456789abcdef"
    short_directory.chmod(0o777)
    accepted = affinity._HEADER.pack(affinity._MARK, affinity._Kind.ACCEPTED, 0)
    command = [sys.executable, "-c", ANOTHER_USER, str(path), accepted.hex()]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert process.stdout is not None
    process.stdout.readline()
    short_directory.chmod(0o700)
    os.chown(path, os.geteuid(), -1)
    try:
        assert hand_over(str(path), "slot 1", b"abc") is None
    finally:
        process.kill()
        process.communicate()


STRANGER = """
import os, socket, sys
asking = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
os.setuid(12345)
asking.connect(sys.argv[1])
try:
    # The other side may have hung up already.
    asking.sendall(bytes.fromhex(sys.argv[2]))
    print(asking.recv(100).hex())
except (BrokenPipeError, ConnectionResetError):
    print()
"""


@as_root
def test_asker_of_another_user_gets_no_answer(short_directory: Path) -> None:
    asked_for: list[str] = []

    def knows(key: str) -> bool:
        asked_for.append(key)
        return True

    there = WorkServer(short_directory / "work", lambda key, work: work, threading.Lock(), knows=knows)
    (short_directory / "work").chmod(0o777)
    os.chmod(there.address, 0o777)
    hello = affinity._HEADER.pack(affinity._MARK, affinity._Kind.KEY, 6) + b"slot 1"
    command = [sys.executable, "-c", STRANGER, there.address, hello.hex()]
    asked = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    there.close()
    assert (asked.stdout.strip(), asked.returncode) == ("", 0), asked.stderr
    assert not asked_for


@pytest.fixture
def short_directory(tmp_path: Path) -> Iterator[Path]:
    """A directory in which every user may be, as not in those of pytest."""
    path = Path("/tmp") / f"headrace-test-{os.getpid()}-{tmp_path.name[-20:]}"
    path.mkdir(mode=0o711)
    yield path
    for inside in sorted(path.rglob("*"), reverse=True):
        inside.rmdir() if inside.is_dir() else inside.unlink()
    path.rmdir()


@pytest.mark.parametrize(
    "answer",
    [
        b"HTTP/1.1 400 Bad Request\r\n\r\n" + bytes(100),
        b"",
        pickle.dumps(("accepted", None)),
        affinity._HEADER.pack(affinity._MARK, affinity._Kind.DONE, 0),
        affinity._HEADER.pack(affinity._MARK, 250, 0),
        affinity._HEADER.pack(affinity._MARK, affinity._Kind.ACCEPTED, 1 << 60),
        affinity._MARK,
    ],
    ids=["http", "closes", "a pickle", "other kind", "no kind", "huge", "half"],
)
def test_unrelated_service_on_the_path_of_a_stale_note_is_nobody(directory: Path, answer: bytes) -> None:
    path = directory / "work-0123456789abcdef"
    with listen(path, answer):
        write_note(directory, "slot 1", str(path))
        address = read_note(directory, "slot 1")
        assert address == str(path)
        assert hand_over(address, "slot 1", b"abc") is None


def test_service_that_never_answers_is_nobody(directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(affinity, "_HELLO_S", 0.05)
    directory.mkdir(mode=0o700)
    path = directory / "work-0123456789abcdef"
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listening:
        listening.bind(str(path))
        listening.listen()
        assert hand_over(str(path), "slot 1", b"abc") is None


@pytest.mark.parametrize(
    "garbage",
    [
        b"GET / HTTP/1.1\r\n\r\n" + bytes(100),
        b"",
        affinity._HEADER.pack(affinity._MARK, affinity._Kind.KEY, 1 << 40),
        affinity._HEADER.pack(affinity._MARK, affinity._Kind.KEY, 2) + b"\xff\xfe",
        affinity._HEADER.pack(affinity._MARK, affinity._Kind.WORK, 2) + b"ab",
    ],
    ids=["http", "nothing", "huge", "no text", "work without a key"],
)
def test_garbage_from_an_asker_is_ignored(server: Start, garbage: bytes) -> None:
    there = server(reverse)
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as asker:
        asker.connect(there.address)
        asker.sendall(garbage)
        asker.shutdown(socket.SHUT_WR)
        asker.settimeout(60)
        # Reset if it did not read all of it.
        with suppress(ConnectionResetError):
            assert asker.recv(100) == b""
    assert hand_over(there.address, "slot 1", b"abc") == b"cba"


def test_socket_of_a_killed_process_is_deleted_by_the_next(server: Start, directory: Path) -> None:
    directory.mkdir(mode=0o700)
    left = directory / "work-00000000000000aa"
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as killed:
        killed.bind(str(left))
    (directory / "work-00000000000000bb").write_text("no socket")
    (directory / "something else").touch()
    assert hand_over(str(left), "slot 1", b"abc") is None
    first = server(reverse)
    server(reverse)
    assert hand_over(first.address, "slot 1", b"abc") == b"cba"
    assert not left.exists()
    assert (directory / "work-00000000000000bb").exists()
    assert (directory / "something else").exists()


def test_long_paths_have_their_socket_elsewhere(tmp_path: Path) -> None:
    directory = tmp_path / ("long " * 20) / ("longer " * 12)
    there = WorkServer(directory, lambda key, work: work, threading.Lock())
    write_note(directory, "slot 1", there.address)
    assert len(there.address) < 100
    assert hand_over(read_note(directory, "slot 1") or "", "slot 1", b"abc") == b"abc"
    there.close()


CHILD = """
import os, sys, threading, time
from pathlib import Path
from headrace.spark import affinity

affinity._PATIENCE_S, affinity._LOOK_S, affinity._STUCK_S = 0.3, 0.05, 0.5

def end(): os._exit(3)
def hang(): time.sleep(600)
def hold(): (10 ** 4_000_000) ** 9
def wait_and_check():
    time.sleep(0.2)
    server.check()
    Path(sys.argv[1], "committed").touch()

def run(key, work):
    print(flush=True)
    if work == b"act":
        globals()[sys.argv[2]]()
    return work

server = affinity.WorkServer(Path(sys.argv[1]), run, threading.Lock())
print(server.address, flush=True)
sys.stdin.read()
"""

Child = Callable[[str], tuple[subprocess.Popen[str], str]]


@pytest.fixture
def child(directory: Path) -> Iterator[Child]:
    started: list[subprocess.Popen[str]] = []

    def start(act: str) -> tuple[subprocess.Popen[str], str]:
        command = [sys.executable, "-c", CHILD, str(directory), act]
        process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        started.append(process)
        assert process.stdout is not None
        return process, process.stdout.readline().strip()

    yield start
    for process in started:
        process.kill()
        process.communicate()


def asker_of(address: str) -> subprocess.Popen[bytes]:
    command = [
        sys.executable,
        "-c",
        f"from headrace.spark.affinity import hand_over; hand_over({address!r}, 'slot 1', b'act')",
    ]
    return subprocess.Popen(command)


def test_process_that_dies_fails_the_work(child: Child) -> None:
    process, address = child("end")
    with pytest.raises(ProcessorStateError, match="process that was doing the work of 'slot 1' has ended"):
        hand_over(address, "slot 1", b"act")
    assert process.wait(60) == 3
    assert os.path.exists(address)
    assert hand_over(address, "slot 1", b"act") is None


@pytest.mark.parametrize("act", ["hang", "hold"])
def test_work_that_hangs_ends_with_its_asker(child: Child, act: str) -> None:
    """Spark kills the process that it has given the task to: it does not know of the other one."""
    process, address = child(act)
    asker = asker_of(address)
    assert process.stdout is not None
    process.stdout.readline()
    asker.kill()
    asker.wait()
    assert process.wait(60) == 1


def test_work_whose_asker_is_gone_commits_nothing(child: Child, directory: Path) -> None:
    process, address = child("wait_and_check")
    asker = asker_of(address)
    assert process.stdout is not None
    process.stdout.readline()
    asker.kill()
    asker.wait()
    deadline = time.monotonic() + 60
    # It takes other work as soon as it has noticed.
    while hand_over(address, "slot 1", b"other") is None:
        assert time.monotonic() < deadline
        time.sleep(0.02)
    assert process.poll() is None
    assert not (directory / "committed").exists()


def test_work_whose_asker_waits_commits(child: Child, directory: Path) -> None:
    _, address = child("wait_and_check")
    assert hand_over(address, "slot 1", b"act") == b"act"
    assert (directory / "committed").exists()


def test_workers_on_the_machine_of_the_driver_meet_where_it_says(directory: Path) -> None:
    directory.mkdir(mode=0o700)
    assert work_directory(directory) == directory


def test_workers_on_another_machine_meet_in_a_directory_of_their_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = tmp_path / "own"
    own.mkdir(mode=0o700)
    monkeypatch.setattr(affinity, "own_temporary_directory", lambda: own)
    found = work_directory(tmp_path / "headrace-77" / "affinity-app-1")
    assert found == own / "affinity-app-1"
    assert is_private(found)
    assert not (tmp_path / "headrace-77").exists(), "what the driver's user is called there is nobody's here"


def test_last_note_counts(directory: Path) -> None:
    assert read_note(directory, "slot 1") is None
    first, second = (str(directory / f"work-{n:016x}") for n in (1, 2))
    write_note(directory, "slot 1", first)
    write_note(directory, "slot 2", first)
    write_note(directory, "slot 1", second)
    assert read_note(directory, "slot 1") == second
    assert read_note(directory, "slot 2") == first
    assert read_note(directory, "../slot 1") is None
    assert {path.stat().st_mode & 0o777 for path in directory.iterdir()} == {0o600}
    assert len(list(directory.iterdir())) == 2


@pytest.mark.parametrize(
    "text",
    [
        "",
        "half",
        "slot 1\n",
        "slot 2\n{}\n",
        "slot 1\n{}\nmore\n",
        "slot 1\n/etc/passwd\n",
        "\xff",
        "slot 1\n{}" * 2000,
    ],
)
def test_note_with_other_content_is_none(directory: Path, text: str) -> None:
    write_note(directory, "slot 1", str(directory / "work-0123456789abcdef"))
    (note,) = directory.iterdir()
    note.write_text(text.replace("{}", str(directory / "work-0123456789abcdef")), encoding="latin-1")
    assert read_note(directory, "slot 1") is None


def test_note_that_is_no_file_of_this_user_is_none(directory: Path, tmp_path: Path) -> None:
    write_note(directory, "slot 1", str(directory / "work-0123456789abcdef"))
    (note,) = directory.iterdir()
    note.chmod(0o666)
    assert read_note(directory, "slot 1") is None
    note.chmod(0o600)
    assert read_note(directory, "slot 1") is not None
    note.rename(tmp_path / "elsewhere")
    note.symlink_to(tmp_path / "elsewhere")
    assert read_note(directory, "slot 1") is None
    note.unlink()
    os.mkfifo(note)
    assert read_note(directory, "slot 1") is None
    note.unlink()
    note.mkdir()
    assert read_note(directory, "slot 1") is None


@as_root
def test_note_of_another_user_is_none(directory: Path) -> None:
    write_note(directory, "slot 1", str(directory / "work-0123456789abcdef"))
    (note,) = directory.iterdir()
    os.chown(note, 12345, -1)
    assert read_note(directory, "slot 1") is None

"""SIGINT and SIGTERM close an application that runs in the foreground."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from headrace.app import Streams, StreamsState
from headrace.app.signals import closing_on_signals
from tests.app.kit import END, SOON, Engines, FakeEngine, States, application, config, counting, started

CHILD = """
import signal, sys, threading
from pathlib import Path
from tests.app.kit import Engines, application, started
before = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)]
never = threading.Event()
actions = [started, lambda listener: print("ready", flush=True)]
if sys.argv[2] == "stubborn":
    actions.append(lambda listener: never.wait())
streams = application(Path(sys.argv[1]), Engines(*actions))
if sys.argv[2] == "own":
    signal.signal(signal.SIGTERM, lambda number, frame: streams.close())
    streams.start().wait()
else:
    streams.set_state_listener(lambda new, old: print(new.name, flush=True) if new.is_shutting_down else None)
    streams.run()
    assert before == [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)]
print("end", streams.state.name, flush=True)
"""


@contextmanager
def running(place: Path, mode: str) -> Iterator[subprocess.Popen[str]]:
    root = Path(__file__).parents[2]
    with subprocess.Popen(
        [sys.executable, "-c", CHILD, str(place), mode],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=root,
    ) as child:
        try:
            assert child.stdout is not None
            assert child.stdout.readline() == "ready\n"
            yield child
        finally:
            child.kill()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_signal_closes_a_running_application(place: Path, number: signal.Signals) -> None:
    with running(place, "plain") as child:
        child.send_signal(number)
        out, errors = child.communicate(timeout=SOON)
    assert (out, errors, child.returncode) == ("PENDING_SHUTDOWN\nend NOT_RUNNING\n", "", 0)


# A thread that takes the signals that everybody else blocks, and sends them: the kernel may choose any thread.
OTHER_THREAD = """
import os, signal, threading
from headrace.app.signals import closing_on_signals
asked = threading.Event()

def take_signals():
    signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGTERM, signal.SIGINT])
    os.kill(os.getpid(), signal.SIGTERM)
    AFTERWARDS
    threading.Event().wait()

signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM, signal.SIGINT])
with closing_on_signals(asked.set):
    signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGINT] if INTERRUPTIBLE else [])
    threading.Timer(0.2, take_signals).start()
    WAIT
"""


def test_signal_that_another_thread_gets_closes_as_well() -> None:
    """The main thread may be waiting, and runs no handler meanwhile."""
    assert _end_of("pass", "asked.wait(); os._exit(7)", interruptible=False) == 7


def test_second_interrupt_that_another_thread_gets_ends_the_process_as_well() -> None:
    interrupt = "asked.wait(); signal.pthread_kill(threading.get_ident(), signal.SIGINT)"
    assert _end_of(interrupt, "threading.Event().wait()", interruptible=True) == -signal.SIGINT


def _end_of(afterwards: str, wait: str, *, interruptible: bool) -> int:
    code = OTHER_THREAD.replace("AFTERWARDS", afterwards).replace("WAIT", wait)
    code = code.replace("INTERRUPTIBLE", str(interruptible))
    # On a time-out it is killed.
    return subprocess.run([sys.executable, "-c", code], timeout=SOON, check=False).returncode


def test_second_interrupt_ends_the_process_at_once(place: Path) -> None:
    with running(place, "stubborn") as child:
        assert child.stdout is not None
        child.send_signal(signal.SIGTERM)
        assert child.stdout.readline() == "PENDING_SHUTDOWN\n"
        # A parent that passes the first one on must not turn a clean end into a hard one.
        child.send_signal(signal.SIGTERM)
        child.send_signal(signal.SIGINT)
        assert child.wait(timeout=SOON) == -signal.SIGINT


def test_handler_of_ones_own_may_close(place: Path) -> None:
    with running(place, "own") as child:
        child.send_signal(signal.SIGTERM)
        out, errors = child.communicate(timeout=SOON)
    assert (out, errors, child.returncode) == ("end NOT_RUNNING\n", "", 0)


def test_handlers_come_back_after_a_run_that_ends_by_itself(place: Path) -> None:
    before = signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)
    application(place, Engines(started, END)).run(until_end=True)
    assert (signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)) == before


def test_run_in_another_thread_leaves_signals_alone(place: Path) -> None:
    streams = application(place, Engines(started, END))
    thread = threading.Thread(target=streams.run, kwargs={"until_end": True})
    thread.start()
    thread.join(SOON)
    assert streams.state is StreamsState.NOT_RUNNING


def test_ignored_signal_stays_ignored() -> None:
    before = signal.signal(signal.SIGTERM, signal.SIG_IGN)
    try:
        with closing_on_signals(lambda: pytest.fail("nobody asked")) as received:
            signal.raise_signal(signal.SIGTERM)
            assert signal.getsignal(signal.SIGTERM) is signal.SIG_IGN
        assert received == []
    finally:
        signal.signal(signal.SIGTERM, before)


def test_signal_while_it_starts_ends_the_run_without_an_error(place: Path) -> None:
    engines, states = Engines(), States()

    def interrupted(*args: Any, **options: Any) -> FakeEngine:
        signal.raise_signal(signal.SIGTERM)
        states.until(StreamsState.NOT_RUNNING)
        return engines(*args, **options)

    streams = Streams(counting(), config(place), engine=interrupted)
    streams.set_state_listener(states)
    streams.run()
    assert streams.state is StreamsState.NOT_RUNNING
    assert engines.one.runs == []

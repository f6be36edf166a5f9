"""Start line of the terminal: it says what a start is busy with, once, and nowhere else."""

from __future__ import annotations

import io
import logging
import threading
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

from headrace.app import start_line as module
from headrace.app.start_line import start_line
from headrace.batches.batch_engine import EngineListener
from headrace.batches.failure_note import write_failure_note
from headrace.batches.reports import BatchReport, TaskReport
from headrace.errors import ProcessingError, RetriableError
from tests.app.kit import END, SOON, Engines, application, started

LOGGER = logging.Logger("headrace", logging.NOTSET)
"""One that pytest does not listen to."""


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True

    def lines(self) -> list[str]:
        return [line for line in self.getvalue().replace("\r\x1b[K", "\n").split("\n") if line]


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> Iterator[Terminal]:
    terminal = Terminal()
    # Not the one of the process, which pytest sets before each step of a test.
    monkeypatch.setattr(module, "sys", SimpleNamespace(stderr=terminal))
    monkeypatch.setattr(module, "_SECONDS_BETWEEN", 0.01)
    monkeypatch.setattr(module, "_LOGGER", LOGGER)
    yield terminal
    assert (LOGGER.handlers, LOGGER.level) == ([], logging.NOTSET)


def wait_for(terminal: Terminal, text: str) -> None:
    deadline = threading.Event()
    for _ in range(2000):
        if text in terminal.getvalue():
            return
        deadline.wait(0.01)
    pytest.fail(f"{text!r} not in {terminal.getvalue()!r}")


def test_line_says_what_is_logged_until_the_start_is_over(terminal: Terminal) -> None:
    state = ["starting"]
    with start_line("orders", lambda: state[0]):
        wait_for(terminal, "orders: starting, 0 s")
        LOGGER.info("starting %s", "Java")
        wait_for(terminal, "orders: starting Java, 0 s")
        state[0] = "running"
        wait_for(terminal, "orders: running, 0 s")
        LOGGER.info("something later")
    assert terminal.getvalue().endswith("\r\x1b[K")
    assert "something later" not in terminal.getvalue()


def test_warnings_stay(terminal: Terminal) -> None:
    with start_line("orders", lambda: "starting"):
        LOGGER.warning("no %s", "topic")
        wait_for(terminal, "\r\x1b[Kno topic\n")


def test_nothing_is_shown_elsewhere_than_on_a_terminal(terminal: Terminal, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(terminal, "isatty", lambda: False)
    with start_line("orders", lambda: "starting"):
        LOGGER.info("starting Java")
    assert terminal.getvalue() == ""


def test_program_that_logs_shows_it_itself(terminal: Terminal) -> None:
    own = logging.NullHandler()
    LOGGER.addHandler(own)
    try:
        with start_line("orders", lambda: "starting"):
            LOGGER.info("starting Java")
    finally:
        LOGGER.removeHandler(own)
    assert terminal.getvalue() == ""


def test_run_shows_its_start(terminal: Terminal, place: Path) -> None:
    seen = threading.Event()

    def show(listener: object) -> None:
        LOGGER.info("starting Java")
        wait_for(terminal, "starting Java, ")
        seen.set()

    streams = application(place, Engines(show, started, END))
    streams.run(until_end=True)
    assert seen.is_set()
    assert terminal.lines()[0].startswith(f"{streams.config.application_id}: ")
    assert terminal.getvalue().endswith("\r\x1b[K")


def report(number: int) -> BatchReport:
    task = TaskReport("0_0", records=1_200, written=300, rows=40, changelogged=7)
    return BatchReport.of(number, [task], duration_ms=12.5, lag=7, state_rows=40, phases={})


def test_run_shows_the_same_figures_as_the_command(terminal: Terminal, place: Path) -> None:
    def show(listener: EngineListener) -> None:
        listener.on_batch(report(0))
        wait_for(terminal, ": running, 1,200 records, ")
        wait_for(terminal, "/s, lag 7, batch 12 ms, state 40 rows")

    streams = application(place, Engines(show, END))
    streams.run(until_end=True)
    last = terminal.lines()[-1]
    assert last.startswith(
        f"{streams.config.application_id}: 1,200 records read, 300 written, 7 to changelogs, 1 micro"
    )


def test_failure_that_a_task_has_noted_is_told_while_the_batch_runs(
    place: Path, caplog: pytest.LogCaptureFixture
) -> None:
    told = threading.Event()

    class Telling(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            told.set()

    def fail(listener: EngineListener) -> None:
        (directory,) = {engine.directory for engine in engines.made}
        write_failure_note(directory, "0_0", RetriableError("the broker is away"))
        write_failure_note(directory, "0_1", ProcessingError("node 'parse' failed"))
        assert told.wait(SOON)

    engines, telling = Engines(fail, END), Telling()
    logging.getLogger("headrace.app.failing").addHandler(telling)
    try:
        application(place, engines).run(until_end=True)
    finally:
        logging.getLogger("headrace.app.failing").removeHandler(telling)
    assert caplog.messages == ["node 'parse' failed; the micro-batch ends when its other tasks have ended"]

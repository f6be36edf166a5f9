"""A failure of the engine: the handler's three answers, and what happens to handlers that fail themselves."""

from __future__ import annotations

import threading
from datetime import timedelta
from pathlib import Path

import pytest

from headrace.app import Streams, StreamsState
from headrace.app.backoff import LONGEST, Backoff
from headrace.batches.batch_engine import EngineListener
from headrace.errors import ProcessingError, StreamsError, UncaughtHandlerError
from headrace.handlers import StreamThreadExceptionResponse
from tests.app.kit import END, SOON, Engines, States, application, batch, fails, started

REPLACE = StreamThreadExceptionResponse.REPLACE_THREAD
CLIENT = StreamThreadExceptionResponse.SHUTDOWN_CLIENT
APPLICATION = StreamThreadExceptionResponse.SHUTDOWN_APPLICATION

REBALANCING, RUNNING = StreamsState.REBALANCING, StreamsState.RUNNING
PENDING_SHUTDOWN, NOT_RUNNING = StreamsState.PENDING_SHUTDOWN, StreamsState.NOT_RUNNING
PENDING_ERROR, ERROR = StreamsState.PENDING_ERROR, StreamsState.ERROR


def listening(streams: Streams) -> States:
    states = States()
    streams.set_state_listener(states)
    return states


def asking(streams: Streams, answer: StreamThreadExceptionResponse) -> list[Exception]:
    """Sets a handler that always gives the same answer; returns what it is asked about."""
    asked: list[Exception] = []

    def handler(error: Exception) -> StreamThreadExceptionResponse:
        asked.append(error)
        return answer

    streams.set_uncaught_exception_handler(handler)
    return asked


def test_without_a_handler_a_failure_stops_the_application(place: Path) -> None:
    error = ProcessingError("node 'parse' failed", node="parse")
    streams = application(place, Engines(started, fails(error)))
    states = listening(streams)
    streams.start()
    for _ in range(2):
        with pytest.raises(ProcessingError) as caught:
            streams.wait(timedelta(seconds=SOON))
        assert caught.value is error
    assert states.seen == [REBALANCING, RUNNING, PENDING_ERROR, ERROR]
    assert streams.close()
    assert streams.state is ERROR
    assert streams.metrics()["failures-total"] == 1


@pytest.mark.parametrize("answer", [CLIENT, APPLICATION])
def test_handler_that_answers_shutdown(place: Path, answer: StreamThreadExceptionResponse) -> None:
    error = StreamsError("boom")
    streams = application(place, Engines(fails(error)))
    states = listening(streams)
    asked = asking(streams, answer)
    streams.start()
    with pytest.raises(StreamsError, match="boom"):
        streams.wait(timedelta(seconds=SOON))
    assert asked == [error]
    assert states.seen == [REBALANCING, PENDING_ERROR, ERROR]


def test_handler_that_answers_replace_thread(place: Path) -> None:
    engines = Engines(started, batch(1), fails(), started, batch(2), END)
    streams = application(place, engines)
    states = listening(streams)
    streams.set_uncaught_exception_handler(lambda error: REPLACE)
    streams.pause()
    streams.start(until_end=True)
    assert streams.wait(timedelta(seconds=SOON))
    assert states.seen == [REBALANCING, RUNNING, REBALANCING, RUNNING, PENDING_SHUTDOWN, NOT_RUNNING]
    assert engines.one.runs == [True, True]
    assert engines.one.paused == [True]
    assert streams.is_paused
    assert streams.metrics()["failures-total"] == 1


def test_close_interrupts_the_pause_before_the_next_attempt(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    waiting = threading.Event()

    def for_ever(self: Backoff) -> float:
        waiting.set()
        return 1e6

    monkeypatch.setattr(Backoff, "next", for_ever)
    engines = Engines(fails())
    streams = application(place, engines)
    streams.set_uncaught_exception_handler(lambda error: REPLACE)
    streams.start()
    assert waiting.wait(SOON)
    assert streams.close(timedelta(seconds=SOON))
    assert streams.state is NOT_RUNNING
    assert streams.wait()
    assert len(engines.one.runs) == 1


def test_pauses_grow_with_failures_in_a_row_and_begin_anew_after_a_batch(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[str] = []

    def at_once(self: Backoff) -> float:
        calls.append("next")
        return 0.0

    monkeypatch.setattr(Backoff, "next", at_once)
    monkeypatch.setattr(Backoff, "reset", lambda self: calls.append("reset"))
    streams = application(place, Engines(fails(), fails(), started, batch(1), fails(), END))
    streams.set_uncaught_exception_handler(lambda error: REPLACE)
    streams.start(until_end=True)
    assert streams.wait(timedelta(seconds=SOON))
    assert calls == ["next", "next", "reset", "next"]
    assert max(Backoff().next() for _ in range(100)) <= LONGEST


def test_handler_that_fails_stops_the_application_and_both_errors_are_told(place: Path) -> None:
    def broken(error: Exception) -> StreamThreadExceptionResponse:
        message = "in the handler"
        raise KeyError(message)

    error = StreamsError("boom")
    streams = application(place, Engines(fails(error)))
    states = listening(streams)
    streams.set_uncaught_exception_handler(broken)
    streams.start()
    with pytest.raises(UncaughtHandlerError, match=r"broken .* failed with KeyError.*in the handler.*boom") as caught:
        streams.wait(timedelta(seconds=SOON))
    assert isinstance(caught.value.__cause__, KeyError)
    assert caught.value.__cause__.__context__ is error
    assert states.seen == [REBALANCING, PENDING_ERROR, ERROR]


def test_handler_that_answers_something_else(place: Path) -> None:
    streams = application(place, Engines(fails()))
    streams.set_uncaught_exception_handler(lambda error: None)  # type: ignore[arg-type, return-value]
    streams.start()
    with pytest.raises(UncaughtHandlerError, match="must return a StreamThreadExceptionResponse; found None"):
        streams.wait(timedelta(seconds=SOON))


def test_handler_may_close(place: Path) -> None:
    def close(error: Exception) -> StreamThreadExceptionResponse:
        streams.close()
        return REPLACE

    streams = application(place, Engines(fails()))
    states = listening(streams)
    streams.set_uncaught_exception_handler(close)
    streams.start()
    assert streams.wait(timedelta(seconds=SOON))
    assert states.seen == [REBALANCING, PENDING_SHUTDOWN, NOT_RUNNING]


def test_failure_after_close_is_told_but_the_state_is_that_of_a_close(place: Path) -> None:
    ready, go_on = threading.Event(), threading.Event()

    def late(listener: EngineListener) -> None:
        ready.set()
        assert go_on.wait(SOON)
        message = "the last commit failed"
        raise StreamsError(message)

    streams = application(place, Engines(late))
    asked = asking(streams, REPLACE)
    streams.start()
    assert ready.wait(SOON)
    assert not streams.close(timedelta(0))
    go_on.set()
    with pytest.raises(StreamsError, match="the last commit failed"):
        streams.wait(timedelta(seconds=SOON))
    assert streams.state is NOT_RUNNING
    assert asked == []


def test_what_is_not_an_exception_is_fatal_and_no_handler_is_asked(place: Path) -> None:
    streams = application(place, Engines(fails(SystemExit(3))))
    asked = asking(streams, REPLACE)
    streams.start()
    with pytest.raises(SystemExit):
        streams.wait(timedelta(seconds=SOON))
    assert streams.state is ERROR
    assert asked == []


def test_engine_that_stops_by_itself_has_failed(place: Path) -> None:
    streams = application(place, Engines(started, END))
    streams.start()
    with pytest.raises(StreamsError, match="the engine has stopped, and nobody has asked it to"):
        streams.wait(timedelta(seconds=SOON))
    assert streams.state is ERROR


def test_context_raises_the_failure(place: Path) -> None:
    streams = application(place, Engines(fails()))
    states = listening(streams)
    with pytest.raises(StreamsError, match="boom"), streams:
        states.until(ERROR)


def test_context_lets_an_error_of_its_own_pass(place: Path) -> None:
    streams = application(place, Engines(fails()))
    states = listening(streams)

    def use() -> None:
        with streams:
            states.until(ERROR)
            message = "mine"
            raise LookupError(message)

    with pytest.raises(LookupError, match="mine"):
        use()


def test_after_a_failure_the_next_instance_can_start(place: Path) -> None:
    streams = application(place, Engines(fails()))
    streams.start()
    with pytest.raises(StreamsError):
        streams.wait(timedelta(seconds=SOON))
    with application(place, Engines()):
        """The directory is free again."""


def test_thread_that_cannot_be_started(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(self: threading.Thread) -> None:
        message = "can't start new thread"
        raise RuntimeError(message)

    streams = application(place, Engines())
    with monkeypatch.context() as patched:
        patched.setattr(threading.Thread, "start", refuse)
        with pytest.raises(RuntimeError, match="can't start new thread"):
            streams.start()
    assert streams.state is ERROR
    with application(place, Engines()):
        """The directory is free again."""

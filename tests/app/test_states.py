"""The life of an application: its states, in Kafka's order, and who is told of them."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator
from datetime import timedelta
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from headrace.app import Streams, StreamsState
from headrace.app.directories import open_log
from headrace.batches.batch_engine import EngineListener
from headrace.errors import ConfigError, IllegalStateError, StreamsError
from tests.app.kit import END, SOON, Engines, FakeEngine, States, application, batch, config, counting, fails, started

CREATED, REBALANCING, RUNNING = StreamsState.CREATED, StreamsState.REBALANCING, StreamsState.RUNNING
PENDING_SHUTDOWN, NOT_RUNNING = StreamsState.PENDING_SHUTDOWN, StreamsState.NOT_RUNNING
PENDING_ERROR, ERROR = StreamsState.PENDING_ERROR, StreamsState.ERROR

ALLOWED = {
    (CREATED, REBALANCING),
    (CREATED, PENDING_SHUTDOWN),
    (REBALANCING, RUNNING),
    (REBALANCING, PENDING_SHUTDOWN),
    (REBALANCING, PENDING_ERROR),
    (RUNNING, REBALANCING),
    (RUNNING, RUNNING),
    (RUNNING, PENDING_SHUTDOWN),
    (RUNNING, PENDING_ERROR),
    (PENDING_SHUTDOWN, NOT_RUNNING),
    (PENDING_ERROR, ERROR),
}


@pytest.fixture
def engines() -> Engines:
    return Engines()


@pytest.fixture
def states() -> States:
    return States()


@pytest.fixture
def streams(place: Path, engines: Engines, states: States) -> Iterator[Streams]:
    made = application(place, engines)
    made.set_state_listener(states)
    yield made
    made.close(timedelta(seconds=SOON))


@pytest.mark.parametrize(("old", "new"), list(product(StreamsState, StreamsState)))
def test_states_follow_each_other_as_in_kafka(old: StreamsState, new: StreamsState) -> None:
    assert old.can_become(new) == ((old, new) in ALLOWED)


def test_questions_about_a_state() -> None:
    assert [state for state in StreamsState if state.has_not_started] == [CREATED]
    assert [state for state in StreamsState if state.is_running_or_rebalancing] == [REBALANCING, RUNNING]
    assert [state for state in StreamsState if state.is_shutting_down] == [PENDING_SHUTDOWN, PENDING_ERROR]
    assert [state for state in StreamsState if state.has_completed_shutdown] == [NOT_RUNNING, ERROR]


def test_a_life_from_start_to_close(streams: Streams, engines: Engines, states: States) -> None:
    assert streams.state is CREATED
    assert streams.start() is streams
    assert streams.state is REBALANCING
    engines.one.do(started)
    states.until(RUNNING)
    assert not streams.wait(timedelta(0))
    assert streams.close()
    assert streams.state is NOT_RUNNING
    assert states.seen == [REBALANCING, RUNNING, PENDING_SHUTDOWN, NOT_RUNNING]
    assert streams.wait()
    assert streams.close()


def test_engine_runs_in_a_thread_that_is_named_after_the_application_and_keeps_the_process(
    streams: Streams, engines: Engines, states: States
) -> None:
    found: list[threading.Thread] = []
    streams.start()
    engines.one.do(lambda listener: found.append(threading.current_thread()), started)
    states.until(RUNNING)
    assert found[0].name == "headrace-app"
    assert not found[0].daemon


def test_close_without_start(streams: Streams, engines: Engines, states: States) -> None:
    assert streams.close()
    assert states.seen == [PENDING_SHUTDOWN, NOT_RUNNING]
    assert engines.made == []


def test_close_before_the_engine_has_begun(place: Path, states: States) -> None:
    engines = Engines()
    made = application(place, engines)

    def close_at_once(new: StreamsState, old: StreamsState) -> None:
        states(new, old)
        if new is REBALANCING:
            assert not made.close()

    made.set_state_listener(close_at_once)
    made.start()
    assert made.wait(timedelta(seconds=SOON))
    assert states.seen == [REBALANCING, PENDING_SHUTDOWN, NOT_RUNNING]
    assert engines.one.runs == []


def test_start_twice(streams: Streams) -> None:
    streams.start()
    with pytest.raises(IllegalStateError, match=r"'app': start\(\) is not possible in state REBALANCING: .*once"):
        streams.start()


def test_start_after_close(streams: Streams) -> None:
    streams.start().close()
    with pytest.raises(IllegalStateError, match=r"in state NOT_RUNNING: .*make a new Streams"):
        streams.start()


def test_start_by_two_threads(place: Path) -> None:
    inside, go_on, engines = threading.Event(), threading.Event(), Engines()

    def slow(*args: Any, **options: Any) -> FakeEngine:
        inside.set()
        assert go_on.wait(SOON)
        return engines(*args, **options)

    made = Streams(counting(), config(place), engine=slow)
    first = threading.Thread(target=made.start)
    first.start()
    assert inside.wait(SOON)
    with pytest.raises(IllegalStateError, match="under way in another thread"):
        made.start()
    go_on.set()
    first.join()
    assert made.close()


def test_close_while_start_is_under_way(place: Path) -> None:
    engines = Engines()

    def closing(*args: Any, **options: Any) -> FakeEngine:
        closer = threading.Thread(target=made.close)
        closer.start()
        closer.join()
        return engines(*args, **options)

    made = Streams(counting(), config(place), engine=closing)
    with pytest.raises(IllegalStateError, match="was closed while it started"):
        made.start()
    assert made.state is NOT_RUNNING
    with application(place, Engines()):
        """The directory is free again."""


def test_wait_needs_a_start(streams: Streams) -> None:
    with pytest.raises(IllegalStateError, match=r"wait\(\) is not possible in state CREATED: call start\(\) first"):
        streams.wait()


@pytest.mark.parametrize("timeout", [timedelta(seconds=-1), 5])
def test_timeouts_are_durations(streams: Streams, timeout: object) -> None:
    with pytest.raises(ConfigError, match=r"close\(\): the timeout is a timedelta that is not negative"):
        streams.close(timeout)  # type: ignore[arg-type]


def test_close_gives_up_after_its_timeout_and_can_be_called_again(streams: Streams, engines: Engines) -> None:
    go_on = threading.Event()
    streams.start()
    engines.one.do(lambda listener: go_on.wait(SOON))
    assert not streams.close(timedelta(0))
    assert streams.state is PENDING_SHUTDOWN
    go_on.set()
    assert streams.close(timedelta(seconds=SOON))


def test_listener_that_closes_does_not_wait_for_itself(place: Path, states: States) -> None:
    answers: list[bool] = []

    def close_when_running(new: StreamsState, old: StreamsState) -> None:
        states(new, old)
        if new is RUNNING:
            answers.append(made.close())
            # The change that it has made is told after it returns.
            assert states.seen[-1] is RUNNING

    made = application(place, Engines(started))
    made.set_state_listener(close_when_running)
    made.start()
    assert made.wait(timedelta(seconds=SOON))
    assert answers == [False]
    assert states.seen == [REBALANCING, RUNNING, PENDING_SHUTDOWN, NOT_RUNNING]


def test_listener_in_another_thread_of_the_engine_may_close(place: Path) -> None:
    """Spark calls back in threads of its own."""

    def call_back(listener: EngineListener) -> None:
        thread = threading.Thread(target=listener.on_batch, args=(1,))
        thread.start()
        thread.join()

    streams = application(place, Engines(call_back))
    streams.add_batch_listener(lambda report: streams.close())
    with streams:
        assert streams.wait(timedelta(seconds=SOON))


def test_listener_cannot_wait_for_the_end(place: Path, caplog: pytest.LogCaptureFixture) -> None:
    streams = application(place, Engines(started, END))
    streams.set_state_listener(lambda new, old: streams.wait())
    streams.start(until_end=True)
    assert streams.wait(timedelta(seconds=SOON))
    assert "a listener cannot wait for the end" in caplog.text


def test_next_instance_can_be_started_by_the_listener_of_the_last_state(place: Path) -> None:
    second = application(place, Engines(started, END))
    first = application(place, Engines(END))
    first.set_state_listener(lambda new, old: second.start(until_end=True) if new is NOT_RUNNING else None)
    first.start(until_end=True)
    assert first.wait(timedelta(seconds=SOON))
    assert second.wait(timedelta(seconds=SOON))


def test_failing_listeners_are_logged_and_do_no_harm(place: Path, caplog: pytest.LogCaptureFixture) -> None:
    def broken(*arguments: object) -> None:
        message = "broken"
        raise ValueError(message)

    seen: list[object] = []
    streams = application(place, Engines(started, batch(1), END))
    streams.set_state_listener(broken)
    streams.add_batch_listener(broken)
    streams.add_batch_listener(seen.append)
    with caplog.at_level(logging.ERROR):
        streams.start(until_end=True)
        assert streams.wait(timedelta(seconds=SOON))
    assert seen == [1]
    assert "the state listener" in caplog.text
    assert "a batch listener" in caplog.text


def test_listener_is_told_by_one_thread_at_a_time_in_order(place: Path) -> None:
    """A change in the engine's thread while another one tells is told by that other one."""
    telling, go_on, seen = threading.Event(), threading.Event(), list[StreamsState]()

    def slow(new: StreamsState, old: StreamsState) -> None:
        if new is PENDING_SHUTDOWN:
            telling.set()
            assert go_on.wait(SOON)
        seen.append(new)

    ready = threading.Event()
    engines = Engines(started, lambda listener: ready.set())
    streams = application(place, engines)
    streams.set_state_listener(slow)
    streams.start()
    assert ready.wait(SOON)
    closer = threading.Thread(target=streams.close)
    closer.start()
    assert telling.wait(SOON)
    engines.one.do(fails())
    assert not streams.wait(timedelta(milliseconds=1))
    go_on.set()
    closer.join(SOON)
    with pytest.raises(StreamsError, match="boom"):
        streams.wait(timedelta(seconds=SOON))
    assert seen == [REBALANCING, RUNNING, PENDING_SHUTDOWN, NOT_RUNNING]


@pytest.mark.parametrize("call", ["set_state_listener", "set_uncaught_exception_handler"])
def test_listeners_are_set_before_the_start(streams: Streams, call: str) -> None:
    streams.start()
    with pytest.raises(IllegalStateError, match=rf"{call}\(\) is not possible in state REBALANCING"):
        getattr(streams, call)(print)


@pytest.mark.parametrize(
    ("call", "wrong", "message"),
    [
        ("set_state_listener", lambda new: None, r"state listener must be a function \(new, old\); .* takes \(new\)"),
        ("set_uncaught_exception_handler", "stop", r"handler must be a function \(error\); found str 'stop'"),
        ("add_batch_listener", lambda: None, r"batch listener must be a function \(batch\); .* takes \(\)"),
    ],
)
def test_listeners_are_functions_of_the_right_shape(streams: Streams, call: str, wrong: object, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        getattr(streams, call)(wrong)


def test_until_end_ends_by_itself(streams: Streams, engines: Engines, states: States) -> None:
    streams.start(until_end=True)
    engines.one.do(started, END)
    assert streams.wait(timedelta(seconds=SOON))
    assert states.seen == [REBALANCING, RUNNING, PENDING_SHUTDOWN, NOT_RUNNING]
    assert engines.one.runs == [True]
    assert not engines.one.is_stopped


def test_context_starts_and_closes(streams: Streams, engines: Engines) -> None:
    with streams as entered:
        assert entered is streams
        assert streams.state is REBALANCING
    assert streams.state is NOT_RUNNING
    assert engines.one.is_stopped


def test_pause_before_and_during_the_run(streams: Streams, engines: Engines) -> None:
    streams.pause()
    assert streams.is_paused
    with streams:
        assert engines.one.paused == [True]
        streams.resume()
        assert not streams.is_paused
        streams.pause()
    assert engines.one.paused == [True, False, True]


def test_metrics_are_those_of_the_engine_and_of_the_application(streams: Streams, states: States) -> None:
    before = streams.metrics()
    assert before.summary == {
        "application-id": "app",
        "state": "CREATED",
        "is-paused": False,
        "started-ms": None,
        "failures-total": 0,
    }
    with streams:
        metrics = streams.metrics()
        assert metrics["batches"] == 7
        assert metrics["state"] == "REBALANCING"
        assert metrics["started-ms"] > 0


def test_a_given_log_stays_open(place: Path) -> None:
    log = open_log(config(place))
    streams = Streams(counting(), config(place), log=log, engine=Engines(END))
    streams.start(until_end=True)
    assert streams.wait(timedelta(seconds=SOON))
    assert "out" in log.topics()
    log.close()

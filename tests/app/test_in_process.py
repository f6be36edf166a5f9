"""The engine that runs in the application's process: what survives its end, and functions that never return."""

from __future__ import annotations

import threading
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest

from headrace import Consumed, EmbeddedLog, Produced, Streams, StreamsBuilder, StreamsConfig, StreamsError
from headrace.app.in_process import InProcessEngine
from headrace.serdes import StringSerde
from tests.app.kit import SOON


@pytest.fixture
def log(tmp_path: Path) -> EmbeddedLog:
    log = EmbeddedLog(tmp_path / "log", sync="none")
    for topic in ("in", "out"):
        log.create_topic(topic)
    return log


def application(log: EmbeddedLog, directory: Path, function: Callable[[str], str], **settings: object) -> Streams:
    config = StreamsConfig.of({"application_id": "app", "state_dir": str(directory), "log_sync": "none", **settings})
    builder = StreamsBuilder()
    strings = StringSerde()
    builder.stream("in", Consumed(strings, strings)).map_values(function).to("out", Produced(strings, strings))
    return Streams(builder.build(), config, log=log, engine=InProcessEngine)


def values(log: EmbeddedLog) -> list[bytes | None]:
    return [value for _, _, _, value, _ in log.read("out", 0, 0)]


class Gate:
    """A function that returns when it is told to; it hangs in a call, or in a loop."""

    def __init__(self, *, in_loop: bool) -> None:
        self.entered, self.opened, self.left = threading.Event(), threading.Event(), threading.Event()
        self._in_loop = in_loop

    def __call__(self, value: str) -> str:
        self.entered.set()
        try:
            if not self._in_loop:
                self.opened.wait()
            while not self.opened.is_set():
                pass
        finally:
            self.left.set()
        return value


@pytest.mark.parametrize("in_loop", [False, True], ids=["call", "loop"])
def test_batch_whose_function_hangs_is_left_behind_and_run_again(
    log: EmbeddedLog,
    tmp_path: Path,
    in_loop: bool,  # noqa: FBT001 - a parameter of the test
) -> None:
    gate = Gate(in_loop=in_loop)
    log.append("in", [(None, 0, b"k", b"v", ())])
    stuck = application(log, tmp_path, gate).start()
    assert gate.entered.wait(SOON)
    assert not stuck.close(timedelta(0))
    assert stuck.cancel(timedelta(seconds=SOON))
    if in_loop:
        # A loop is ended; a call is not.
        assert gate.left.wait(SOON)
    gate.opened.set()
    assert gate.left.wait(SOON)
    _wait_for_threads()
    assert values(log) == []
    application(log, tmp_path, str.upper).run(available_now=True)
    assert values(log) == [b"V"]


def _wait_for_threads() -> None:
    for thread in threading.enumerate():
        if thread.name.startswith("headrace-batches-"):
            thread.join(SOON)
            assert not thread.is_alive()


def test_batch_that_ends_in_time_is_committed(log: EmbeddedLog, tmp_path: Path) -> None:
    gate = Gate(in_loop=False)
    log.append("in", [(None, 0, b"k", b"v", ())])
    running = application(log, tmp_path, gate).start()
    assert gate.entered.wait(SOON)
    assert not running.close(timedelta(0))
    gate.opened.set()
    assert running.close(timedelta(seconds=SOON))
    assert running.cancel()
    assert values(log) == [b"v"]


def test_failure_of_a_function_is_raised(log: EmbeddedLog, tmp_path: Path) -> None:
    log.append("in", [(None, 0, b"k", b"v", ())])

    def fail(value: str) -> str:
        message = f"not {value}"
        raise RuntimeError(message)

    with pytest.raises(StreamsError, match="not v"):
        application(log, tmp_path, fail).run(available_now=True)
    assert values(log) == []


def test_reset_finds_a_checkpoint_that_is_elsewhere(log: EmbeddedLog, tmp_path: Path) -> None:
    log.append("in", [(None, 0, b"k", b"v", ())])
    elsewhere = {"checkpoint_dir": str(tmp_path / "elsewhere")}
    for count in (1, 2):
        streams = application(log, tmp_path, str.upper, **elsewhere)
        streams.run(available_now=True)
        streams.clean_up()
        assert values(log) == [b"V"] * count

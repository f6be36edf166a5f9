"""Functions that never return: their batch is left behind, and nothing of it is ever committed."""

from __future__ import annotations

import gc
import threading
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from headrace import (
    Consumed,
    EmbeddedLog,
    Materialized,
    Produced,
    Streams,
    StreamsBuilder,
    StreamsConfig,
    StreamsError,
)
from headrace.app.engine import local_engine
from headrace.batches import batch_engine
from headrace.batches.batch_engine import BatchEngine
from headrace.batches.batch_thread import CommitGuard
from headrace.batches.executor import LocalExecutor
from headrace.batches.loop import Loop, SingleLoop
from headrace.batches.reports import TaskReport
from headrace.serdes import StringSerde
from headrace.topics.embedded.journal import EmbeddedTaskJournal
from headrace.topics.journal import Receipt
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
    return Streams(builder.build(), config, log=log, engine=local_engine)


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
    application(log, tmp_path, str.upper).run(until_end=True)
    assert values(log) == [b"V"]


def _wait_for_threads() -> None:
    for thread in threading.enumerate():
        if thread.name.startswith("headrace-batches-"):
            thread.join(SOON)
            assert not thread.is_alive()


def counting(log: EmbeddedLog, directory: Path, function: Callable[[str], str]) -> Streams:
    """Keeps the last values of keys in stores; there is a task for each partition."""
    config = StreamsConfig.of({"application_id": "app", "state_dir": str(directory), "log_sync": "none"})
    strings = StringSerde()
    builder = StreamsBuilder()
    grouped = builder.stream("wide", Consumed(strings, strings)).group_by_key()
    stored = Materialized[str, str]("last", key_serde=strings, value_serde=strings)
    last = grouped.aggregate(str, lambda _key, value, _last: function(value), materialized=stored)
    last.to_stream().to("out", Produced(strings, strings))
    return Streams(builder.build(), config, log=log, engine=local_engine)


def test_application_with_state_starts_again_after_a_loop_was_cancelled(log: EmbeddedLog, tmp_path: Path) -> None:
    log.create_topic("wide", partitions=2)
    for partition in (0, 1):
        log.append("wide", [(partition, 0, b"k", str(partition).encode(), ())])
    gate = Gate(in_loop=True)
    stuck = counting(log, tmp_path, lambda value: gate(value) if value == "1" else value).start()
    assert gate.entered.wait(SOON)
    assert stuck.cancel(timedelta(seconds=SOON))
    counting(log, tmp_path, str).run(until_end=True)
    assert values(log) == [b"0", b"1"]


def test_application_does_not_start_while_a_function_that_was_left_behind_runs(
    log: EmbeddedLog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(batch_engine, "_PATIENCE_S", 0)
    gate = Gate(in_loop=False)
    log.append("in", [(None, 0, b"k", b"v", ())])
    stuck = application(log, tmp_path, gate).start()
    assert gate.entered.wait(SOON)
    assert stuck.cancel(timedelta(seconds=SOON))
    with pytest.raises(StreamsError, match=r"still runs in this process.*start again when the function has returned"):
        application(log, tmp_path, str.upper).run(until_end=True)
    gate.opened.set()
    _wait_for_threads()
    application(log, tmp_path, str.upper).run(until_end=True)
    assert values(log) == [b"V"]


def test_collector_goes_on_while_a_function_that_was_left_behind_runs(log: EmbeddedLog, tmp_path: Path) -> None:
    gate = Gate(in_loop=False)
    log.append("in", [(None, 0, b"k", b"v", ())])
    stuck = application(log, tmp_path, gate).start()
    assert gate.entered.wait(SOON)
    assert not gc.isenabled()
    assert stuck.cancel(timedelta(seconds=SOON))
    assert gc.isenabled()
    gate.opened.set()
    _wait_for_threads()
    assert gc.isenabled()


class CommitsLog(EmbeddedLog):
    """Notes which tasks have committed their part, which is final on Kafka."""

    finished: list[str]

    def task_journal(self, application: str, incarnation: int, task: str, *rest: Any) -> EmbeddedTaskJournal:
        journal = super().task_journal(application, incarnation, task, *rest)
        commit = journal.commit

        def noted(*args: Any) -> Receipt:
            self.finished.append(task)
            return commit(*args)

        journal.commit = noted  # type: ignore[method-assign, assignment]
        return journal


def test_function_that_catches_the_cancellation_does_not_let_tasks_commit(log: EmbeddedLog, tmp_path: Path) -> None:
    log.create_topic("wide", partitions=3)
    commits_log = CommitsLog(tmp_path / "log", sync="none")
    commits_log.finished = []
    for partition in range(3):
        commits_log.append("wide", [(partition, 0, b"k", str(partition).encode(), ())])
    gate, seen = Gate(in_loop=True), list[str]()

    def stubborn(value: str) -> str:
        seen.append(value)
        try:
            return gate(value) if value == "1" else value
        except BaseException:
            return value

    stuck = counting(commits_log, tmp_path, stubborn).start()
    assert gate.entered.wait(SOON)
    assert stuck.cancel(timedelta(seconds=SOON))
    _wait_for_threads()
    assert (seen, commits_log.finished) == (["0", "1"], ["0_0"])


def test_listener_that_cancels_does_not_wait_for_itself(log: EmbeddedLog, tmp_path: Path) -> None:
    log.append("in", [(None, 0, b"k", b"v", ())])
    streams = application(log, tmp_path, str.upper)
    streams.add_batch_listener(lambda _batch: streams.cancel())
    streams.start()
    assert streams.wait(timedelta(seconds=SOON))
    assert values(log) == [b"V"]


def test_thread_that_has_done_its_work_is_not_interrupted() -> None:
    commits, going, failed = CommitGuard(), threading.Event(), threading.Event()

    def spin() -> None:
        try:
            while not going.is_set():
                pass
        except BaseException:
            failed.set()

    thread = threading.Thread(target=spin)
    thread.start()
    commits.close()
    assert not commits.abandon(thread)
    going.set()
    thread.join(SOON)
    assert (commits.is_over, failed.is_set()) == (False, False)


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
        application(log, tmp_path, fail).run(until_end=True)
    assert values(log) == []


class Listener:
    def on_started(self) -> None: ...
    def on_restores(self, tasks: Sequence[TaskReport]) -> None:
        """Nobody looks at it."""

    def on_moves(self, tasks: Collection[str]) -> None:
        """Nobody looks at it."""

    def on_batch(self, batch: object) -> None: ...


def test_engine_that_is_cancelled_while_its_executor_starts_ends(log: EmbeddedLog, tmp_path: Path) -> None:
    opening, opened = threading.Event(), threading.Event()

    @contextmanager
    def slowly(*_: object) -> Iterator[Loop]:
        opening.set()
        opened.wait()
        yield SingleLoop(LocalExecutor(), log)

    builder = StreamsBuilder()
    builder.stream("in").to("out")
    config = StreamsConfig.of({"application_id": "app", "state_dir": str(tmp_path)})
    engine = BatchEngine(
        builder.build(), config, log, listener=Listener(), directory=tmp_path / "app", open_loop=slowly
    )
    log.append("in", [(None, 0, b"k", b"1", ())])
    thread = threading.Thread(target=engine.run)
    thread.start()
    assert opening.wait(SOON)
    engine.cancel()
    thread.join(SOON)
    assert not thread.is_alive()
    # What was being started is given back as soon as it is there, and nothing was run.
    opened.set()
    _wait_for_threads()
    assert values(log) == []

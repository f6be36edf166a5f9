"""Inputs that are deleted, or deleted and made anew: before a start, and while the application runs; on both logs."""

from __future__ import annotations

import threading
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from headrace import Serdes, Streams, StreamsError
from headrace.app.engine import local_engine
from headrace.batches import planner
from headrace.errors import IncompatibleTopologyError, MissingSourceTopicError
from headrace.topics.journal import DurableLog
from headrace.topology.topology import Topology
from tests.app.kit import SOON, config, counting

OTHERS = ("ins", "other-counts-changelog")
"""What another application has, with names that look like those of this one."""


class Held:
    """An application on a log that stops after a batch until it is let go on, so that a test can do something then."""

    def __init__(self, log: DurableLog, directory: Path, topology: Topology | None = None) -> None:
        self.streams = Streams(topology or counting(), config(directory), log=log, engine=local_engine)
        self._reached, self._go_on = threading.Event(), threading.Event()
        self.streams.add_batch_listener(self._hold)

    def _hold(self, batch: Any) -> None:
        self._reached.set()
        assert self._go_on.wait(SOON)

    def meanwhile(self, act: Callable[[], None]) -> None:
        """Starts it, does something when nothing of it runs, and returns when it has ended."""
        self.streams.start()
        try:
            assert self._reached.wait(SOON)
            act()
        finally:
            self._go_on.set()
        self.streams.wait(timedelta(seconds=SOON))


def make(log: DurableLog, *topics: str) -> None:
    for topic in topics:
        log.create_topic(topic, partitions=2)


def write(log: DurableLog, *values: bytes) -> None:
    log.append("in", [(0, 1, b"k", value, ()) for value in values])


def counts(log: DurableLog) -> list[int | None]:
    return [Serdes.long().deserialize(value) for _, _, _, value, _ in log.read("out", 0, 0)]


def exchange(log: DurableLog) -> None:
    """Deletes the input and makes it anew, with more records than the application has read."""
    log.delete_topic("in")
    make(log, "in")
    write(log, *[b"2"] * 5)


def run(log: DurableLog, directory: Path, topology: Topology | None = None) -> None:
    Streams(topology or counting(), config(directory), log=log, engine=local_engine).run(until_end=True)


def check_no_suggestion(error: StreamsError) -> None:
    assert "did you mean" not in str(error)
    assert not any(f"'{topic}'" in str(error) for topic in OTHERS)
    # Nor in what is printed with it.
    assert error.__cause__ is None
    assert error.__suppress_context__ or error.__context__ is None


def test_input_that_is_deleted_while_it_is_read_is_named_and_no_other_suggested(
    log: DurableLog, tmp_path: Path
) -> None:
    make(log, "in", *OTHERS)
    with pytest.raises(
        MissingSourceTopicError, match=r"'in', which it reads, was deleted.*`headrace reset app`"
    ) as got:
        Held(log, tmp_path).meanwhile(lambda: log.delete_topic("in"))
    check_no_suggestion(got.value)


def test_input_that_is_deleted_while_the_application_stands_still(log: DurableLog, tmp_path: Path) -> None:
    make(log, "in", *OTHERS)
    write(log, b"1")
    run(log, tmp_path)
    log.delete_topic("in")
    with pytest.raises(
        MissingSourceTopicError, match=r"'in', which it reads, was deleted.*`headrace reset app`"
    ) as got:
        run(log, tmp_path)
    check_no_suggestion(got.value)


def test_input_that_never_was_there_is_taken_for_a_slip(log: DurableLog, tmp_path: Path) -> None:
    make(log, *OTHERS)
    with pytest.raises(MissingSourceTopicError, match=r"'in', which .* reads, does not; did you mean 'ins'"):
        run(log, tmp_path)


def test_input_that_is_deleted_and_made_anew_while_it_is_read(
    log: DurableLog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(planner, "_LOOK_AROUND", 0.0)
    make(log, "in", "out")
    write(log, *[b"1"] * 3)
    held = Held(log, tmp_path)
    with pytest.raises(IncompatibleTopologyError, match=r"'in' was deleted and made anew .*`headrace reset app`"):
        held.meanwhile(lambda: exchange(log))
    assert counts(log) == [3], "two of the new ones lie behind its position"


def test_input_that_was_deleted_and_made_anew_while_the_application_stood_still(
    log: DurableLog, tmp_path: Path
) -> None:
    make(log, "in", "out")
    write(log, *[b"1"] * 3)
    run(log, tmp_path)
    exchange(log)
    with pytest.raises(IncompatibleTopologyError, match=r"'in' was deleted and made anew .*`headrace reset app`"):
        run(log, tmp_path)
    assert counts(log) == [3]
    streams = Streams(counting(), config(tmp_path), log=log, engine=local_engine)
    streams.clean_up()
    streams.run(until_end=True)
    assert counts(log)[1:] == [5]

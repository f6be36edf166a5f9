"""The restore listener: a store begins, comes on and is done, each told once and with the right counts."""

from __future__ import annotations

import shutil
import threading
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import pytest

from headrace import EmbeddedLog, Materialized, Streams, StreamsBuilder
from headrace.app.engine import local_engine
from headrace.batches import restore, standby
from headrace.batches.reports import StoreRestore, TaskReport
from headrace.batches.restore_events import RestoreEvents
from headrace.errors import ConfigError
from headrace.metrics import MetricName
from headrace.topics.journal import Receipt
from tests.app.kit import SOON, config

TOPIC = "app-counts-changelog"
KEYS = 25
PAGE = 10


class Listener:
    """Remembers what it is told, and lets others wait for the first batch of a partition."""

    def __init__(self) -> None:
        self.told: list[tuple[Any, ...]] = []
        self.has_batch = {partition: threading.Event() for partition in range(2)}

    def on_restore_start(self, topic: str, partition: int, store: str, start: int, end: int) -> None:
        self.told.append(("start", topic, partition, store, start, end))

    def on_batch_restored(self, topic: str, partition: int, store: str, offset: int, count: int) -> None:
        self.told.append(("batch", topic, partition, store, offset, count))
        self.has_batch[partition].set()

    def on_restore_end(self, topic: str, partition: int, store: str, total: int) -> None:
        self.told.append(("end", topic, partition, store, total))

    def of(self, partition: int) -> list[tuple[Any, ...]]:
        """Returns what was told of a partition, without the names."""
        assert {(each[1], each[3]) for each in self.told} == {(TOPIC, "counts")}
        return [(each[0], *each[4:]) for each in self.told if each[2] == partition]


@pytest.fixture
def log(tmp_path: Path) -> Iterator[EmbeddedLog]:
    """A log in whose changelog each of two partitions has 25 rows, and no working copy of them on the disk."""
    with EmbeddedLog(tmp_path / "log", sync="none") as log:
        log.create_topic("in", partitions=2)
        log.append("in", [(n % 2, n, b"k%d" % n, b"1", ()) for n in range(2 * KEYS)])
        application(log, tmp_path).run(until_end=True)
        assert log.end_offsets([(TOPIC, 0), (TOPIC, 1)]) == {(TOPIC, 0): KEYS, (TOPIC, 1): KEYS}
        shutil.rmtree(tmp_path / "app")
        yield log


def application(log: EmbeddedLog, directory: Path, **settings: Any) -> Streams:
    builder = StreamsBuilder()
    builder.stream("in").group_by_key().count(materialized=Materialized("counts"))
    return Streams(builder.build(), config(directory, **settings), log=log, engine=local_engine)


def restored_records(streams: Streams) -> list[float]:
    """Returns what the metric says, task by task."""
    recorded = streams.metrics().items()
    return [value for name, value in recorded if isinstance(name, MetricName) and name.name == "restore-total"]


def test_restore_of_tasks_that_wait_for_it_is_told_page_by_page(
    log: EmbeddedLog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    listener, follow = Listener(), restore.follow_changelogs

    def follow_slowly(layout: Any, place: Any, *others: Any) -> Iterator[StoreRestore]:
        """Waits behind the first page until it was told."""
        for number, each in enumerate(follow(layout, place, *others)):
            if number == 1:
                assert listener.has_batch[place.id.partition].wait(SOON)
            yield each

    monkeypatch.setattr(standby, "follow_changelogs", follow_slowly)
    monkeypatch.setattr(restore, "_AT_ONCE", PAGE)
    streams = application(log, tmp_path, acceptable_recovery_lag=0)
    streams.set_global_state_restore_listener(listener)
    streams.run(until_end=True)
    for partition in range(2):
        (first, batch, *more, last) = listener.of(partition)
        assert (first, batch, last) == (("start", 0, KEYS), ("batch", PAGE, PAGE), ("end", KEYS))
        # How many pages are told at once is a matter of luck, but none is left out, and none told twice.
        assert all(kind == "batch" for kind, *_ in more)
        assert sum(count for _, _, count in more) == KEYS - PAGE
        assert more[-1][1] == KEYS
    assert restored_records(streams) == [KEYS, KEYS]


def test_restore_that_the_task_itself_ends_is_told_as_one(
    log: EmbeddedLog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    follow = restore.follow_changelogs

    def follow_two_pages(*arguments: Any) -> Iterator[StoreRestore]:
        return islice(follow(*arguments), 2)

    monkeypatch.setattr(standby, "follow_changelogs", follow_two_pages)
    # It does not look again.
    monkeypatch.setattr(standby, "_LOOK_S", 10 * SOON)
    monkeypatch.setattr(restore, "_AT_ONCE", PAGE)
    listener = Listener()
    streams = application(log, tmp_path, acceptable_recovery_lag=KEYS - 2 * PAGE)
    streams.set_global_state_restore_listener(listener)
    streams.run(until_end=True)
    for partition in range(2):
        (first, *batches, last) = listener.of(partition)
        assert (first, last) == (("start", 0, KEYS), ("end", KEYS))
        assert batches[-1] == ("batch", KEYS, KEYS - 2 * PAGE)
        assert sum(count for _, _, count in batches) == KEYS
    assert restored_records(streams) == [KEYS, KEYS]


def test_restore_of_tasks_that_take_part_at_once_is_told_as_a_whole(log: EmbeddedLog, tmp_path: Path) -> None:
    listener = Listener()
    streams = application(log, tmp_path)
    streams.set_global_state_restore_listener(listener)
    streams.run(until_end=True)
    for partition in range(2):
        assert listener.of(partition) == [("start", 0, KEYS), ("batch", KEYS, KEYS), ("end", KEYS)]


def test_stores_that_lack_nothing_are_not_told_of(log: EmbeddedLog, tmp_path: Path) -> None:
    application(log, tmp_path).run(until_end=True)
    listener = Listener()
    streams = application(log, tmp_path)
    streams.set_global_state_restore_listener(listener)
    streams.run(until_end=True)
    assert listener.told == []


def test_listener_that_fails_is_told_of_the_rest(log: EmbeddedLog, tmp_path: Path) -> None:
    class Failing(Listener):
        def on_restore_start(self, *event: Any) -> None:
            raise KeyError(event[1])

    listener = Failing()
    streams = application(log, tmp_path)
    streams.set_global_state_restore_listener(listener)
    streams.run(until_end=True)
    for partition in range(2):
        assert listener.of(partition) == [("batch", KEYS, KEYS), ("end", KEYS)]


def test_listener_without_a_method_is_refused(log: EmbeddedLog, tmp_path: Path) -> None:
    streams = application(log, tmp_path)
    wrong: Any = lambda *event: None  # noqa: E731
    with pytest.raises(ConfigError, match=r"on_restore_start of the restore listener must be a function \(topic"):
        streams.set_global_state_restore_listener(wrong)


def receipt(task: str) -> Receipt:
    return Receipt(task=task, batch_id=1, incarnation=1, stamp="stamp", positions={})


def event(kind: str, partition: int, *numbers: int) -> tuple[str, tuple[Any, ...]]:
    return kind, (TOPIC, partition, "counts", *numbers)


def test_restore_ends_when_the_task_takes_part() -> None:
    """What it still lacked was brought by somebody else, such as another process with a better copy."""
    events = RestoreEvents()
    begun = [TaskReport(f"0_{n}", lag=15, restores=[StoreRestore("counts", TOPIC, n, 0, 10, 25, 10)]) for n in range(2)]
    assert [tuple(each) for each in events.of(begun)] == [
        event("on_restore_start", 0, 0, 25),
        event("on_batch_restored", 0, 10, 10),
        event("on_restore_start", 1, 0, 25),
        event("on_batch_restored", 1, 10, 10),
    ]
    # A task of the same partition that is no task of this store changes nothing.
    assert events.of([TaskReport("1_0", receipt("1_0"))]) == []
    assert [tuple(each) for each in events.of([TaskReport("0_0", receipt("0_0"))])] == [event("on_restore_end", 0, 10)]
    assert events.of([TaskReport("0_0", receipt("0_0"))]) == []


def test_restore_that_begins_anew_elsewhere_or_is_given_up_is_suspended() -> None:
    events = RestoreEvents()
    events.of([TaskReport("0_0", lag=15, restores=[StoreRestore("counts", TOPIC, 0, 0, 10, 25, 10)])])
    assert events.waiting == {"0_0"}
    anew = [TaskReport("0_0", lag=20, restores=[StoreRestore("counts", TOPIC, 0, 0, 5, 25, 5)])]
    assert [tuple(each) for each in events.of(anew)] == [
        event("on_restore_suspended", 0, 10),
        event("on_restore_start", 0, 0, 25),
        event("on_batch_restored", 0, 5, 5),
    ]
    assert [tuple(each) for each in events.suspend()] == [event("on_restore_suspended", 0, 5)]
    assert events.suspend() == []
    assert events.waiting == set()


def test_restore_that_has_ended_is_not_told_again_by_the_task() -> None:
    events, whole = RestoreEvents(), StoreRestore("counts", TOPIC, 0, 0, 25, 25, 25)
    assert [tuple(each) for each in events.of([TaskReport("0_0", lag=0, restores=[whole])])] == [
        event("on_restore_start", 0, 0, 25),
        event("on_batch_restored", 0, 25, 25),
        event("on_restore_end", 0, 25),
    ]
    assert events.of([TaskReport("0_0", receipt("0_0"), restores=[whole])]) == []
    # The next one is another one.
    again = events.of([TaskReport("0_0", receipt("0_0"), restores=[whole])])
    assert [each.method for each in again] == ["on_restore_start", "on_batch_restored", "on_restore_end"]

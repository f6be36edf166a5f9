"""Snapshots: a copy of an application that runs, from which another one goes on exactly."""

from __future__ import annotations

import json
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from headrace import JoinWindows, Materialized, Streams, StreamsBuilder, TimeWindows
from headrace.app.engine import local_engine
from headrace.batches.change_plan import ChangePlan
from headrace.change.snapshot import (
    delete_snapshot,
    find_snapshot,
    list_snapshots,
    take_snapshot,
)
from headrace.change.snapshot_restore import restore_snapshot
from headrace.change.stopped_application import stopped_application
from headrace.errors import BatchError, ChangeRefusedError, IncompatibleTopologyError
from headrace.topics.journal import DurableLog
from tests.change.crashing import Countdown, Crash, crashing_log
from tests.change.kit import Build, Program, Row, read_by_key, write

KEYS = [f"key-{number}" for number in range(20)]


def build(prefix: str) -> Build:
    """Returns a topology with every way in which state is kept, back edges among them."""

    def add(builder: StreamsBuilder) -> Any:
        orders, users = builder.stream("orders"), builder.stream("users")
        grouped = orders.group_by_key()
        windows = TimeWindows.of_size_and_grace(timedelta(seconds=4), timedelta(days=1))
        grouped.count(materialized=Materialized("counts")).to_stream().to(f"{prefix}counts")
        grouped.windowed_by(windows).count(materialized=Materialized("windows")).to_stream().to(f"{prefix}windows")
        left, right = orders.to_table(Materialized("left")), users.to_table(Materialized("right"))
        joined = left.left_join(right, _pair, foreign_key=lambda order: order["user"])
        joined.to_stream().to(f"{prefix}joined")
        within = JoinWindows.of_time_difference_and_grace(timedelta(seconds=1), timedelta(days=1))
        orders.join(users, _pair, windows=within).to(f"{prefix}pairs")

    return add


def _pair(left: Any, right: Any) -> Any:
    return [left, right]


def records(first: int, last: int) -> dict[str, list[Row]]:
    orders: list[Row] = []
    users: list[Row] = []
    for number in range(first, last):
        key, time_ms = KEYS[number * 7 % len(KEYS)], 1_000 + number * 50
        orders.append((key, {"n": number, "user": KEYS[number * 3 % len(KEYS)]}, time_ms))
        users.append((KEYS[number * 11 % len(KEYS)], {"name": f"u{number}"}, time_ms))
    return {"orders": orders, "users": users}


def feed(log: DurableLog, first: int, last: int) -> None:
    for topic, rows in records(first, last).items():
        write(log, topic, rows)


@contextmanager
def under_load(program: Program, first: int) -> Iterator[list[int]]:
    """Runs an application, and writes its input, until it is told to stop; gives the number of the next record."""
    ended, reached = threading.Event(), [first]

    def produce() -> None:
        while not ended.wait(0.005):
            feed(program.log, reached[0], reached[0] + 5)
            reached[0] += 5

    batches = threading.Semaphore(0)
    streams = Streams(program.topology, program.config, log=program.log, engine=local_engine)
    streams.add_batch_listener(lambda batch: batches.release() if batch.records_in else None)
    producer = threading.Thread(target=produce)
    with streams:
        producer.start()
        for _ in range(5):
            assert batches.acquire(timeout=30)
        yield reached
        for _ in range(5):
            assert batches.acquire(timeout=30)
        ended.set()
        producer.join()


def make_program(log: DurableLog, directory: Path, name: str = "app", prefix: str = "") -> Program:
    return Program(log, directory / name, build(prefix), name, statestore_cache_max_bytes=0)


def make_inputs(log: DurableLog) -> None:
    for topic in ("orders", "users"):
        log.create_topic(topic, partitions=2)


def state_of(log: DurableLog, application: str) -> dict[str, dict[tuple[int, bytes], bytes]]:
    """Returns the rows of an application's changelogs, by topic without its name."""
    found: dict[str, dict[tuple[int, bytes], bytes]] = {}
    for topic in log.topics():
        if topic.startswith(f"{application}-") and topic.endswith("-changelog"):
            rows = found.setdefault(topic.removeprefix(f"{application}-"), {})
            for partition in range(log.partitions_of(topic)):
                for _, _, key, value, _ in log.read(
                    topic, partition, log.begin_offsets([(topic, partition)])[topic, partition]
                ):
                    assert key is not None
                    rows.pop((partition, key), None)
                    if value is not None:
                        rows[partition, key] = value
    return found


def unread(log: DurableLog, topic: str, positions: dict[tuple[str, int], int]) -> list[tuple[bytes | None, Any]]:
    """Returns keys and values of records behind positions."""
    return [
        (key, json.loads(value or b""))
        for partition in range(2)
        for _, _, key, value, _ in log.read(topic, partition, positions[topic, partition])
    ]


def check_fork(log: DurableLog, positions: dict[tuple[str, int], int]) -> None:
    """Asserts that another application has done from a snapshot on what the first one has done, and nothing else."""
    for topic in ("counts", "windows"):
        first, second = read_by_key(log, topic), read_by_key(log, f"fork-{topic}")
        assert second
        for key, found in second.items():
            assert first[key][-len(found) :] == found
    orders, users = unread(log, "orders", positions), unread(log, "users", positions)
    counts = Counter(key for key, _ in orders)
    assert {key: len(found) for key, found in read_by_key(log, "fork-counts").items()} == counts
    # A pair comes out when the second of its records is read.
    values = {json.dumps(value) for _, value in (*orders, *users)}
    for key, found in read_by_key(log, "pairs").items():
        late = [each for each in found if any(json.dumps(side) in values for side in json.loads(each[1] or b""))]
        assert sorted(read_by_key(log, "fork-pairs").get(key, []), key=repr) == sorted(late, key=repr)
    # Which changes of one key are seen by a foreign-key join depends on the batches, but not what it ends with.
    ends = {key: found[-1] for key, found in read_by_key(log, "joined").items()}
    assert {key: found[-1] for key, found in read_by_key(log, "fork-joined").items()}.items() <= ends.items()
    assert state_of(log, "fork") == state_of(log, "app")


@pytest.mark.both_logs
def test_a_snapshot_under_load_goes_on_exactly(log: DurableLog, tmp_path: Path) -> None:
    make_inputs(log)
    feed(log, 0, 200)
    program = make_program(log, tmp_path)
    with under_load(program, 200):
        snapshot = take_snapshot("app", log, "now")
    program.run()
    fork = make_program(log, tmp_path, "fork", "fork-")
    restore_snapshot("now", fork.config, log)
    fork.run()
    check_fork(log, snapshot.positions)


@pytest.mark.parametrize("turn", range(4))
def test_every_moment_is_a_batch(turn: int, log: DurableLog, tmp_path: Path) -> None:
    make_inputs(log)
    program = make_program(log, tmp_path)
    feed(log, 0, 40)
    names = [f"s{number}" for number in range(3)]
    with under_load(program, 40):
        snapshots = [take_snapshot("app", log, name) for name in names]
    program.run()
    fork = make_program(log, tmp_path, "fork", "fork-")
    chosen = snapshots[turn % 3]
    restore_snapshot(chosen.name, fork.config, log)
    fork.run()
    check_fork(log, chosen.positions)
    assert [each.name for each in list_snapshots(log)] == names


def test_an_application_at_rest(log: DurableLog, tmp_path: Path) -> None:
    make_inputs(log)
    feed(log, 0, 100)
    program = make_program(log, tmp_path)
    program.run()
    told: list[str] = []
    snapshot = take_snapshot("app", log, "rest", tell=told.append)
    last = log.last_batch("app")
    assert last is not None
    assert told[0] == f"snapshot 'rest' has batch {last.batch_id} of application 'app'"
    # Whatever happens to the application then.
    feed(log, 100, 150)
    program.run()
    log.reset_application("app", [topic for topic in log.topics() if topic.startswith("app-")])
    fork = make_program(log, tmp_path, "fork", "fork-")
    restore_snapshot("rest", fork.config, log)
    fork.run()
    for topic in ("counts", "windows"):
        first, second = read_by_key(log, topic), read_by_key(log, f"fork-{topic}")
        assert all(first[key][-len(found) :] == found for key, found in second.items())
        assert sum(map(len, second.values())) == 50
    assert snapshot == find_snapshot(log, "rest")


@pytest.mark.parametrize("call", range(1, 17))
def test_a_restore_that_was_killed_is_finished(call: int, log: DurableLog, tmp_path: Path) -> None:
    make_inputs(log)
    feed(log, 0, 60)
    program = make_program(log, tmp_path)
    program.run()
    snapshot = take_snapshot("app", log, "rest")
    feed(log, 60, 100)
    program.run()
    fork = make_program(log, tmp_path, "fork", "fork-")
    countdown = Countdown(call, after=True)
    with suppress(Crash):
        restore_snapshot("rest", fork.config, crashing_log(log, countdown))
    assert len(countdown.called) == call
    if "describe_application" in countdown.called:
        with pytest.raises(BatchError, match="`headrace restore rest --as fork`"):
            fork.run()
    restore_snapshot("rest", fork.config, log)
    fork.run()
    check_fork(log, snapshot.positions)


def test_a_snapshot_that_was_killed_is_none(log: DurableLog, tmp_path: Path) -> None:
    make_inputs(log)
    feed(log, 0, 60)
    make_program(log, tmp_path).run()
    for call in range(1, 12):
        with suppress(Crash):
            take_snapshot("app", crashing_log(log, Countdown(call, after=True)), "rest")
            pytest.fail("it was to die before")
        assert list_snapshots(log) == []
    assert take_snapshot("app", log, "rest") == find_snapshot(log, "rest")


def test_refusals(log: DurableLog, tmp_path: Path) -> None:
    make_inputs(log)
    feed(log, 0, 20)
    program = make_program(log, tmp_path)
    with pytest.raises(ChangeRefusedError, match="nothing is known of an application 'app'"):
        take_snapshot("app", log, "s")
    program.run()
    with pytest.raises(ChangeRefusedError, match="a snapshot's name has 1 to 100 letters"):
        take_snapshot("app", log, "a b")
    take_snapshot("app", log, "s")
    with pytest.raises(ChangeRefusedError, match="there is a snapshot 's'; choose another name, or delete it"):
        take_snapshot("app", log, "s")
    with pytest.raises(ChangeRefusedError, match="cannot be restored as 'app': there is an application of that name"):
        restore_snapshot("s", program.config, log)
    with pytest.raises(ChangeRefusedError, match="there is no snapshot 't'; known are s"):
        restore_snapshot("t", make_program(log, tmp_path, "fork").config, log)
    with stopped_application(program.config, log) as app:
        app.begin(ChangePlan("grow", "headrace grow app", app.next_batch_id))
    with pytest.raises(BatchError, match="`headrace grow app`"):
        take_snapshot("app", log, "u")
    log.delete_topic("orders")
    log.create_topic("orders", partitions=2)
    with pytest.raises(IncompatibleTopologyError, match="'orders' was deleted and made anew"):
        restore_snapshot("s", make_program(log, tmp_path, "fork").config, log)


def test_a_deleted_snapshot_leaves_nothing(log: DurableLog, tmp_path: Path) -> None:
    make_inputs(log)
    make_program(log, tmp_path).run()
    before = log.topics()
    take_snapshot("app", log, "s")
    assert len(log.topics()) > len(before) + 3
    delete_snapshot(log, "s")
    assert log.topics() == before
    with pytest.raises(ChangeRefusedError, match="there is no snapshot 's'"):
        delete_snapshot(log, "s")

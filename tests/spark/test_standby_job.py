"""Standby copies of slots in the workers of a machine: who keeps them, who takes them over, who is told of failures."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import pytest

from headrace import Materialized, Produced, Serdes, StreamsBuilder
from headrace.batches.application import Application
from headrace.batches.reports import Outcome, TaskReport
from headrace.private_directory import make_private, own_temporary_directory
from headrace.spark import level
from headrace.spark.affinity import read_note
from headrace.spark.jobs import Sent
from headrace.spark.level import PlanMessage, SlotWork, StandbyWork, Work, Worker, hand_over_work, slot_key, standby_key
from headrace.spark.payload import Payload
from headrace.spark.standby_job import _StandbyStage
from tests.app.kit import SOON
from tests.batches.kit import Bench, Driver


def counting(builder: StreamsBuilder) -> None:
    counts = builder.stream("in").group_by_key().count(materialized=Materialized("counts"))
    counts.to_stream().to("out", Produced(value_serde=Serdes.json()))


class Arrived:
    """A broadcast that has arrived."""

    def __init__(self, value: bytes) -> None:
        self.value = value


class Machine:
    """A machine that does not run the application's slot, with any number of workers."""

    def __init__(self, directory: Path, affinity: Path, application: Application) -> None:
        self._affinity = affinity
        application = replace(application, directory=directory)
        self.digest, data = Payload.of(application)
        # Any: what takes the place of pyspark's Broadcast.
        self.payloads: dict[str, Any] = {self.digest: Arrived(data)}
        self.wanted = StandbyWork(0, 1, [self.digest])
        self.unwanted = StandbyWork(0, 1, [])
        self.stage = _StandbyStage(str(affinity), self.payloads)
        self.workers: list[Worker] = []

    def worker(self) -> Worker:
        self.workers.append(Worker(self._affinity))
        return self.workers[-1]

    def hand_over(self, to: Worker, key: str, work: Work) -> bytes | None:
        return hand_over_work(to.address, key, work, self.payloads)

    def standbys(self, worker: Worker) -> list[str]:
        found = worker._runners.get(self.digest)
        return [] if found is None else sorted(found[1]._standbys)

    def close(self) -> None:
        for worker in self.workers:
            worker._server.close()
            for digest in list(worker._runners):
                worker._forget(digest)


@pytest.fixture
def driver(tmp_path: Path) -> Iterator[tuple[Bench, Driver]]:
    bench = Bench(tmp_path, counting, {"in": 1, "out": 1}, statestore_cache_max_bytes=0)
    bench.write("in", *((f"k{number}", 1, number) for number in range(20)))
    made = bench.driver("one")
    made.run()
    yield bench, made
    made.close()
    bench.close()


@pytest.fixture
def machine(driver: tuple[Bench, Driver], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Machine]:
    # What it does is done to the whole process.
    monkeypatch.setattr(level, "prepare_worker", lambda: None)
    affinity = make_private(own_temporary_directory() / f"affinity-{tmp_path.name}")
    made = Machine(tmp_path / "two", affinity, driver[1].application_run.application)
    yield made
    made.close()


def catch_up(machine: Machine, worker: Worker) -> None:
    deadline = time.monotonic() + SOON
    while machine.stage._keep_copies(worker, machine.wanted) != 0:
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_the_first_worker_that_is_asked_keeps_the_copies_of_a_slot(machine: Machine) -> None:
    first, second = machine.worker(), machine.worker()
    catch_up(machine, first)
    assert read_note(first.directory, slot_key(0)) == first.address
    # Whoever is asked next hands it over, so there is never a second copy.
    catch_up(machine, second)
    assert (machine.standbys(first), machine.standbys(second)) == (["0_0"], [])


def test_copies_are_closed_when_they_are_not_wanted_any_more(machine: Machine) -> None:
    first, second = machine.worker(), machine.worker()
    # Nothing is open, so nothing is opened.
    assert machine.stage._keep_copies(first, machine.unwanted) == 0
    assert not first._runners
    catch_up(machine, first)
    assert machine.stage._keep_copies(second, machine.unwanted) == 0
    assert machine.standbys(first) == []


def test_a_slot_that_comes_is_run_by_the_worker_with_its_copy(driver: tuple[Bench, Driver], machine: Machine) -> None:
    bench, active = driver
    first = machine.worker()
    catch_up(machine, first)
    bench.write("in", ("k1", 1, 100))
    plan = active.plan_work()
    assert plan is not None
    planned = [PlanMessage(active.application_run.key, machine.digest, plan)]
    work = SlotWork(msgspec.json.encode(planned).decode(), slot_key(0), 0, 1, 0, 1, 0, [])
    answer = machine.hand_over(first, slot_key(0), work)
    assert answer is not None
    rows = [row for sent in msgspec.msgpack.decode(answer, type=list[Sent]) for row in level.unpack_rows(sent.data)]
    reports = [what for _, what in rows if isinstance(what, TaskReport)]
    assert [(report.task, report.restored) for report in reports] == [("0_0", 0)]
    active.application_run.commit(plan, Outcome(reports))
    assert bench.read("out")[-1] == ("k1", 2)
    assert machine.standbys(first) == []


def test_a_worker_with_other_work_keeps_its_copies_until_another_one_is_to_run_the_slot(machine: Machine) -> None:
    first, second = machine.worker(), machine.worker()
    catch_up(machine, first)
    with first._busy:
        # It is asked again later. Another one must not take the copies.
        assert machine.stage._keep_copies(second, machine.wanted) is None
        assert machine.stage._keep_copies(first, machine.wanted) is None
        assert (machine.standbys(first), machine.standbys(second)) == (["0_0"], [])
        # The slot itself does not wait, so the copies are free for who runs it.
        assert machine.hand_over(first, standby_key(0), machine.wanted) is None
        assert machine.standbys(first) == ["0_0"]
        assert machine.hand_over(first, slot_key(0), machine.wanted) is None
        assert machine.standbys(first) == []


def test_copies_of_a_worker_that_is_gone_are_taken_over(machine: Machine) -> None:
    first, second = machine.worker(), machine.worker()
    catch_up(machine, first)
    machine.close()
    catch_up(machine, second)
    assert machine.standbys(second) == ["0_0"]
    assert read_note(second.directory, slot_key(0)) == second.address


def test_copies_begin_anew_when_tasks_are_spread_over_other_slots(machine: Machine) -> None:
    first = machine.worker()
    catch_up(machine, first)
    before = first._runners[machine.digest][1]._standbys["0_0"]
    slots = level.slots_of("app", first._runners[machine.digest][0].layout, 3)
    other = next(slot for slot in range(3) if slot != slots["0_0"])
    first.stand_by_here(StandbyWork(other, 3, [machine.digest]), machine.payloads)
    assert machine.standbys(first) == []
    first.stand_by_here(StandbyWork(slots["0_0"], 3, [machine.digest]), machine.payloads)
    assert first._runners[machine.digest][1]._standbys["0_0"] is not before


def test_an_application_that_is_gone_is_closed_by_who_keeps_copies_of_another(machine: Machine) -> None:
    first = machine.worker()
    catch_up(machine, first)
    assert first.stand_by_here(StandbyWork(0, 1, []), {}) == 0
    assert not first._runners

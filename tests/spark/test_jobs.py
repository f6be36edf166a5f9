"""Jobs of several stages: what arrives where, again and again, and that nothing of a job stays."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest
from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]  # py4j has no annotations
from pyspark import SparkContext, TaskContext

from headrace import StreamsConfig
from headrace.spark.context import close_context, open_context
from headrace.spark.jobs import Sent, StagedJob, _Stage
from headrace.spark.worker_start import executor_location, prepare_worker

pytestmark = pytest.mark.spark


@pytest.fixture(scope="module")
def context(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkContext]:
    config = StreamsConfig.of({"application.id": "jobs", "spark.master": "local[2,4]"})
    opened = open_context(config, directory=tmp_path_factory.mktemp("jobs"))
    yield opened
    close_context(opened)


def plan() -> str:
    task = TaskContext.get()
    assert task is not None
    return str(task.getLocalProperty("plan"))


def test_one_stage_reports_by_slot(context: SparkContext) -> None:
    def run(slot: int, blobs: list[bytes]) -> Iterable[Sent]:
        assert not blobs
        return [Sent(1, slot, f"{plan()} {slot}".encode()), Sent(1, slot, b"")]

    job = StagedJob(context, [run], 3)
    for number in ("1", "2"):
        assert job.run({"plan": number}, "a batch") == [
            *(f"{number} 0".encode(), b""),
            *(f"{number} 1".encode(), b""),
            *(f"{number} 2".encode(), b""),
        ]


def test_what_is_sent_arrives_at_its_stage_and_slot(context: SparkContext) -> None:
    def first(slot: int, blobs: list[bytes]) -> Iterable[Sent]:
        yield Sent(1, 1, f"{plan()}: {slot} to 1/1".encode())
        yield Sent(2, 0, f"{plan()}: {slot} to 2/0".encode())
        yield Sent(3, slot, f"report 0/{slot}".encode())

    def second(slot: int, blobs: list[bytes]) -> Iterable[Sent]:
        yield Sent(3, slot, b"1 got " + b", ".join(blobs))

    def third(slot: int, blobs: list[bytes]) -> Iterable[Sent]:
        yield Sent(3, slot, b"2 got " + b", ".join(blobs))

    job = StagedJob(context, [first, second, third], 2)
    # Twice: Spark would skip stages whose shuffle files it finds.
    for number in ("a", "b"):
        assert sorted(job.run({"plan": number}, "a batch")) == sorted(
            [
                *(b"report 0/0", b"report 0/1", b"1 got ", b"2 got "),
                f"1 got {number}: 0 to 1/1, {number}: 1 to 1/1".encode(),
                f"2 got {number}: 0 to 2/0, {number}: 1 to 2/0".encode(),
            ]
        )


def test_large_blobs_arrive_as_they_are(context: SparkContext) -> None:
    def first(slot: int, blobs: list[bytes]) -> Iterable[Sent]:
        yield Sent(1, 1 - slot, bytes(range(256)) * 20_000)

    def second(slot: int, blobs: list[bytes]) -> Iterable[Sent]:
        assert blobs == [bytes(range(256)) * 20_000]
        yield Sent(2, slot, blobs[0][:1_000_000])

    assert StagedJob(context, [first, second], 2).run({}, "a batch") == 2 * [(bytes(range(256)) * 20_000)[:1_000_000]]


def test_workers_are_used_again(context: SparkContext) -> None:
    def run(slot: int, blobs: list[bytes]) -> Iterable[Sent]:
        prepare_worker()
        yield Sent(1, slot, str(os.getpid()).encode())

    job = StagedJob(context, [run], 2)
    assert len({pid for _ in range(10) for pid in job.run({}, "a batch")}) <= 2


def test_shuffle_files_go_with_their_job(context: SparkContext) -> None:
    def first(slot: int, blobs: list[bytes]) -> Iterable[Sent]:
        return [Sent(1, slot, b"blob")]

    def second(slot: int, blobs: list[bytes]) -> Iterable[Sent]:
        return [Sent(2, slot, b"report")]

    job = StagedJob(context, [first, second], 2)
    directory = Path(context.getConf().get("spark.local.dir") or "")
    # Others have data frames, whose files go when nobody refers to them any more.
    before = set(directory.rglob("shuffle_*"))
    for _ in range(20):
        job.run({}, "a batch")
    deadline = time.monotonic() + 60
    while left := set(directory.rglob("shuffle_*")) - before:
        assert time.monotonic() < deadline, left
        time.sleep(0.05)


def test_properties_are_those_of_the_thread_that_runs_the_job(context: SparkContext) -> None:
    def run(slot: int, blobs: list[bytes]) -> Iterable[Sent]:
        return [Sent(1, slot, plan().encode())]

    job = StagedJob(context, [run], 1)
    found = job.run({"plan": "here"}, "a batch")

    def elsewhere() -> None:
        found.extend(job.run({"plan": "here"}, "a batch"))

    thread = threading.Thread(target=elsewhere)
    thread.start()
    thread.join()
    assert found == [b"here", b"here"]


@pytest.mark.parametrize("records", [[], [b"", b"\x00\x01"]])
def test_stage_that_lacks_a_record_does_not_run(records: list[bytes]) -> None:
    stage = _Stage(lambda slot, blobs: pytest.fail("it has run"), 1, 2, 2)
    with pytest.raises(ConnectionError, match=r"of 2 slots nothing has come from \[0"):
        list(stage(0, records))


def test_sending_to_no_slot_fails_the_job(context: SparkContext) -> None:
    def run(slot: int, blobs: list[bytes]) -> Iterable[Sent]:
        return [Sent(1, 7, b"")]

    with pytest.raises(Py4JJavaError, match="stage 0 sends to slot 7 of stage 1"):
        StagedJob(context, [run], 1).run({}, "a batch")


def test_job_that_is_cancelled_ends(context: SparkContext) -> None:
    def run(slot: int, blobs: list[bytes]) -> Iterable[Sent]:
        time.sleep(600)
        return []

    job = StagedJob(context, [run], 1)
    cancelling = threading.Timer(1.0, job.cancel)
    cancelling.start()
    with pytest.raises(Py4JJavaError, match="cancelled"):
        job.run({}, "a batch")


CLUSTER = """
import os
import signal
import sys
import time
from pathlib import Path
from headrace import StreamsConfig
from headrace.spark.cluster import Cluster
from headrace.spark.context import close_context, open_context
from headrace.spark.jobs import Sent, StagedJob
from headrace.spark.worker_start import executor_location

def first(slot, blobs):
    yield Sent(2, slot, f"0/{slot} {executor_location()}".encode())

def second(slot, blobs):
    yield Sent(2, slot, f"1/{slot} {executor_location()}".encode())

config = StreamsConfig.of({"application.id": "cluster", "spark.master": "local-cluster[2,1,1024]"})
context = open_context(config, directory=Path(sys.argv[1]))
job = StagedJob(context, [first, second], 2)
executors = []
while len(executors) < 2:
    # Until both executors are there.
    executors = sorted({each.decode().split()[1] for each in job.run({}, "a batch")})
cluster = Cluster(context)
while len(listed := cluster.executors()) < 2:
    # A part of Spark hears of them a little later.
    time.sleep(0.05)
assert sorted((each.location, each.cores) for each in listed) == [(each, 1) for each in executors], listed
assert all(cluster.is_alive(each.id) for each in listed) and not cluster.is_alive("77")
for places in (executors, executors[::-1], executors) * 3:
    found = sorted(each.decode() for each in job.run({}, "a batch", [[place] for place in places]))
    assert found == [f"{stage}/{slot} {places[slot]}" for stage in (0, 1) for slot in (0, 1)], (places, found)
arguments = Path(f"/proc/{context._gateway.proc.pid}/cmdline").read_text()
assert "authenticate=true" in arguments and context.getConf().get("spark.authenticate.secret") not in arguments
# A slot whose executor is gone runs again with all that was sent to it, or not at all.
def send(slot, blobs):
    yield Sent(1, 0, str(slot).encode())
    yield Sent(1, 1, str(slot).encode())

def lose(slot, blobs):
    with seen.open("a") as file:
        print(slot, sorted(blobs), file=file)
    if slot == 0 and len(seen.read_text().splitlines()) < 3:
        while len(seen.read_text().splitlines()) < 2:
            # The other executor has fetched everything, and remembers where that was.
            time.sleep(0.01)
        daemon = Path(f"/proc/{os.getppid()}/stat").read_text()
        os.kill(int(daemon.rpartition(")")[2].split()[1]), signal.SIGKILL)
        time.sleep(600)
    yield Sent(2, slot, b"done")

seen = Path(sys.argv[1]) / "seen"
assert StagedJob(context, [send, lose], 2).run({}, "a batch", [[place] for place in executors]) == [b"done", b"done"]
assert set(seen.read_text().splitlines()) == {"0 [b'0', b'1']", "1 [b'0', b'1']"}, seen.read_text()
# An executor that is gone keeps nobody waiting.
job.run({}, "a batch", [["executor_127.0.0.1_77", "127.0.0.9"], []])
close_context(context)
"""


def test_slots_of_all_stages_run_where_they_prefer_on_executors_that_are_listed(tmp_path: Path) -> None:
    command = [sys.executable, "-c", CLUSTER, str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stderr


def test_there_is_no_executor_to_prefer_in_the_drivers_jvm() -> None:
    assert executor_location() is None

"""The engine's benchmark at a tiny size: its input, its loops, and that both sides mean the same."""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from benchmarks.engine import run_loop
from benchmarks.engine_load import PURCHASES, START_MS, Load, customers, payments, purchases, write
from benchmarks.engine_measure import Answer, Batch, Measured, answer_in, records_of, steady
from benchmarks.engine_programs import PROGRAMS
from headrace import StreamsConfig, TopologyTestDriver
from headrace.topics.embedded import EmbeddedLog
from headrace.topics.log import TopicLog

LOAD = Load(records=3_000, warm_up=1_000, keys=200, batch=1_000)

SOURCE = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("pyarrow")
    made = tmp_path_factory.mktemp("load")
    write(made, LOAD)
    return made


@pytest.fixture
def log(directory: Path) -> Iterator[TopicLog]:
    with EmbeddedLog(directory / "log") as opened:
        yield opened


def test_load_is_in_the_order_of_its_times() -> None:
    for records in purchases(LOAD), payments(LOAD), customers(LOAD):
        times = [record[1] for record in records]
        assert times == sorted(times)
    assert min(record[1] for record in purchases(LOAD)) == START_MS
    assert max(record[1] for record in payments(LOAD)) < LOAD.end_ms


def test_purchases_have_about_100_bytes() -> None:
    sizes = [len(record[2] or b"") + len(record[3] or b"") for record in purchases(LOAD)]
    assert 90 <= sum(sizes) / len(sizes) <= 130


def test_log_and_files_hold_the_same_records(directory: Path, log: TopicLog) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    in_files = []
    for path in sorted((directory / "files").iterdir()):
        table = parquet.read_table(path).to_pydict()
        in_files += list(zip(table["key"], table["value"], strict=True))
    in_log = [((key or b"").decode(), (value or b"").decode()) for _, _, key, value, _ in records_of(log, PURCHASES)]
    assert len(in_files) == LOAD.total
    assert sorted(in_files) == sorted(in_log)


def test_files_of_a_batch_hold_the_records_of_a_batch(directory: Path) -> None:
    batches = -(-LOAD.total // LOAD.batch)
    assert len(list((directory / "files").iterdir())) == batches * LOAD.files_per_batch


@pytest.mark.parametrize("name", PROGRAMS)
def test_loop_gives_what_the_topology_gives(directory: Path, log: TopicLog, tmp_path: Path, name: str) -> None:
    program = PROGRAMS[name]
    measured = run_loop(directory, program, LOAD)
    with (
        EmbeddedLog(tmp_path) as copy,
        TopologyTestDriver(program.build("out"), StreamsConfig(application_id="bench"), batched=True) as driver,
    ):
        for topic in program.inputs:
            driver.pipe_raw_batch(topic, [(0, *record[1:]) for record in _in_order(log, topic)])
        driver.commit()
        copy.create_topic("out")
        copy.append("out", driver.take_outputs("out", driver.unread("out")))
        assert measured.answer == answer_in(copy, "out", program)
    assert measured.answer.rows > 0


def _in_order(log: TopicLog, topic: str) -> list[tuple[int, int, bytes | None, bytes | None, tuple[()]]]:
    return sorted(
        ((offset, time_ms, key, value, ()) for offset, time_ms, key, value, _ in records_of(log, topic)),
        key=lambda record: record[1],
    )


def test_rate_leaves_the_warm_up_out() -> None:
    batches = [Batch(100, 10.0, 9_000.0), Batch(100, 11.0, 900.0), Batch(100, 12.0, 900.0), Batch(0, 20.0, 1.0)]
    measured = steady(batches, 100, 300, Answer(1, 1))
    assert measured.rate == 100
    assert measured.batch_records == 100


def test_rate_leaves_out_what_remains_for_the_last_batch() -> None:
    batches = [Batch(100, 10.0, 9_000.0), Batch(100, 11.0, 900.0), Batch(100, 12.0, 900.0), Batch(10, 20.0, 1.0)]
    assert steady(batches, 100, 310, Answer(1, 1)).rate == 100


def test_rate_of_a_run_that_lost_records_is_refused() -> None:
    with pytest.raises(SystemExit, match="400 records were there to be read; 300 were"):
        steady([Batch(100, float(end), 1.0) for end in range(3)], 100, 400, Answer(1, 1))


def test_measurement_travels_as_json() -> None:
    measured = steady([Batch(100, float(end), 1.0) for end in range(3)], 100, 300, Answer(1, 2, 3))
    found = Measured.of_json(json.loads(json.dumps(measured.to_json())))
    assert (found.rate, found.answer) == (measured.rate, measured.answer)


@pytest.mark.parametrize(("other", "agree"), [(Answer(2, 3, 4), True), (Answer(2, 3), True), (Answer(2, 3, 5), False)])
def test_answers_agree_as_far_as_they_are_known(other: Answer, agree: bool) -> None:  # noqa: FBT001
    assert Answer(2, 3, 4).agrees_with(other) is agree


@pytest.mark.spark
def test_engine_gives_what_the_loop_gives(tmp_path: Path) -> None:
    sizes = ["--records", "30000", "--warm-up", "20000", "--keys", "500", "--batch", "10000"]
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "benchmarks.engine",
            "--only",
            "d",
            "--sides",
            "headrace,loop",
            "--directory",
            str(tmp_path),
            *sizes,
        ],
        cwd=SOURCE,
        capture_output=True,
        text=True,
        check=False,
    )
    # A small run on a busy machine misses its targets; an answer that differs would end it before the table.
    assert "(d) tumbling window count" in done.stdout, done.stdout + done.stderr

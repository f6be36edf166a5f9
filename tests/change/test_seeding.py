"""An application that was seeded by a backfill goes on as if it had read the history itself."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from headrace import (
    Consumed,
    EmbeddedLog,
    Grouped,
    Materialized,
    Produced,
    Serdes,
    Stores,
    Streams,
    StreamsBuilder,
    StreamsConfig,
    TimeWindows,
    TopologyTestDriver,
)
from headrace.app.description import Description
from headrace.app.engine import local_engine
from headrace.change.seeding import Cut, commit_seed, prepare_seed
from headrace.errors import BatchError, ChangeRefusedError
from headrace.topics.journal import DurableLog
from headrace.topics.log import Output
from headrace.topology.topology import Topology
from tests.batches.bounded_lists import run_lists
from tests.batches.test_bounded import ALL_AT_ONCE, history
from tests.change.crashing import Countdown, Crash, crashing_log
from tests.spark.random_programs import Program, make_program

Inputs = Mapping[str, Sequence[Output]]
ByKey = dict[tuple[str, bytes | None], list[tuple[int, bytes | None]]]


def split(inputs: Inputs, cut_ms: int) -> tuple[dict[str, list[Output]], dict[str, list[Output]]]:
    """Returns what lies before a time, and the rest; both in the order of their times."""
    ordered = {topic: sorted(records, key=lambda record: record[1]) for topic, records in inputs.items()}
    before = {topic: [record for record in records if record[1] < cut_ms] for topic, records in ordered.items()}
    return before, {topic: [r for r in records if r[1] >= cut_ms] for topic, records in ordered.items()}


def seed(
    topology: Topology, config: StreamsConfig, log: DurableLog, cut: Cut, before: Inputs, *, chunk: int = ALL_AT_ONCE
) -> None:
    found = prepare_seed(topology, config, log, cut)
    with TemporaryDirectory() as directory:
        results = run_lists(found.job(0, chunk), before, Path(directory))
    commit_seed(found, log, results, with_outputs=True)


def outputs(log: DurableLog, topics: Sequence[str]) -> ByKey:
    found: ByKey = {}
    for topic in topics:
        for partition in range(log.partitions_of(topic)):
            for _, time_ms, key, value, _ in log.read(topic, partition, 0):
                found.setdefault((topic, key), []).append((time_ms, value))
    return found


def in_two_batches(program: Program, first: Inputs, second: Inputs) -> ByKey:
    """Returns what the driver gives that sees the history as one micro-batch, and the rest as another."""
    found: ByKey = {}
    with TopologyTestDriver(
        program.topology, program.config, initial_wall_clock_ms=0, partitions=program.partitions, batched=True
    ) as driver:
        for inputs in (first, second):
            for topic, records in inputs.items():
                driver.pipe_raw_batch(topic, records)
            driver.commit()
        for topic in program.outputs:
            for _, time_ms, key, value, _ in driver.take_outputs(topic, driver.unread(topic)):
                found.setdefault((topic, key), []).append((time_ms, value))
    return found


@pytest.mark.parametrize("partitions", [1, 3])
@given(random=st.randoms(use_true_random=False), chunk=st.sampled_from([2, ALL_AT_ONCE]))
@settings(max_examples=15, deadline=None, suppress_health_check=list(HealthCheck))
def test_seeded_programs_go_on_as_if_they_had_read_everything(random: Random, partitions: int, chunk: int) -> None:
    program = make_program(random, partitions)
    assume(program.config.topology_optimization == "none")
    if program.config.statestore_cache_max_bytes:
        chunk = ALL_AT_ONCE
    inputs = history(program)
    times = sorted(record[1] for records in inputs.values() for record in records)
    cut_ms = times[random.randrange(len(times))] if times else 0
    before, after = split(inputs, cut_ms)
    with TemporaryDirectory() as directory, EmbeddedLog(Path(directory) / "log", sync="none") as log:
        for topic, count in program.topics.items():
            log.create_topic(topic, partitions=count)
        for topic, records in after.items():
            log.append(topic, records)
        config = replace(program.config, state_dir=directory)
        seed(program.topology, config, log, cut_ms, before, chunk=chunk)
        Streams(program.topology, config, log=log, engine=local_engine).run(until_end=True)
        assert outputs(log, program.outputs) == in_two_batches(program, before, after)


def build(builder: StreamsBuilder) -> None:
    """Counts by user behind an edge, and keeps a versioned table and windows: stores of all kinds of changelogs."""
    texts: Consumed[Any, Any] = Consumed(key_serde=Serdes.string(), value_serde=Serdes.string())
    written: Produced[Any, Any] = Produced(key_serde=Serdes.string(), value_serde=Serdes.string())
    clicks = builder.stream("clicks", texts)
    grouped = clicks.group_by(lambda key, page: page, Grouped(key_serde=Serdes.string(), value_serde=Serdes.string()))
    grouped.count(Materialized("pages")).to_stream().map_values(str).to("counts", written)
    windows = TimeWindows.of_size_with_no_grace(timedelta(milliseconds=10))
    by_window = clicks.group_by_key().windowed_by(windows).count(Materialized("windows"))
    by_window.to_stream(lambda key, _: f"{key.key}@{key.window.start_ms}").map_values(str).to("windowed", written)
    versions = Stores.persistent_versioned_key_value_store("users", timedelta(days=1))
    users = builder.table("users", texts, Materialized(versions))
    clicks.join(users, lambda page, user: f"{page} by {user}").to("joined", written)


OUTPUTS = ("counts", "windowed", "joined")


def text(key: str, value: str, time_ms: int) -> Output:
    return None, time_ms, key.encode(), value.encode(), ()


CLICKS = [text(f"u{n % 7}", f"p{n % 8}", n + 10) for n in range(40)]
USERS = [text(f"u{n % 7}", f"name{n}", n * 4 + 10) for n in range(10)]
CUT_MS = 35


class Shop:
    """The application on a log, whose topics have only what came after the cut, unless it is to see everything."""

    def __init__(self, log: DurableLog, directory: Path, name: str = "app") -> None:
        self.log = log
        self.config = StreamsConfig.of(
            {"application_id": name, "state_dir": str(directory), "statestore.cache.max.bytes": 0}
        )
        builder = StreamsBuilder(self.config)
        build(builder)
        self.topology = builder.build(self.config)
        self.before, self.after = split({"clicks": CLICKS, "users": USERS}, CUT_MS)

    def fill(self, inputs: Inputs) -> None:
        for topic in ("clicks", "users", *OUTPUTS):
            self.log.create_topic(topic, partitions=2)
        for topic, records in inputs.items():
            self.log.append(topic, records)

    def seed(self, log: DurableLog | None = None, cut: Cut = CUT_MS) -> None:
        seed(self.topology, self.config, log or self.log, cut, self.before)

    def run(self) -> None:
        Streams(self.topology, self.config, log=self.log, engine=local_engine).run(until_end=True)


def read_everything(directory: Path) -> ByKey:
    """Returns what the application gives that has read all from its topics."""
    with EmbeddedLog(directory / "log", sync="none") as log:
        shop = Shop(log, directory)
        shop.fill({"clicks": CLICKS, "users": USERS})
        shop.run()
        found = outputs(log, OUTPUTS)
    # Pages, users by windows, users.
    assert len(found) == 8 + 7 * 4 + 7
    return found


@pytest.fixture(scope="module")
def everything(tmp_path_factory: pytest.TempPathFactory) -> ByKey:
    return read_everything(tmp_path_factory.mktemp("everything"))


@pytest.mark.both_logs
def test_seed_and_live_give_what_reading_everything_gives(log: DurableLog, tmp_path: Path, everything: ByKey) -> None:
    shop = Shop(log, tmp_path)
    shop.fill(shop.after)
    shop.seed()
    shop.run()
    assert outputs(log, OUTPUTS) == everything


def test_cut_by_offsets_leaves_out_what_the_topics_have_of_the_history(tmp_path: Path, everything: ByKey) -> None:
    with EmbeddedLog(tmp_path / "log", sync="none") as log:
        shop = Shop(log, tmp_path)
        shop.fill({"clicks": CLICKS, "users": USERS})
        targets = [(topic, partition) for topic in ("clicks", "users") for partition in range(2)]
        ends = log.end_offsets(targets)
        found = log.offsets_for_time(dict.fromkeys(targets, CUT_MS))
        cut = {target: ends[target] if (at := found[target]) is None else at for target in targets}
        with pytest.raises(ChangeRefusedError, match=r"must name an offset for each partition .* users-1 has none"):
            shop.seed(cut={target: at for target, at in cut.items() if target != ("users", 1)})
        shop.seed(cut=cut)
        shop.run()
        assert outputs(log, OUTPUTS) == everything


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
def test_a_seed_that_dies_at_any_step_is_finished_by_the_next(
    tmp_path: Path, everything: ByKey, *, after: bool
) -> None:
    number, is_done = 0, False
    while not is_done:
        number += 1
        directory = tmp_path / str(number)
        with EmbeddedLog(directory / "log", sync="none") as log:
            shop = Shop(log, directory)
            shop.fill(shop.after)
            countdown = Countdown(number, after=after)
            try:
                shop.seed(crashing_log(log, countdown))
            except Crash:
                known = Description.read(log, "app")
                if known is not None and known.change is not None:
                    with pytest.raises(BatchError, match=r"finish it by the same command: `headrace.spark.backfill"):
                        shop.run()
            else:
                is_done = True
            known = Description.read(log, "app")
            if known is None or known.change is not None:
                shop.seed()
            shop.run()
            assert outputs(log, OUTPUTS) == everything
    # Changelogs, the journal, a description, the begin, four tasks, the batch, and the last description.
    assert countdown.called == [
        *["create_topic"] * 3,
        "open_journal",
        "describe_application",
        "begin",
        *["open", "commit"] * 4,
        "commit",
        "describe_application",
    ]


def test_an_application_that_has_run_is_not_seeded(tmp_path: Path) -> None:
    with EmbeddedLog(tmp_path / "log", sync="none") as log:
        shop = Shop(log, tmp_path)
        shop.fill(shop.after)
        shop.seed()
        with pytest.raises(ChangeRefusedError, match="has run already, or was seeded"):
            shop.seed()


def test_a_cut_in_the_midst_of_disorder_is_refused(tmp_path: Path) -> None:
    with EmbeddedLog(tmp_path / "log", sync="none") as log:
        shop = Shop(log, tmp_path)
        shop.fill({"clicks": [text("u", "p", 40), text("u", "p", 34)]})
        with pytest.raises(ChangeRefusedError, match=r"the record at offset 1 behind it is older \(34\)"):
            shop.seed()


def test_a_table_that_is_restored_from_its_topic_is_refused(tmp_path: Path) -> None:
    config = StreamsConfig.of({"application_id": "app", "state_dir": str(tmp_path), "topology.optimization": "all"})
    builder = StreamsBuilder(config)
    builder.table("users", materialized=Materialized("names")).to_stream().to("out")
    with EmbeddedLog(tmp_path / "log", sync="none") as log:
        log.create_topic("users")
        with pytest.raises(ChangeRefusedError, match="'names' is restored from its topic 'users'"):
            prepare_seed(builder.build(config), config, log, 0)


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
def test_an_application_that_dies_at_any_step_of_its_first_run_after_a_seed_goes_on(
    tmp_path: Path, everything: ByKey, *, after: bool
) -> None:
    number, has_died = 0, True
    while has_died:
        number += 1
        directory = tmp_path / str(number)
        with EmbeddedLog(directory / "log", sync="none") as log:
            shop = Shop(log, directory)
            shop.fill(shop.after)
            shop.seed()
            dying = crashing_log(log, Countdown(number, after=after))
            try:
                Streams(shop.topology, shop.config, log=dying, engine=local_engine).run(until_end=True)
            except Crash:
                shop.run()
            else:
                has_died = False
            assert outputs(log, OUTPUTS) == everything
    # The journal, the begin of a batch, its tasks, the batch.
    assert number > 6

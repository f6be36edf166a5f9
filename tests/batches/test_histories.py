"""Random histories of a task: kills, other machines, lost copies, failures, compaction; and functions are random."""

from __future__ import annotations

import shutil
import time
from typing import Any
from uuid import uuid4

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from headrace import EmbeddedLog, Materialized, Serdes, StreamsBuilder
from headrace.batches import working_copy
from headrace.state.engines.environment import DISK_ENGINES, IN_MEMORY
from tests.batches.kit import Bench, Driver

FATES = (
    "goes on",
    "goes on",
    "fails",
    "is killed",
    "is killed before it commits",
    "moves",
    "loses its copy",
    "is cleaned",
)
Batch = tuple[list[tuple[str, bool]], str]
BATCHES = st.lists(
    st.tuples(
        st.lists(st.tuples(st.sampled_from([f"k{number}" for number in range(6)]), st.booleans()), max_size=6),
        st.sampled_from(FATES),
    ),
    max_size=25,
)


def build(builder: StreamsBuilder) -> None:
    """Keeps a value per key that nobody has seen before, or deletes the key; the same behind a repartition."""

    def make_up(_key: str, keep: bool, _last: Any) -> Any:  # noqa: FBT001 - called by position
        return uuid4().hex if keep else None

    stream = builder.stream("in")
    for name, grouped in (
        ("here", stream.group_by_key()),
        ("there", stream.group_by(lambda key, value: f"{key}'")),
    ):
        kept = Materialized[str, Any](name, key_serde=Serdes.string(), value_serde=Serdes.json())
        grouped.aggregate(lambda: None, make_up, materialized=kept).to_stream().to(f"out-{name}")


class History:
    """The application on whichever machine it is now."""

    def __init__(self, bench: Bench) -> None:
        self.bench = bench
        self.hosts = 1
        self.driver = bench.driver("0")

    def run(self, batch: Batch) -> None:
        records, fate = batch
        self.bench.write("in", *((key, keep, 1) for key, keep in records), partition=0)
        if fate in ("fails", "is killed before it commits"):
            plan = self.driver.plan_work()
            if plan is not None:
                self.driver.execute(plan)
        if fate in ("is killed", "is killed before it commits"):
            self.restart(killed=True)
        elif fate == "moves":
            self.hosts += 1
            self.restart(killed=False)
        elif fate == "loses its copy":
            self.driver.kill()
            shutil.rmtree(self.driver.directory, ignore_errors=True)
            self.driver = self.bench.driver(self.driver.directory.name)
        elif fate == "is cleaned":
            assert isinstance(self.bench.log, EmbeddedLog)
            while self.bench.log.clean(now_ms=time.time_ns() // 1_000_000).more:
                """The rest."""
        self.driver.run()

    def restart(self, *, killed: bool) -> None:
        (self.driver.kill if killed else self.driver.close)()
        # One of the machines that it was on before, or a new one.
        self.driver = self.bench.driver(str(self.hosts % 3))

    def check(self, driver: Driver) -> None:
        for store, task in ("here", "0_0"), ("there", "1_0"):
            last = dict(self.bench.read(f"out-{store}"))
            rows = {key: row.value for key, row in driver.rows(store, task).items()}
            assert rows == {key: value for key, value in last.items() if value is not None}


@pytest.mark.parametrize("engine", [*DISK_ENGINES, IN_MEMORY])
@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(batches=BATCHES, write_rows=st.sampled_from([0, 3, 100_000]))
def test_a_store_has_what_was_sent_last_and_every_record_counts_once(
    tmp_path_factory: pytest.TempPathFactory, engine: str, batches: list[Batch], write_rows: int
) -> None:
    with pytest.MonkeyPatch.context() as patched:
        # So often are rows written to the copy: with every batch, sometimes, or when it is closed.
        patched.setattr(working_copy, "_LASTING", working_copy._LASTING._replace(rows=write_rows))
        bench = Bench(
            tmp_path_factory.mktemp("history"),
            build,
            {"in": 1, "out-here": 1, "out-there": 1},
            statestore_cache_max_bytes=0,
            default_dsl_store=engine,
        )
        history = History(bench)
        for batch in batches:
            history.run(batch)
        history.driver.run()
        history.check(history.driver)
        history.driver.close()
        witness = bench.driver("witness")
        witness.run()
        history.check(witness)
        witness.close()
        made_up = [value for _, value in bench.read("out-here") if value is not None]
        wanted = sum(keep for records, _ in batches for _, keep in records)
        assert len(made_up) == len(set(made_up)) == wanted
        bench.close()

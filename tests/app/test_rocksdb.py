"""An application whose stores are in RocksDB: counts, a restart, a lost copy, and what RocksDB says of itself."""

from __future__ import annotations

import json
import shutil
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from headrace import Materialized, Produced, Serdes, Streams, StreamsBuilder
from headrace.metrics import MetricName
from tests.views.kit import Place

KEYS = [f"k{number:02}" for number in range(40)]


def counting(builder: StreamsBuilder) -> None:
    counts = builder.stream("in").group_by_key().count(materialized=Materialized("counts"))
    counts.to_stream().to("out", Produced(value_serde=Serdes.json()))


class Counting:
    """A count by key in RocksDB, run again and again; each run knows what the counts must be."""

    def __init__(self, directory: Path) -> None:
        self.place = Place(directory, **{"in": 2, "out": 2})
        self.copies = directory / "app"
        self._expected: Counter[str] = Counter()
        self._read = {0: 0, 1: 0}

    def run(self, keys: list[str]) -> Streams:
        """Counts these keys once more, and checks what comes out."""
        self.place.write("in", [(key, "x", 1000) for key in keys])
        self._expected.update(keys)
        streams = self.place.streams(counting, default_dsl_store="rocksdb")
        streams.run(until_end=True)
        assert self._results() == {key: self._expected[key] for key in keys}
        return streams

    def _results(self) -> dict[str, int]:
        found = {}
        for partition, start in self._read.items():
            for offset, _, key, value, _ in self.place.log.read("out", partition, start):
                assert key is not None
                assert value is not None
                found[key.decode()] = json.loads(value)
                self._read[partition] = offset + 1
        return found


@pytest.fixture
def counts(tmp_path: Path) -> Iterator[Counting]:
    made = Counting(tmp_path)
    yield made
    made.place.close()


def sum_of(streams: Streams, name: str, *tags: tuple[str, str]) -> float:
    """Returns a metric of all tasks together."""
    found = [
        value
        for metric, value in streams.metrics().items()
        if isinstance(metric, MetricName) and metric.name == name and set(tags) <= set(metric.tags)
    ]
    assert found, name
    return float(sum(found))


def test_counts_go_on_after_a_restart(counts: Counting) -> None:
    counts.run(KEYS)
    assert sorted(path.name for path in counts.copies.glob("0_*/rocksdb")) == ["rocksdb", "rocksdb"]
    assert not list(counts.copies.glob("0_*/lmdb"))
    counts.run(KEYS[:7])
    # A copy gets the rows of a batch when the next one has begun.
    assert sum_of(counts.run(KEYS[:3]), "restore-total") == 7, "what the last batch has changed, and no more"


def test_counts_are_restored_when_their_files_are_lost(counts: Counting) -> None:
    counts.run(KEYS)
    shutil.rmtree(counts.copies)
    assert sum_of(counts.run(KEYS[:7]), "restore-total") == len(KEYS)
    assert sum_of(counts.run(KEYS), "restore-total") == 7


def test_metrics_of_an_application_have_those_of_rocksdb(counts: Counting) -> None:
    counts.run(KEYS)
    again = counts.run(["k00"])
    assert sum_of(again, "estimate-num-keys", ("rocksdb-state-id", "counts")) == len(KEYS)
    assert sum_of(again, "block-cache-capacity") > 0

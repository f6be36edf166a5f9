"""Retention, compaction and small blobs: what goes, what stays, and that every call is bounded."""

from __future__ import annotations

from pathlib import Path

import pytest

from headrace.errors import LogError
from headrace.topics.embedded import EmbeddedLog
from headrace.topics.embedded.cleaning import Cleaned
from tests.topics.kit import clean_all, everything, keyed, record

NOW = 1_000_000
COMPACT = {"cleanup.policy": "compact", "min.cleanable.dirty.ratio": 0}


def test_nothing_is_removed_by_default(embedded: EmbeddedLog) -> None:
    embedded.create_topic("t")
    embedded.append("t", [record("a", "1", 5)])
    clean_all(embedded, NOW)
    assert keyed(everything(embedded, "t")) == [(0, "a", "1")]


def test_directory_in_which_nothing_can_be_made_is_an_error_of_the_log(tmp_path: Path) -> None:
    """Who keeps the log tidy goes on after such an error: the next time there may be room again."""
    with EmbeddedLog(tmp_path, sync="none") as log:
        (tmp_path / "cleaner.lock").mkdir()
        with pytest.raises(LogError, match=r"cannot be cleaned: .*Is a directory"):
            log.clean()
        (tmp_path / "cleaner.lock").rmdir()
        assert not log.clean().more


def test_retention_removes_old_blobs_from_the_beginning(embedded: EmbeddedLog) -> None:
    embedded.create_topic("t", configs={"retention.ms": 1000})
    for time_ms in (NOW - 5000, NOW - 2000, NOW - 500, NOW - 3000, NOW):
        embedded.append("t", [record("a", str(time_ms), time_ms)])
    clean_all(embedded, NOW)
    # The fourth is old, but it lies behind one that is not.
    assert [raw[0] for raw in everything(embedded, "t")] == [2, 3, 4]
    assert embedded.begin_offsets([("t", 0)]) == {("t", 0): 2}
    clean_all(embedded, NOW + 10_000)
    assert everything(embedded, "t") == []
    assert embedded.append("t", [record("a", "6", NOW + 10_000)]) == {0: (5, 6)}
    assert [raw[0] for raw in everything(embedded, "t")] == [5]


def test_retention_by_size_keeps_at_least_so_much(embedded: EmbeddedLog) -> None:
    embedded.create_topic("t", configs={"retention.bytes": 10_000})
    for n in range(50):
        embedded.append("t", [record("a", "x" * 1000, n)])
    clean_all(embedded, NOW)
    assert 10 <= len(everything(embedded, "t")) <= 11


def test_compaction_keeps_the_last_record_of_each_key_at_its_offset(embedded: EmbeddedLog) -> None:
    embedded.create_topic("t", configs=COMPACT)
    for n in range(10):
        embedded.append("t", [record(key, f"{key}{n}") for key in "abc"[: 1 + n % 3]])
    before = {key: (offset, value) for offset, key, value in keyed(everything(embedded, "t"))}
    end = embedded.end_offsets([("t", 0)])
    clean_all(embedded, NOW)
    after = keyed(everything(embedded, "t"))
    assert {key: (offset, value) for offset, key, value in after} == before
    assert len(after) == 3
    assert embedded.end_offsets([("t", 0)]) == end
    assert embedded.begin_offsets([("t", 0)]) == {("t", 0): 0}
    assert [raw[0] for raw in embedded.read("t", 0, 0, after[0][0] + 1)] == [after[0][0]]


def test_compaction_waits_until_enough_is_new(embedded: EmbeddedLog) -> None:
    embedded.create_topic("t", configs={"cleanup.policy": "compact"})
    embedded.append("t", [record(f"k{n}", "x" * 100) for n in range(1000)])
    clean_all(embedded, NOW)
    embedded.append("t", [record("k0", "new")])
    assert embedded.clean(now_ms=NOW).touched_bytes == 0
    assert len(everything(embedded, "t")) == 1001
    embedded.append("t", [record(f"k{n}", "x" * 101) for n in range(1000)])
    clean_all(embedded, NOW)
    assert len(everything(embedded, "t")) == 1000


def test_tombstones_stay_for_their_time(embedded: EmbeddedLog) -> None:
    embedded.create_topic("t", configs={**COMPACT, "delete.retention.ms": 1000})
    embedded.append("t", [record("a", "1"), record("b", "1"), record("a", None)])
    clean_all(embedded, NOW)
    assert keyed(everything(embedded, "t")) == [(1, "b", "1"), (2, "a", None)]
    clean_all(embedded, NOW + 999)
    assert len(everything(embedded, "t")) == 2
    clean_all(embedded, NOW + 1000)
    assert keyed(everything(embedded, "t")) == [(1, "b", "1")]
    assert embedded.clean(now_ms=NOW + 5000).touched_bytes == 0


def test_young_records_are_not_compacted(embedded: EmbeddedLog) -> None:
    embedded.create_topic("t", configs={**COMPACT, "min.compaction.lag.ms": 1000})
    for n in range(5):
        embedded.append("t", [record("a", str(n), NOW + n)])
    assert embedded.clean(now_ms=NOW).touched_bytes == 0
    clean_all(embedded, NOW + 1002)
    assert [raw[0] for raw in everything(embedded, "t")] == [2, 3, 4]


def test_long_keys_are_compacted_and_not_confused(embedded: EmbeddedLog) -> None:
    embedded.create_topic("t", configs=COMPACT)
    long, other = "k" * 5000, "k" * 4999 + "j"
    embedded.append("t", [record(long, "1"), record(other, "1"), record(long, "2")])
    clean_all(embedded, NOW)
    assert keyed(everything(embedded, "t")) == [(1, other, "1"), (2, long, "2")]


def test_compacted_topic_with_retention_also_forgets(embedded: EmbeddedLog) -> None:
    embedded.create_topic("t", configs={**COMPACT, "cleanup.policy": "compact,delete", "retention.ms": 100})
    embedded.append("t", [record("a", "1", NOW), record("b", "1", NOW), record("a", "2", NOW)])
    clean_all(embedded, NOW)
    assert [raw[0] for raw in everything(embedded, "t")] == [1, 2]
    clean_all(embedded, NOW + 101)
    assert everything(embedded, "t") == []


def test_each_call_is_bounded_and_all_together_finish(embedded: EmbeddedLog) -> None:
    embedded.create_topic("t", partitions=2, configs=COMPACT)
    for n in range(10):
        embedded.append("t", [record(f"k{k}", f"{n}" + "x" * 300) for k in range(3000)])
    calls = 0
    while True:
        done = embedded.clean(max_bytes=1 << 20, now_ms=NOW)
        calls += 1
        assert done.touched_bytes <= 3 << 20
        last = {key: value for partition in range(2) for _, key, value in keyed(everything(embedded, "t", partition))}
        assert len(last) == 3000
        assert {value[0] for value in last.values() if value} == {"9"}
        if not done.more:
            break
    assert calls > 10
    assert sum(len(everything(embedded, "t", partition)) for partition in range(2)) == 3000


def test_single_records_are_put_together(embedded: EmbeddedLog) -> None:
    embedded.create_topic("t")
    for n in range(600):
        embedded.append("t", [record("k", str(n), n)])
    before = everything(embedded, "t")
    done = embedded.clean(now_ms=NOW)
    assert done.freed_bytes > 0
    assert everything(embedded, "t") == before
    assert [embedded.offsets_for_time({("t", 0): n})[("t", 0)] for n in range(600)] == list(range(600))
    # A few at the end wait for company, so that nothing is copied again and again.
    assert embedded.clean(now_ms=NOW) == Cleaned(0, 0, more=False)


def test_deleted_topic_and_records_make_room(embedded: EmbeddedLog) -> None:
    def fill_and_delete() -> int:
        embedded.create_topic("t", partitions=2)
        embedded.append("t", [record(f"k{n}", "x" * 1000) for n in range(5000)])
        embedded.delete_records({("t", 0): 1000})
        clean_all(embedded, NOW, max_bytes=1 << 20)
        embedded.delete_topic("t")
        clean_all(embedded, NOW, max_bytes=1 << 20)
        return embedded.used_bytes()

    first = fill_and_delete()
    assert max(fill_and_delete() for _ in range(5)) < 1.5 * first


def test_steady_compacted_topic_does_not_grow(embedded: EmbeddedLog) -> None:
    embedded.create_topic("t", configs={"cleanup.policy": "compact"})
    sizes = []
    for n in range(60):
        embedded.append("t", [record(f"k{k}", f"{n}-" + "x" * 200) for k in range(1000)])
        clean_all(embedded, NOW)
        sizes.append(embedded.used_bytes())
    assert sizes[-1] <= 1.2 * sizes[20]
    assert len(everything(embedded, "t")) <= 2000

"""Random histories of a log next to lists and dicts that do the same."""

from __future__ import annotations

import shutil
from pathlib import Path
from tempfile import mkdtemp

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from headrace.errors import BatchError, FencedError
from headrace.topics.embedded import EmbeddedLog
from headrace.topics.journal import TaskRecord, TaskStatus
from headrace.topics.log import Committed, Output, Raw
from headrace.topics.partitioner import partition_for
from tests.topics.kit import clean_all, everything

PARTITIONS = 2
PLAIN, SHORT, COMPACTED = "plain", "short", "compacted"
RETENTION_MS, TOMBSTONE_MS = 50, 30
KEYS = st.sampled_from([b"a", b"b", b"c", b"d" * 40])
VALUES = st.none() | st.binary(max_size=6) | st.just(b"x" * 5000)
RECORDS = st.lists(st.tuples(st.none(), st.integers(-20, 20), KEYS, VALUES, st.just(())), min_size=1, max_size=8)
TOPICS = st.sampled_from([PLAIN, SHORT, COMPACTED])


class LogModel(RuleBasedStateMachine):
    """The model has every record ever written; what a topic's policy may remove decides what must be there."""

    def __init__(self) -> None:
        super().__init__()
        self.directory = Path(mkdtemp(prefix="headrace-log-"))
        self.written: dict[tuple[str, int], list[Raw]] = {
            (topic, partition): [] for topic in (PLAIN, SHORT, COMPACTED) for partition in range(PARTITIONS)
        }
        self.begin = dict.fromkeys(self.written, 0)
        self.last: Committed | None = None
        self.records: dict[str, TaskRecord] = {}
        self.now_ms = 1000

    @initialize()
    def create(self) -> None:
        self.log = EmbeddedLog(self.directory, map_size=1 << 16, sync="none")
        self.journal = self.log.open_journal("app", [])
        self.log.create_topic(PLAIN, partitions=PARTITIONS)
        self.log.create_topic(SHORT, partitions=PARTITIONS, configs={"retention.ms": RETENTION_MS})
        configs = {"cleanup.policy": "compact", "min.cleanable.dirty.ratio": 0, "delete.retention.ms": TOMBSTONE_MS}
        self.log.create_topic(COMPACTED, partitions=PARTITIONS, configs=configs)

    def note(self, topic: str, outputs: list[Output]) -> None:
        for _, timestamp_ms, key, value, headers in outputs:
            assert key is not None
            records = self.written[topic, partition_for(key, PARTITIONS)]
            records.append((len(records), self.now_ms + timestamp_ms, key, value, headers))

    def timed(self, outputs: list[Output]) -> list[Output]:
        return [(partition, self.now_ms + time_ms, *rest) for partition, time_ms, *rest in outputs]  # type: ignore[misc]

    @rule(topic=TOPICS, outputs=RECORDS)
    def append(self, topic: str, outputs: list[Output]) -> None:
        self.log.append(topic, self.timed(outputs))
        self.note(topic, outputs)

    @rule(parts=st.lists(st.tuples(TOPICS, RECORDS), max_size=3), keep=st.booleans(), large=st.booleans())
    def batch(self, parts: list[tuple[str, list[Output]]], *, keep: bool, large: bool) -> None:
        batch_id = 0 if self.last is None else self.last.batch_id + 1
        receipts = []
        for number, (topic, outputs) in enumerate(parts):
            task = f"0_{number}"
            part = self.log.task_journal("app", self.journal.incarnation, task, [])
            assert part.open().record == self.records.get(task)
            record = TaskRecord(batch_id, f"{batch_id}/{number}", [("in", number, batch_id)], None, b"")
            receipts.append(part.commit(record, [(topic, self.timed(outputs * (500 if large else 1)))], []))
        if not keep:
            # The driver died here; the next one runs the batch anew.
            self.take_over()
            return
        self.last = self.journal.commit(batch_id, receipts)
        for number, (topic, outputs) in enumerate(parts):
            self.note(topic, outputs * (500 if large else 1))
            self.records[f"0_{number}"] = TaskRecord(
                batch_id, f"{batch_id}/{number}", [("in", number, batch_id)], None, b""
            )

    @rule()
    def take_over(self) -> None:
        """Another driver opens the journal: what there is, is as it was left, and the former one is out."""
        old, self.journal = self.journal, self.log.open_journal("app", [])
        assert self.journal.incarnation > old.incarnation
        assert self.journal.state.batch_id == (-1 if self.last is None else self.last.batch_id)
        assert self.journal.state.tasks == {task: TaskStatus(each.stamp, None) for task, each in self.records.items()}
        assert not list(self.directory.rglob("*.staged"))
        with pytest.raises(FencedError):
            old.commit(self.journal.state.batch_id + 1, [])

    @rule()
    def commit_again(self) -> None:
        if self.last is not None:
            with pytest.raises(BatchError):
                self.journal.commit(self.last.batch_id, [])
            assert self.log.last_batch("app") == self.last

    @rule()
    def reset(self) -> None:
        before = self.journal.incarnation
        self.log.reset_application("app")
        self.last, self.records = None, {}
        self.journal = self.log.open_journal("app", [])
        assert self.journal.incarnation > before
        assert self.journal.state.positions == {}

    @rule(pass_ms=st.integers(0, 60), max_bytes=st.sampled_from([1, 2000, 1 << 20]))
    def clean_a_little(self, pass_ms: int, max_bytes: int) -> None:
        self.now_ms += pass_ms
        self.log.clean(max_bytes=max_bytes, now_ms=self.now_ms)

    @rule()
    def clean_completely(self) -> None:
        clean_all(self.log, self.now_ms)
        for partition in range(PARTITIONS):
            found = everything(self.log, COMPACTED, partition)
            assert len({record[2] for record in found}) == len(found), "a key is there twice"

    @rule(topic=st.sampled_from([PLAIN, SHORT]), partition=st.integers(0, PARTITIONS - 1), share=st.floats(0, 1))
    def delete_records(self, topic: str, partition: int, share: float) -> None:
        target = topic, partition
        before = int(len(self.written[target]) * share)
        self.log.delete_records({target: before})
        self.begin[target] = max(self.begin[target], before)

    @rule()
    def open_again(self) -> None:
        self.log.close()
        self.log = EmbeddedLog(self.directory, map_size=1 << 16, sync="none")
        self.journal = self.log.open_journal("app", [])

    @invariant()
    def holds_what_it_must(self) -> None:
        if not hasattr(self, "log"):
            return
        ends, begins = self.log.end_offsets(self.written), self.log.begin_offsets(self.written)
        for target, records in self.written.items():
            topic, partition = target
            found = everything(self.log, topic, partition)
            assert ends[target] == len(records)
            if topic == PLAIN:
                assert found == records[self.begin[target] :]
            elif topic == SHORT:
                begin = begins[target]
                assert found == records[begin:]
                assert begin >= self.begin[target]
                young = self.now_ms - RETENTION_MS
                assert all(record[1] < young for record in records[self.begin[target] : begin])
            else:
                self.check_compacted(records, found)

    def check_compacted(self, records: list[Raw], found: list[Raw]) -> None:
        assert all(records[record[0]] == record for record in found)
        assert [record[0] for record in found] == sorted({record[0] for record in found})
        last_found = {record[2]: record for record in found}
        for key, last in {record[2]: record for record in records}.items():
            # A removed tombstone leaves nothing of its key; everything else leaves its last record.
            assert last_found.get(key, last if last[3] is None else None) == last

    @rule(topic=TOPICS, partition=st.integers(0, PARTITIONS - 1), back_ms=st.integers(-30, 150))
    def ask_for_time(self, topic: str, partition: int, back_ms: int) -> None:
        asked = self.now_ms - back_ms
        found = everything(self.log, topic, partition)
        expected = next((record[0] for record in found if record[1] >= asked), None)
        assert self.log.offsets_for_time({(topic, partition): asked}) == {(topic, partition): expected}

    def teardown(self) -> None:
        if hasattr(self, "log"):
            self.log.close()
        shutil.rmtree(self.directory)


TestLogModel = LogModel.TestCase
TestLogModel.settings = settings(max_examples=40, stateful_step_count=25, deadline=None)

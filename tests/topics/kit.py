"""Short forms for tests of the log."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta
from secrets import token_hex

from headrace.topics.embedded import EmbeddedLog
from headrace.topics.journal import DurableLog, TaskRecord
from headrace.topics.log import Committed, Output, Raw, TopicLog, TopicPartition

AT_ONCE = timedelta(0)
SOON = timedelta(seconds=5)


def record(key: str | None, value: str | None, timestamp_ms: int = 0, *, partition: int | None = None) -> Output:
    return partition, timestamp_ms, None if key is None else key.encode(), None if value is None else value.encode(), ()


def keyed(records: Sequence[Raw]) -> list[tuple[int, str | None, str | None]]:
    """Returns offset, key and value."""
    return [(offset, _text(key), _text(value)) for offset, _, key, value, _ in records]


def _text(data: bytes | None) -> str | None:
    return None if data is None else data.decode()


def everything(log: TopicLog, topic: str, partition: int = 0, *, max_records: int = 1 << 40) -> list[Raw]:
    """Reads a partition from its beginning to its end, as a consumer does."""
    position = log.begin_offsets([(topic, partition)])[topic, partition]
    found: list[Raw] = []
    while records := log.read(topic, partition, position, max_records=max_records):
        found += records
        position = records[-1][0] + 1
    return found


def commit(
    log: DurableLog,
    outputs: Mapping[str, Sequence[Output]],
    *,
    application: str = "app",
    tasks: Sequence[str] = ("0_0",),
    positions: Mapping[TopicPartition, int] | None = None,
) -> Committed:
    """Takes over an application and commits its next batch, in which each task writes the same."""
    journal = log.open_journal(application, tasks)
    batch_id = journal.state.batch_id + 1
    journal.begin(batch_id, b"")
    record = TaskRecord(batch_id, token_hex(8), [(*at, n) for at, n in (positions or {}).items()], None, b"")
    receipts = []
    for task in tasks:
        part = log.task_journal(application, journal.incarnation, task, [])
        part.open()
        receipts.append(part.commit(record, list(outputs.items()), []))
        part.close()
    done = journal.commit(batch_id, receipts)
    journal.close()
    return done


def clean_all(log: EmbeddedLog, now_ms: int, *, max_bytes: int = 8 << 20) -> int:
    """Cleans until nothing is left to do; returns how many calls it took."""
    calls = 1
    while log.clean(max_bytes=max_bytes, now_ms=now_ms).more:
        calls += 1
    return calls

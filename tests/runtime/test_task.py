"""The task by itself: what hosts rely on."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from itertools import count
from typing import Any, ClassVar

import pytest

from headrace import (
    Consumed,
    Grouped,
    LogAndContinueExceptionHandler,
    Materialized,
    Processor,
    Produced,
    PunctuationType,
    Record,
    Serdes,
    StreamsBuilder,
    StreamsConfig,
    StreamsError,
    TimeWindows,
    Topology,
)
from headrace.processor import ProcessorContext
from headrace.runtime.task import Task, TaskId
from headrace.state import Engine, MemoryEngine, OverlayEngine, StoreBuilder
from headrace.topics.log import Raw

STRING, LONG = Serdes.string(), Serdes.long()
TEXT = Consumed(key_serde=STRING, value_serde=STRING)


class Host:
    """Keeps the engines, so that a second task can go on where the first one stopped."""

    def __init__(self) -> None:
        self.time_ms = 0
        self.bases: dict[str, Engine] = {}
        self.global_stores: Mapping[str, Any] = {}

    def now_ms(self) -> int:
        return self.time_ms

    def topic_name(self, topic: str) -> str:
        return topic

    def partitions_of(self, topic: str) -> int:
        return 1

    def engine(self, task_id: str, builder: StoreBuilder) -> OverlayEngine:
        return OverlayEngine(self.bases.setdefault(builder.name, MemoryEngine()))


def task_of(topology: Topology, host: Host, remembered: Mapping[str, Any] | None = None, **settings: Any) -> Task:
    config = StreamsConfig(application_id="app", emit_interval=timedelta(0), statestore_cache_max_bytes=0, **settings)
    builders = [topology.store_builders[name] for name in topology.state_stores]
    task = Task(TaskId(0, 0), list(topology.nodes.values()), topology.children, builders, config, host, remembered)
    for source in topology.source_nodes:
        for topic in source.topics:
            task.add_partition(source.name, topic, 0)
    return task


def records(*rows: tuple[int, str, str], first_offset: int = 0) -> list[Raw]:
    return [
        (offset, time, key.encode(), value.encode(), ()) for offset, (time, key, value) in enumerate(rows, first_offset)
    ]


def commit(task: Task) -> list[tuple[bytes | None, bytes | None]]:
    """Ends a batch as a host does; returns what was written."""
    task.commit()
    for engine in task.engines().values():
        engine.commit()
    return [(key, value) for _, outputs in task.take_outputs() for _, _, key, value, _ in outputs]


def merged() -> Topology:
    builder = StreamsBuilder()
    sink = Produced(key_serde=STRING, value_serde=STRING)
    builder.stream("a", TEXT).merge(builder.stream("b", TEXT)).to("out", sink)
    return builder.build()


def test_a_batch_stops_where_an_input_has_more_in_the_log() -> None:
    task = task_of(merged(), Host())
    task.add_records("a", 0, records((1, "k", "a1"), (4, "k", "a4")), resumes_ms=-1)
    task.add_records("b", 0, records((2, "k", "b2"), (9, "k", "b9")))
    task.process_all()
    # b9 must wait: the next record of a may be older.
    assert [value for _, value in commit(task)] == [b"a1", b"b2", b"a4"]
    assert task.consumed == {("a", 0): 1, ("b", 0): 0}
    task.add_records("a", 0, records((5, "k", "a5"), first_offset=2))
    task.process_all()
    assert [value for _, value in commit(task)] == [b"a5", b"b9"]


def test_records_of_equal_time_go_by_topic_in_a_batch() -> None:
    task = task_of(merged(), Host())
    task.add_records("b", 0, records((1, "k", "b1"), (1, "k", "b2")))
    task.add_records("a", 0, records((1, "k", "a1"), (1, "k", "a2")))
    task.process_all()
    assert [value for _, value in commit(task)] == [b"a1", b"a2", b"b1", b"b2"]


def test_positions_of_stores_are_the_offsets_consumed() -> None:
    builder = StreamsBuilder()
    builder.table("in", TEXT, Materialized("rows", key_serde=STRING, value_serde=STRING))
    task = task_of(builder.build(), Host())
    task.add_records("in", 0, records((1, "k", "a"), (2, "k", "b")))
    task.process_all()
    commit(task)
    assert task.stores["rows"].position == {("in", 0): 1}


class Heartbeat(Processor[str, str, str, str]):
    """Ticks every ten milliseconds of stream time, from 5 on."""

    def init(self, context: ProcessorContext) -> None:
        super().init(context)
        context.schedule(timedelta(milliseconds=10), PunctuationType.STREAM_TIME, self.tick, start_time_ms=5)

    def tick(self, now_ms: int) -> None:
        self.context.forward(Record("tick", str(now_ms), now_ms))

    def process(self, record: Record[str, str]) -> None:
        pass


def windows_and_ticks() -> Topology:
    builder = StreamsBuilder()
    stream = builder.stream("in", TEXT)
    stream.process(Heartbeat).to("ticks", Produced(key_serde=STRING, value_serde=STRING))
    (
        stream.group_by_key(Grouped(key_serde=STRING, value_serde=STRING))
        .windowed_by(TimeWindows.of_size_with_no_grace(timedelta(milliseconds=10)))
        .count(materialized=Materialized("counts", key_serde=STRING, value_serde=LONG))
        .to_stream(lambda windowed, count: f"{windowed.key}@{windowed.window.start_ms}")
        .to("out", Produced(key_serde=STRING, value_serde=LONG))
    )
    return builder.build()


def test_a_task_that_starts_anew_goes_on_as_if_it_had_not_stopped() -> None:
    rows = [(3, "a", "x"), (8, "a", "x"), (21, "b", "x"), (12, "a", "late"), (29, "a", "x"), (26, "b", "x")]
    undisturbed = task_of(windows_and_ticks(), Host())
    whole = []
    for offset, row in enumerate(rows):
        undisturbed.add_records("in", 0, records(row, first_offset=offset))
        undisturbed.process_all()
        whole += commit(undisturbed)

    host, remembered, parts = Host(), None, []
    dropped = 0
    for offset, row in enumerate(rows):
        task = task_of(windows_and_ticks(), host, remembered)
        task.add_records("in", 0, records(row, first_offset=offset))
        task.process_all()
        parts += commit(task)
        dropped += task.state.dropped
        remembered = task.remember()
        task.close()

    assert parts == whole
    assert [key for key, _ in whole].count(b"tick") == 3
    # Operator time survives: the record at 12 is late for its window although its task had just started.
    assert dropped == undisturbed.state.dropped == 1


def test_a_rolled_back_batch_leaves_no_trace() -> None:
    builder = StreamsBuilder()
    builder.table("in", TEXT, Materialized("rows", key_serde=STRING, value_serde=STRING))
    host = Host()
    task = task_of(builder.build(), host)
    task.add_records("in", 0, records((1, "k", "kept")))
    task.process_all()
    commit(task)
    task.add_records("in", 0, records((2, "k", "lost"), first_offset=1))
    task.process_all()
    task.commit()
    task.engines()["rows"].rollback()
    fresh = task_of(builder.build(), host)
    assert fresh.stores["rows"].get("k") == ("kept", 1)


def test_a_batch_waits_for_an_input_whose_records_were_all_skipped() -> None:
    builder = StreamsBuilder()
    numbers = builder.stream("a", Consumed(key_serde=STRING, value_serde=LONG)).map_values(str)
    numbers.merge(builder.stream("b", TEXT)).to("out", Produced(key_serde=STRING, value_serde=STRING))
    skipping = LogAndContinueExceptionHandler()
    task = task_of(builder.build(), Host(), deserialization_exception_handler=skipping)
    task.add_records("a", 0, records((1, "k", "no number")), resumes_ms=-1)
    task.add_records("b", 0, records((9, "k", "b9")))
    task.process_all()
    # The next record of a may be older than b9.
    assert commit(task) == []
    task.add_records("a", 0, [(1, 5, b"k", bytes(7) + b"\5", ())])
    task.process_all()
    assert [value for _, value in commit(task)] == [b"5", b"b9"]


def test_a_batch_asks_the_timestamp_extractor_once_per_record() -> None:
    times = count(1)
    builder = StreamsBuilder()
    asked = Consumed(key_serde=STRING, value_serde=STRING, timestamp_extractor=lambda _record, _time: next(times))
    builder.stream("in", asked).to("out", Produced(key_serde=STRING, value_serde=STRING))
    task = task_of(builder.build(), Host())
    task.add_records("in", 0, records((0, "k", "a"), (0, "k", "b"), (0, "k", "c")))
    task.process_all()
    task.commit()
    assert [output[1] for _, outputs in task.take_outputs() for output in outputs] == [1, 2, 3]


class Once(Processor[str, str, str, str]):
    """Ticks at the next record after each record, once."""

    def process(self, record: Record[str, str]) -> None:
        def tick(now_ms: int) -> None:
            schedule.cancel()
            self.context.forward(Record("tick", str(now_ms), now_ms))

        start_ms = record.timestamp_ms + 1
        schedule = self.context.schedule(
            timedelta(milliseconds=10), PunctuationType.STREAM_TIME, tick, start_time_ms=start_ms
        )


def test_what_a_record_schedules_has_nothing_to_do_with_schedules_before_a_restart() -> None:
    builder = StreamsBuilder()
    builder.stream("in", TEXT).process(Once).to("out", Produced(key_serde=STRING, value_serde=STRING))
    host, remembered = Host(), None
    for offset in (0, 2):
        task = task_of(builder.build(), host, remembered)
        task.add_records("in", 0, records((offset, "k", "a"), (offset + 1, "k", "b"), first_offset=offset))
        task.process_all()
        assert [value for _, value in commit(task)] == [str(offset + 1).encode()]
        remembered = task.remember()
        assert remembered["punctuations"] == {}


class Closing(Processor[str, str, str, str]):
    closed: ClassVar[list[str]] = []

    def __init__(self, name: str) -> None:
        self.name = name

    def process(self, record: Record[str, str]) -> None:
        pass

    def close(self) -> None:
        self.closed.append(self.name)
        if self.name == "broken":
            message = "no"
            raise ValueError(message)


def test_a_processor_that_cannot_be_closed_keeps_nothing_else_open() -> None:
    builder = StreamsBuilder()
    stream = builder.stream("in", TEXT)
    stream.process(lambda: Closing("broken"), name="broken")
    stream.process(lambda: Closing("other"))
    builder.table("rows", TEXT, Materialized("rows", key_serde=STRING, value_serde=STRING))
    task = task_of(builder.build(), Host())
    Closing.closed.clear()
    with pytest.raises(StreamsError, match="failed to close processor 'broken'"):
        task.close()
    assert Closing.closed == ["broken", "other"]
    assert not task.stores["rows"].open


def test_an_input_that_resumes_later_lets_the_others_go_on_until_then() -> None:
    task = task_of(merged(), Host())
    task.add_records("a", 0, records((1, "k", "a1")), resumes_ms=6)
    task.add_records("b", 0, records((2, "k", "b2"), (5, "k", "b5"), (6, "k", "b6")))
    task.process_all()
    assert [value for _, value in commit(task)] == [b"a1", b"b2", b"b5"]
    assert task.next_offset("a", 0) is None
    assert task.next_offset("b", 0) == 2
    task.drop_queued()
    assert task.next_offset("b", 0) is None


def test_an_empty_input_that_resumes_later_holds_back_what_is_not_older() -> None:
    task = task_of(merged(), Host())
    task.add_records("a", 0, [], resumes_ms=3)
    task.add_records("b", 0, records((2, "k", "b2"), (3, "k", "b3")))
    task.process_all()
    assert [value for _, value in commit(task)] == [b"b2"]


def test_records_of_several_upstream_tasks_are_merged_by_time() -> None:
    task = task_of(merged(), Host())
    task.add_upstream_pages("a", 0, TaskId(0, 10), (records((1, "k", "x1")), records((5, "k", "x5"))))
    task.add_upstream_pages("a", 0, TaskId(0, 2), (records((1, "k", "y1"), (9, "k", "y9"), (4, "k", "y4")),))
    task.add_records("b", 0, records((1, "k", "b1")))
    task.process_all()
    # At equal times by topic, then by upstream task; nobody overtakes within a task.
    assert [value for _, value in commit(task)] == [b"y1", b"x1", b"b1", b"x5", b"y9", b"y4"]

"""The test driver: clocks, topics, partitions, batches and stores."""

from __future__ import annotations

import re
from contextlib import nullcontext
from datetime import timedelta
from pathlib import Path

import pytest

from headrace import (
    Consumed,
    DeserializationError,
    Grouped,
    LogAndContinueExceptionHandler,
    LogAndFailExceptionHandler,
    Materialized,
    Processor,
    ProcessorStateError,
    Produced,
    PunctuationType,
    Record,
    Serdes,
    StreamsBuilder,
    StreamsConfig,
    StreamsError,
    TestRecord,
    Topology,
    TopologyError,
    TopologyTestDriver,
    UnknownStateStoreError,
    WallclockTimestampExtractor,
)
from headrace.handlers import DeserializationExceptionHandler
from headrace.processor import ProcessorContext

STRING, LONG = Serdes.string(), Serdes.long()
TEXT = Consumed(key_serde=STRING, value_serde=STRING)
WRITE_TEXT = Produced(key_serde=STRING, value_serde=STRING)


def pass_through() -> Topology:
    builder = StreamsBuilder()
    builder.stream("in", TEXT).to("out")
    return builder.build()


def counting(*, caching: bool = True) -> Topology:
    builder = StreamsBuilder()
    (
        builder.stream("in", TEXT)
        .group_by(lambda key, value: value, Grouped("by-value", key_serde=STRING, value_serde=STRING))
        .count(materialized=Materialized("counts", key_serde=STRING, caching=caching))
        .to_stream()
        .to("out")
    )
    return builder.build()


def test_records_get_the_topics_clock_and_it_advances() -> None:
    with TopologyTestDriver(pass_through(), initial_wall_clock_ms=0) as driver:
        topic = driver.create_input_topic("in", STRING, STRING, start_ms=100, auto_advance=timedelta(milliseconds=10))
        topic.pipe_values(["a", "b"])
        topic.advance_time(timedelta(milliseconds=5))
        topic.pipe_input(value="c")
        topic.pipe_input(value="d", timestamp_ms=7)
        out = driver.create_output_topic("out", STRING, STRING)
        assert [record.timestamp_ms for record in out.read_records()] == [100, 110, 125, 7]


def test_a_topics_clock_starts_at_the_wall_clock() -> None:
    with TopologyTestDriver(pass_through(), initial_wall_clock_ms=1234) as driver:
        driver.create_input_topic("in", STRING, STRING).pipe_input("k", "v")
        assert driver.create_output_topic("out", STRING, STRING).read_record().timestamp_ms == 1234


def test_reading_an_empty_topic_says_whether_it_was_ever_written() -> None:
    with TopologyTestDriver(pass_through()) as driver:
        out = driver.create_output_topic("out", STRING, STRING)
        with pytest.raises(LookupError, match="nothing was written to it so far"):
            out.read_record()
        driver.create_input_topic("in", STRING, STRING).pipe_input("k", "v")
        assert out.queue_size() == 1
        assert out.read_value() == "v"
        with pytest.raises(LookupError, match="all its records have been read"):
            out.read_value()


def test_reading_a_topic_that_nobody_writes_suggests_another() -> None:
    with TopologyTestDriver(pass_through()) as driver, pytest.raises(LookupError, match="did you mean 'out'"):
        driver.create_output_topic("outt", STRING, STRING).read_value()


def test_topics_have_the_serdes_of_the_topology_unless_others_are_given() -> None:
    with TopologyTestDriver(counting()) as driver:
        driver.create_input_topic("in").pipe_input("k", "v")
        assert driver.create_output_topic("out").read_key_value() == ("v", 1)


def test_records_that_wait_for_a_commit_are_not_forgotten_silently() -> None:
    driver = TopologyTestDriver(counting(), batched=True)
    driver.create_input_topic("in").pipe_values(["a", "b"])
    with pytest.raises(LookupError, match="2 records wait to be processed: call commit"):
        driver.create_output_topic("out").read_value()
    with pytest.warns(UserWarning, match="2 records were piped in but never processed"):
        driver.close()


def test_a_partition_count_for_an_unknown_topic_is_refused() -> None:
    with pytest.raises(TopologyError, match=r"neither reads nor writes the topic 'inn'.*did you mean 'in'"):
        TopologyTestDriver(pass_through(), partitions={"inn": 3})


def test_piped_records_carry_headers_and_partitions() -> None:
    with TopologyTestDriver(pass_through(), partitions=3) as driver:
        topic = driver.create_input_topic("in", STRING, STRING)
        topic.pipe_record(TestRecord("k", "v", timestamp_ms=1, partition=2))
        topic.pipe_input("k", "v", timestamp_ms=2, headers=[("h", b"x"), ("h", None)])
        first, second = driver.create_output_topic("out", STRING, STRING).read_records()
        assert first.equals_ignore_partition(TestRecord("k", "v", 1))
        assert second.headers.all("h") == (b"x", None)


def test_bad_headers_and_partitions_are_refused() -> None:
    with TopologyTestDriver(pass_through(), partitions=2) as driver:
        topic = driver.create_input_topic("in", STRING, STRING)
        with pytest.raises(StreamsError, match="a header is a pair of str and bytes"):
            topic.pipe_input("k", "v", headers=[("h", "text")])  # type: ignore[list-item]
        with pytest.raises(TopologyError, match="has 2 partitions; found a record for partition 7"):
            topic.pipe_input("k", "v", partition=7)


def test_an_unknown_input_topic_is_refused_with_a_suggestion() -> None:
    with TopologyTestDriver(counting()) as driver, pytest.raises(TopologyError, match="did you mean 'in'"):
        driver.create_input_topic("inn")


def test_something_else_than_a_topology_is_refused() -> None:
    with pytest.raises(TopologyError, match="call build"):
        TopologyTestDriver(StreamsBuilder())  # type: ignore[arg-type]


def test_a_closed_driver_refuses_work() -> None:
    driver = TopologyTestDriver(pass_through())
    topic = driver.create_input_topic("in", STRING, STRING)
    driver.close()
    driver.close()
    with pytest.raises(TopologyError, match="closed"):
        topic.pipe_input("k", "v")


def test_every_record_is_committed_by_itself() -> None:
    with TopologyTestDriver(counting()) as driver:
        driver.create_input_topic("in", STRING, STRING).pipe_values(["a", "a", "b"])
        out = driver.create_output_topic("out", STRING, LONG)
        assert out.read_key_values() == [("a", 1), ("a", 2), ("b", 1)]


def test_a_batch_is_processed_when_it_is_committed_and_merges_updates() -> None:
    with TopologyTestDriver(counting(), batched=True) as driver:
        topic, out = driver.create_input_topic("in", STRING, STRING), driver.create_output_topic("out", STRING, LONG)
        topic.pipe_values(["a", "a", "b"])
        assert out.is_empty()
        driver.commit()
        assert out.read_key_values() == [("a", 2), ("b", 1)]
        topic.pipe_values(["b", "a"])
        driver.commit()
        assert out.read_key_values() == [("b", 2), ("a", 3)]


def test_a_batch_without_a_cache_forwards_every_update() -> None:
    with TopologyTestDriver(counting(caching=False), batched=True) as driver:
        driver.create_input_topic("in", STRING, STRING).pipe_values(["a", "a", "b"])
        driver.commit()
        out = driver.create_output_topic("out", STRING, LONG)
        assert out.read_key_values() == [("a", 1), ("a", 2), ("b", 1)]


def test_commit_has_nothing_to_do_where_every_record_is_committed() -> None:
    with TopologyTestDriver(counting()) as driver:
        driver.create_input_topic("in").pipe_values(["a", "a"])
        driver.commit()
        assert driver.create_output_topic("out").read_values() == [1, 2]


def test_a_batch_takes_its_inputs_by_time_and_then_by_topic() -> None:
    builder = StreamsBuilder()
    builder.stream("b", TEXT).merge(builder.stream("a", TEXT)).to("out", WRITE_TEXT)
    with TopologyTestDriver(builder.build(), batched=True) as driver:
        b, a = driver.create_input_topic("b", STRING, STRING), driver.create_input_topic("a", STRING, STRING)
        for topic, name in ((b, "b"), (a, "a")):
            for timestamp_ms in (1, 5, 3):
                topic.pipe_input("k", f"{name}{timestamp_ms}", timestamp_ms=timestamp_ms)
        driver.commit()
        values = driver.create_output_topic("out", STRING, STRING).read_values()
    # 5 stands before 3 in both partitions: the order within a partition is kept.
    assert values == ["a1", "b1", "a5", "a3", "b5", "b3"]


def test_partitions_have_their_own_tasks_and_stores() -> None:
    with TopologyTestDriver(counting(), partitions=4) as driver:
        words = [f"word-{n}" for n in range(20)]
        driver.create_input_topic("in", STRING, STRING).pipe_values(words + words)
        rows = {}
        for partition in range(4):
            rows.update({row.key: row.value for row in driver.get_key_value_store("counts", partition=partition).all()})
        assert rows == dict.fromkeys(words, 2)
        with pytest.raises(UnknownStateStoreError, match="has 4 partitions; say which one"):
            driver.get_key_value_store("counts")
        sizes = [driver.get_key_value_store("counts", partition=n).approximate_num_entries() for n in range(4)]
        assert sum(sizes) == 20
        assert max(sizes) < 20


def test_inputs_of_a_join_must_have_as_many_partitions() -> None:
    builder = StreamsBuilder()
    builder.stream("orders", TEXT).join(builder.table("users", TEXT), lambda left, right: left).to("out")
    with pytest.raises(TopologyError, match="'orders' has 4 partitions"):
        TopologyTestDriver(builder.build(), partitions={"orders": 4, "users": 6})


def test_topics_that_were_written_are_listed_with_internal_ones() -> None:
    with TopologyTestDriver(counting(), StreamsConfig(application_id="app")) as driver:
        driver.create_input_topic("in", STRING, STRING).pipe_input("k", "v")
        assert driver.produced_topic_names() == {"app-by-value-repartition", "app-counts-changelog", "out"}
        changes = driver.create_output_topic("app-counts-changelog", STRING, LONG)
        assert changes.read_key_values() == [("v", 1)]


def test_stores_can_be_kept_on_disk(tmp_path: Path) -> None:
    config = StreamsConfig(application_id="app")
    for expected in (1, 2):
        with TopologyTestDriver(counting(), config, state_dir=tmp_path) as driver:
            driver.create_input_topic("in", STRING, STRING).pipe_input("k", "v", timestamp_ms=0)
            assert driver.get_key_value_store("counts").get("v") == expected
    assert (tmp_path / "app").is_dir()


def test_a_state_directory_that_is_in_use_is_refused(tmp_path: Path) -> None:
    with (
        TopologyTestDriver(counting(), state_dir=tmp_path),
        pytest.raises(ProcessorStateError, match="cannot be opened"),
    ):
        TopologyTestDriver(counting(), state_dir=tmp_path)
    (tmp_path / "file").write_text("no directory")
    with pytest.raises(ProcessorStateError, match="choose a directory"):
        TopologyTestDriver(counting(), state_dir=tmp_path / "file")


def test_a_store_is_asked_for_by_its_kind() -> None:
    with TopologyTestDriver(counting()) as driver:
        driver.create_input_topic("in", STRING, STRING).pipe_input("k", "v", timestamp_ms=3)
        assert driver.get_timestamped_key_value_store("counts").get("v") == (1, 3)
        assert driver.get_key_value_store("counts").get("v") == 1
        assert set(driver.get_all_state_stores()) == {"counts"}
        with pytest.raises(UnknownStateStoreError, match="did you mean 'counts'"):
            driver.get_key_value_store("count")
        with pytest.raises(UnknownStateStoreError, match="of kind timestamped_key_value, not session"):
            driver.get_session_store("counts")
        with pytest.raises(UnknownStateStoreError, match="has no partition 3"):
            driver.get_key_value_store("counts", partition=3)


class Ticker(Processor[str, str, str, str]):
    """Forwards the time of every tick of both clocks, ten milliseconds apart."""

    def init(self, context: ProcessorContext) -> None:
        super().init(context)
        for clock in PunctuationType:
            context.schedule(timedelta(milliseconds=10), clock, lambda now, clock=clock: self.tick(clock, now))  # type: ignore[misc]

    def tick(self, clock: PunctuationType, now_ms: int) -> None:
        assert self.context.record_metadata is None
        self.context.forward(Record(clock.name.lower(), str(now_ms), now_ms))

    def process(self, record: Record[str, str]) -> None:
        assert self.context.record_metadata is not None


@pytest.mark.parametrize("batched", [False, True])
def test_punctuations_follow_their_clocks_and_collapse_when_missed(batched: bool) -> None:  # noqa: FBT001
    builder = StreamsBuilder()
    builder.stream("in", TEXT).process(Ticker).to("out", WRITE_TEXT)
    with TopologyTestDriver(builder.build(), initial_wall_clock_ms=1000, batched=batched) as driver:
        topic, out = driver.create_input_topic("in", STRING, STRING), driver.create_output_topic("out", STRING, STRING)
        ticks = []
        for step in (0, 9, 35, "wall", 39, 40):
            if isinstance(step, int):
                topic.pipe_input("k", "v", timestamp_ms=step)
            else:
                driver.advance_wall_clock_time(timedelta(milliseconds=25))
            if batched:
                driver.commit()
            ticks.append(out.read_key_values())
    stream = "stream_time"
    assert ticks == [[(stream, "0")], [], [(stream, "35")], [("wall_clock_time", "1025")], [], [(stream, "40")]]


def test_time_does_not_go_back() -> None:
    with TopologyTestDriver(pass_through()) as driver, pytest.raises(TopologyError, match="time cannot go back"):
        driver.advance_wall_clock_time(timedelta(seconds=-1))


def test_a_topic_that_matches_a_pattern_is_read() -> None:
    builder = StreamsBuilder()
    builder.stream(re.compile("orders-.*"), TEXT).to("out")
    with TopologyTestDriver(builder.build()) as driver:
        driver.create_input_topic("orders-eu", STRING, STRING).pipe_input("k", "eu")
        driver.create_input_topic("orders-us", STRING, STRING).pipe_input("k", "us")
        assert driver.create_output_topic("out", STRING, STRING).read_values() == ["eu", "us"]
        with pytest.raises(TopologyError, match="does not read the topic"):
            driver.create_input_topic("payments")


@pytest.mark.parametrize("batched", [False, True])
@pytest.mark.parametrize("handler", [LogAndContinueExceptionHandler(), LogAndFailExceptionHandler()])
def test_dead_letters_are_there_even_if_the_last_record_stops_the_application(
    handler: DeserializationExceptionHandler,
    batched: bool,  # noqa: FBT001
) -> None:
    config = StreamsConfig(deserialization_exception_handler=handler, errors_dead_letter_queue_topic_name="letters")
    builder = StreamsBuilder()
    builder.stream("in").to("out")
    fails = isinstance(handler, LogAndFailExceptionHandler)
    with TopologyTestDriver(builder.build(), config, batched=batched) as driver:
        with pytest.raises(DeserializationError) if fails else nullcontext():
            driver.pipe_raw("in", b"key", b"{no json", timestamp_ms=5)
            driver.commit()
        letters = driver.create_output_topic("letters", STRING, STRING).read_records()
    assert [(letter.key, letter.value, letter.timestamp_ms) for letter in letters] == [("key", "{no json", 5)]


@pytest.mark.parametrize("partitions", [1, 3])
@pytest.mark.parametrize("batched", [False, True])
def test_one_test_can_be_run_in_all_modes_of_the_driver(partitions: int, *, batched: bool) -> None:
    builder = StreamsBuilder()
    builder.stream("words").group_by(lambda _key, word: word).count().to_stream().to("word-counts")
    with TopologyTestDriver(builder.build(), batched=batched, partitions=partitions) as driver:
        driver.create_input_topic("words").pipe_values(["tea", "rum", "tea"])
        driver.commit()
        assert driver.create_output_topic("word-counts").read_key_values_to_map() == {"tea": 2, "rum": 1}


@pytest.mark.parametrize("batched", [False, True])
def test_processing_time_is_the_clock_of_the_driver(batched: bool) -> None:  # noqa: FBT001
    builder = StreamsBuilder()
    builder.stream("in", Consumed(timestamp_extractor=WallclockTimestampExtractor())).to("out")
    with TopologyTestDriver(builder.build(), initial_wall_clock_ms=1000, batched=batched) as driver:
        topic = driver.create_input_topic("in")
        topic.pipe_input("k", 1, timestamp_ms=5)
        driver.commit()
        driver.advance_wall_clock_time(timedelta(seconds=1))
        topic.pipe_input("k", 2, timestamp_ms=6)
        driver.commit()
        records = driver.create_output_topic("out").read_records()
    assert [record.timestamp_ms for record in records] == [1000, 2000]

"""Records with a negative timestamp, by timestamp extractor."""

from typing import Any

import pytest

from headrace import (
    Consumed,
    FailOnInvalidTimestamp,
    LogAndSkipOnInvalidTimestamp,
    StreamsBuilder,
    StreamsConfig,
    TopologyTestDriver,
    UsePartitionTimeOnInvalidTimestamp,
    WallclockTimestampExtractor,
)
from headrace.errors import InvalidTimestampError

pytestmark = pytest.mark.parametrize(("batched", "by_config"), [(False, False), (True, False), (False, True)])


def run(extractor: Any, times: list[int], *, batched: bool, by_config: bool) -> tuple[list[Any], float]:
    """Returns value and timestamp of what came out, and how many records were dropped."""
    builder = StreamsBuilder()
    builder.stream("in", Consumed(timestamp_extractor=None if by_config else extractor)).to("out")
    config = StreamsConfig(default_timestamp_extractor=extractor) if by_config else StreamsConfig()
    with TopologyTestDriver(builder.build(), config, batched=batched) as driver:
        topic = driver.create_input_topic("in")
        for index, timestamp_ms in enumerate(times):
            topic.pipe_input("k", index, timestamp_ms=timestamp_ms)
        if batched:
            driver.commit()
        records = driver.create_output_topic("out").read_records()
        return [(each.value, each.timestamp_ms) for each in records], driver.metrics()["dropped-records-total"]


def test_the_default_stops_the_application(*, batched: bool, by_config: bool) -> None:
    with pytest.raises(
        InvalidTimestampError, match=r"record at in-0 offset 1 has the invalid timestamp -1; let the pr"
    ):
        run(FailOnInvalidTimestamp(), [5, -1], batched=batched, by_config=by_config)


def test_the_record_can_be_skipped(*, batched: bool, by_config: bool) -> None:
    found = run(LogAndSkipOnInvalidTimestamp(), [5, -1, 6, -7], batched=batched, by_config=by_config)
    assert found == ([(0, 5), (2, 6)], 2)


def test_the_partitions_time_can_stand_in(*, batched: bool, by_config: bool) -> None:
    found = run(UsePartitionTimeOnInvalidTimestamp(), [5, -1, 3, -1], batched=batched, by_config=by_config)
    assert found == ([(0, 5), (1, 5), (2, 3), (3, 5)], 0)


def test_the_partitions_time_must_be_known(*, batched: bool, by_config: bool) -> None:
    with pytest.raises(InvalidTimestampError, match="the time of its partition is not known yet"):
        run(UsePartitionTimeOnInvalidTimestamp(), [-1], batched=batched, by_config=by_config)


def test_the_wall_clock_takes_no_notice(*, batched: bool, by_config: bool) -> None:
    records, dropped = run(WallclockTimestampExtractor(), [-1, 5], batched=batched, by_config=by_config)
    assert [value for value, _ in records] == [0, 1]
    assert all(timestamp_ms > 1_700_000_000_000 for _, timestamp_ms in records)
    assert dropped == 0


def test_an_extractor_of_ones_own_drops_with_a_negative_answer(*, batched: bool, by_config: bool) -> None:
    extractor: Any = lambda record, _time: 9 if record.timestamp_ms >= 0 else -1  # noqa: E731
    assert run(extractor, [5, -1, 6], batched=batched, by_config=by_config) == ([(0, 9), (2, 9)], 1)

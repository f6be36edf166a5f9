"""Timestamps of records by the built-in extractors."""

import logging
import pickle
from dataclasses import replace
from typing import Any

import pytest

from headrace import Consumed, StreamsBuilder, TopologyTestDriver
from headrace.errors import InvalidTimestampError
from headrace.record import Headers
from headrace.timestamps import (
    ConsumedRecord,
    FailOnInvalidTimestamp,
    LogAndSkipOnInvalidTimestamp,
    UsePartitionTimeOnInvalidTimestamp,
    WallclockTimestampExtractor,
)

METADATA_ONLY = [FailOnInvalidTimestamp(), LogAndSkipOnInvalidTimestamp(), UsePartitionTimeOnInvalidTimestamp()]


def record(timestamp_ms: int) -> ConsumedRecord:
    return ConsumedRecord("k", "v", timestamp_ms, topic="orders", partition=1, offset=7)


class FromValue(LogAndSkipOnInvalidTimestamp):
    def __call__(self, record: ConsumedRecord, partition_time_ms: int, /) -> int:
        return super().__call__(replace(record, timestamp_ms=record.value), partition_time_ms)


def test_extractor_that_extends_a_built_in_one_is_asked() -> None:
    builder = StreamsBuilder()
    builder.stream("in", Consumed(timestamp_extractor=FromValue())).to("out")
    with TopologyTestDriver(builder.build()) as driver:
        driver.create_input_topic("in").pipe_key_values([("a", 5), ("b", -1), ("c", 3)], start_ms=100)
        written = driver.create_output_topic("out").read_records()
        assert [(record.key, record.timestamp_ms) for record in written] == [("a", 5), ("c", 3)]


@pytest.mark.parametrize("extractor", METADATA_ONLY)
@pytest.mark.parametrize("timestamp_ms", [0, 1000])
def test_valid_timestamps_are_taken_as_they_are(extractor: Any, timestamp_ms: int) -> None:
    assert extractor(record(timestamp_ms), 5000) == timestamp_ms
    assert extractor.metadata_only


def test_invalid_timestamp_fails_by_default() -> None:
    with pytest.raises(InvalidTimestampError, match="orders-1 offset 7 has the invalid timestamp -1"):
        FailOnInvalidTimestamp()(record(-1), 5000)


def test_invalid_timestamp_can_be_skipped(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        assert LogAndSkipOnInvalidTimestamp()(record(-1), 5000) < 0
    assert "orders-1 offset 7 is dropped" in caplog.text


def test_partition_time_replaces_an_invalid_timestamp_once_it_is_known() -> None:
    assert UsePartitionTimeOnInvalidTimestamp()(record(-1), 5000) == 5000
    with pytest.raises(InvalidTimestampError, match="time of its partition is not known yet"):
        UsePartitionTimeOnInvalidTimestamp()(record(-1), -1)


def test_wall_clock_ignores_the_record() -> None:
    extractor = WallclockTimestampExtractor()
    assert extractor(record(5), -1) > 1_600_000_000_000
    assert not extractor.metadata_only


def test_extractors_are_values() -> None:
    for extractor in (*METADATA_ONLY, WallclockTimestampExtractor()):
        assert pickle.loads(pickle.dumps(extractor)) == extractor


def test_consumed_record_wraps_headers() -> None:
    pairs: Any = (("h", b"1"),)
    assert type(ConsumedRecord("k", "v", 0, pairs).headers) is Headers

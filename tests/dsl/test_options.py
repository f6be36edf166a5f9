"""Options check what they get when they are made."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

import headrace
from headrace import (
    BufferConfig,
    Consumed,
    Grouped,
    Materialized,
    Record,
    Serdes,
    Stores,
    StreamJoined,
    TestRecord,
    TopologyError,
)

SECOND = timedelta(seconds=1)

# Any: the wrong types are the point.
given: Any = headrace


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: given.Consumed(key_serde="string"), "Consumed: key_serde must be a serde; found str 'string'"),
        (lambda: given.Consumed(value_serde=Serdes.string), r"call it: Serdes.string\(\)"),
        (lambda: given.Consumed(timestamp_extractor=1), "timestamp_extractor must be a function"),
        (lambda: given.Consumed(offset_reset="oldest"), "offset reset: must be one of"),
        (lambda: given.Consumed(name="a b"), "'a b' is illegal"),
        (lambda: given.Produced(partitioner="hash"), "partitioner must be a function"),
        (lambda: given.Grouped(Serdes.string()), "a name must be a str"),
        (lambda: given.Grouped("g", "string"), "Grouped: key_serde must be a serde"),
        (lambda: given.Joined(grace_period=5), "grace_period must be a timedelta"),
        (lambda: given.Joined(grace_period=-SECOND), "must not be negative"),
        (lambda: given.TableJoined(partitioner=3), "partitioner must be a function"),
        (lambda: given.Repartitioned(partitions=0), "partitions must be an int of at least 1"),
        (lambda: given.Repartitioned(partitions="4"), "partitions must be an int of at least 1"),
        (lambda: given.Branched(name=""), "must be a str that is not empty"),
        (lambda: given.Branched(function=print, consumer=print), "not both"),
        (lambda: given.Branched(function="f"), "function must be a function"),
        (lambda: given.Printed.to_file(" "), "path of the file must not be empty"),
        (lambda: given.Printed(formatter=1), "formatter must be a function"),
        (lambda: given.Materialized("a b"), "'a b' is illegal"),
        (lambda: given.Materialized(5), "store must be a name or a store supplier; found int 5"),
        (lambda: given.Materialized("s", retention=-SECOND), "retention must not be negative"),
        (
            lambda: given.Materialized("s", store_type="tape"),
            "must be 'lmdb', 'rocksdb', 'disk' .* or 'in_memory'",
        ),
        (
            lambda: given.Materialized(Stores.in_memory_key_value_store("s"), store_type="disk"),
            "already says what type the store has",
        ),
        (lambda: given.StreamJoined(this_store_supplier="s"), "this_store_supplier must be a store supplier"),
        (lambda: given.StreamJoined(dsl_store="tape"), "must be 'lmdb', 'rocksdb', 'disk'"),
        (lambda: given.BufferConfig.max_records(-1), "must be an int that is not negative"),
        (lambda: given.Suppressed.until_time_limit(SECOND, None), "must be a BufferConfig; found None"),
        (lambda: given.Suppressed.until_time_limit(None, BufferConfig.unbounded()), "must be a timedelta; found None"),
        (lambda: given.Suppressed.until_time_limit(-SECOND, BufferConfig.unbounded()), "must not be negative"),
        (lambda: given.Suppressed.until_window_closes(BufferConfig.max_records(1)), "cannot give final results"),
    ],
)
def test_wrong_options_are_refused_with_a_reason(make: Callable[[], Any], message: str) -> None:
    with pytest.raises(TopologyError, match=message):
        make()


def test_two_stores_of_a_join_need_two_names() -> None:
    supplier = Stores.in_memory_window_store("s", SECOND, SECOND, retain_duplicates=True)
    with pytest.raises(TopologyError, match="both store suppliers have the name 's'"):
        StreamJoined(this_store_supplier=supplier, other_store_supplier=supplier)


def test_options_are_values() -> None:
    assert Consumed(Serdes.string(), Serdes.string()) == Consumed(Serdes.string(), Serdes.string())
    assert Materialized("s", caching=False) != Materialized("s")
    with pytest.raises(AttributeError):
        Grouped("g").name = "h"  # type: ignore[misc]  # that it fails is the point


def test_kafkas_names_of_store_types_are_understood() -> None:
    assert Materialized("s", store_type="rocksDB").store_type == "rocksDB"
    assert StreamJoined(dsl_store="in_memory").dsl_store == "in_memory"


@pytest.mark.parametrize("reset", ["earliest", "latest", "none", timedelta(hours=1)])
def test_offset_resets_are_accepted(reset: str | timedelta) -> None:
    assert Consumed(offset_reset=reset).offset_reset == reset


def test_buffer_bounds_can_be_combined() -> None:
    config = BufferConfig.max_records(5).with_max_bytes(100).with_logging_disabled()
    assert (config.record_limit, config.byte_limit, config.strict, config.logging) == (5, 100, False, False)
    assert config.with_no_bound().strict


def test_options_and_records_can_be_made_with_explicit_types() -> None:
    assert Consumed[str, int](name="in") == Consumed(name="in")
    assert Materialized[str, int]("rows") == Materialized("rows")
    assert Record[str, int]("key", 1, 0) == Record("key", 1, 0)
    assert TestRecord[str, int]("key", 1) == TestRecord("key", 1)

"""Stores, topics and answers as tables: which columns there are, what is escaped, what reading them changes."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, NamedTuple

import msgspec
import pandas as pd
import pytest

from headrace import (
    Materialized,
    SessionWindows,
    StreamsBuilder,
    TimeWindows,
    TopologyTestDriver,
)
from headrace.errors import MissingDependencyError
from headrace.state import MemoryEngine, Stores
from headrace.tabular import Row, columns_of, to_data_frame, to_html
from headrace.views.results import FailureReason, QueryResult, StateQueryResult


@contextmanager
def _driven(build: Callable[[StreamsBuilder], Any], *records: tuple[Any, Any, int]) -> Iterator[TopologyTestDriver]:
    builder = StreamsBuilder()
    build(builder)
    with TopologyTestDriver(builder.build()) as driver:
        for key, value, timestamp_ms in records:
            driver.create_input_topic("in").pipe_input(key, value, timestamp_ms=timestamp_ms)
        yield driver


def _time(timestamp_ms: int) -> pd.Timestamp:
    return pd.Timestamp(timestamp_ms, unit="ms", tz="UTC")


def _records(frame: Any) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = frame.to_dict("records")
    return found


def test_a_topic_is_read_into_a_frame_once() -> None:
    with _driven(lambda builder: builder.stream("in").to("out"), ("a", 1, 5), (None, None, 7)) as driver:
        topic = driver.create_output_topic("out")
        frame = topic.to_pandas()
        assert list(frame.columns) == ["key", "value", "timestamp"]
        assert frame["key"].tolist() == ["a", None]
        assert frame["value"][0] == 1
        assert pd.isna(frame["value"][1])
        assert frame["timestamp"].tolist() == [_time(5), _time(7)]
        assert topic.is_empty()
        assert len(topic.to_pandas()) == 0


def test_a_notebook_shows_a_topic_and_reads_nothing() -> None:
    with _driven(lambda builder: builder.stream("in").to("out"), ("a", "<b>", 0)) as driver:
        topic = driver.create_output_topic("out")
        html = topic._repr_html_()
        assert "<td>a</td><td>&lt;b&gt;</td><td>1970-01-01 00:00:00.000</td>" in html
        assert "1 row." in html
        assert topic.queue_size() == 1


def test_a_notebook_shows_the_first_rows_only() -> None:
    records = [(f"k{number:02}", number, 0) for number in range(25)]
    with _driven(lambda builder: builder.stream("in").to("out"), *records) as driver:
        html = driver.create_output_topic("out")._repr_html_()
    assert "k19" in html
    assert "k20" not in html
    assert "The first 20 rows." in html


def test_fields_of_values_are_columns() -> None:
    records = [("a", {"cents": 1, "shop": "x"}, 0), ("b", None, 0), ("c", {"cents": 3}, 0)]
    with _driven(lambda builder: builder.stream("in").to("out"), *records) as driver:
        frame = driver.create_output_topic("out").to_pandas()
    assert list(frame.columns) == ["key", "cents", "shop", "timestamp"]
    assert frame["cents"].fillna(-1).tolist() == [1, -1, 3]
    assert frame["shop"].tolist() == ["x", None, None]


@dataclass
class Purchase:
    shop: str


class Order(msgspec.Struct):
    shop: str


class Visit(NamedTuple):
    shop: str


@pytest.mark.parametrize("value", [Purchase("x"), Order("x"), Visit("x"), {"shop": "x"}])
def test_whatever_has_fields_is_spread(value: Any) -> None:
    assert columns_of([Row("a", value)]) == {"key": ["a"], "shop": ["x"]}


def test_values_of_which_some_have_no_fields_stay_whole() -> None:
    assert columns_of([Row("a", {"shop": "x"}), Row("b", 2)]) == {"key": ["a", "b"], "value": [{"shop": "x"}, 2]}


def test_fields_with_the_names_of_columns_are_told_apart() -> None:
    rows = [Row({"id": 1, "key": 2}, {"id": 3, "timestamp": "noon"}, 4)]
    assert columns_of(rows) == {
        "id": [1],
        "key": [2],
        "value.id": [3],
        "timestamp": ["noon"],
        "record_timestamp": [4],
    }


def test_a_store_of_a_table_has_values_or_values_and_times() -> None:
    def build(builder: StreamsBuilder) -> None:
        builder.stream("in").group_by_key().count(materialized=Materialized("counts"))

    with _driven(build, ("a", 1, 5), ("b", 1, 7), ("a", 1, 9)) as driver:
        store = driver.get_key_value_store("counts")
        assert _records(store.to_pandas()) == [{"key": "a", "value": 2}, {"key": "b", "value": 1}]
        assert "<td>a</td><td>2</td>" in store._repr_html_()
        timed = driver.get_timestamped_key_value_store("counts").to_pandas()
        assert _records(timed)[0] == {"key": "a", "value": 2, "timestamp": _time(9)}


def test_windows_have_their_bounds() -> None:
    def build(builder: StreamsBuilder) -> None:
        windows = TimeWindows.of_size_with_no_grace(timedelta(seconds=1))
        builder.stream("in").group_by_key().windowed_by(windows).count(materialized=Materialized("counts"))

    with _driven(build, ("a", 1, 500), ("a", 1, 1500)) as driver:
        frame = driver.get_window_store("counts").to_pandas()
    assert _records(frame) == [
        {"key": "a", "window_start": _time(0), "window_end": _time(1000), "value": 1},
        {"key": "a", "window_start": _time(1000), "window_end": _time(2000), "value": 1},
    ]


def test_sessions_have_their_bounds() -> None:
    def build(builder: StreamsBuilder) -> None:
        sessions = SessionWindows.of_inactivity_gap_with_no_grace(timedelta(seconds=1))
        builder.stream("in").group_by_key().windowed_by(sessions).count(materialized=Materialized("counts"))

    with _driven(build, ("a", 1, 500), ("a", 1, 900)) as driver:
        store = driver.get_session_store("counts")
        row = {"key": "a", "window_start": _time(500), "window_end": _time(900), "value": 2}
        assert _records(store.to_pandas()) == [row]
        assert _records(store.read_only().to_pandas()) == [row]


def test_times_beyond_the_calendar_are_missing_or_numbers() -> None:
    assert pd.isna(to_data_frame({"window_end": [2**63 - 1]})["window_end"][0])
    assert f"<td>{2**63 - 1}</td>" in to_html({"window_end": [2**63 - 1]})


def test_an_empty_store_is_an_empty_table() -> None:
    store = Stores.key_value_store_builder(Stores.in_memory_key_value_store("ages")).build(MemoryEngine())
    assert len(store.to_pandas()) == 0
    assert "0 rows." in store._repr_html_()


def test_without_pandas_an_error_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    store = Stores.key_value_store_builder(Stores.in_memory_key_value_store("ages")).build(MemoryEngine())
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(MissingDependencyError, match=r"to_pandas\(\) needs pandas, .*; run `pip install pandas`"):
        store.to_pandas()
    assert "0 rows." in store._repr_html_()


def test_answers_of_partitions_are_one_table() -> None:
    store = Stores.key_value_store_builder(Stores.in_memory_key_value_store("ages")).build(MemoryEngine())
    store.put("a", 1)
    store.put("b", 2)
    answers: StateQueryResult[Any] = StateQueryResult()
    answers.add_result(1, QueryResult.for_result(store.all()))
    answers.add_result(0, QueryResult.for_result(store.range("b")))
    assert "<td>0</td><td>rows: list(…), or to_pandas()</td>" in answers._repr_html_()
    assert _records(answers.to_pandas()) == [
        {"partition": 0, "key": "b", "value": 2},
        {"partition": 1, "key": "a", "value": 1},
        {"partition": 1, "key": "b", "value": 2},
    ]


def test_answers_show_failures_and_values() -> None:
    answers: StateQueryResult[Any] = StateQueryResult()
    answers.add_result(0, QueryResult.for_result("<5>"))
    answers.add_result(1, QueryResult.for_failure(FailureReason.NOT_ACTIVE, "it is a standby"))
    html = answers._repr_html_()
    assert "<td>0</td><td>&lt;5&gt;</td>" in html
    assert "<td>1</td><td>NOT_ACTIVE: it is a standby</td>" in html


def test_the_answer_of_a_global_store_has_no_partition() -> None:
    answers: StateQueryResult[Any] = StateQueryResult()
    answers.set_global_result(QueryResult.for_result(5))
    assert _records(answers.to_pandas()) == [{"value": 5}]
    assert "<tr><td>5</td></tr>" in answers._repr_html_()

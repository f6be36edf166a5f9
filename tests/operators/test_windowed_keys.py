"""Windowed keys can be written without naming a serde: the application's default is that of the plain key."""

from datetime import timedelta
from typing import Any

import pytest

from headrace import (
    BufferConfig,
    Grouped,
    Materialized,
    Repartitioned,
    Serdes,
    SessionWindows,
    SlidingWindows,
    StreamsBuilder,
    StreamsConfig,
    Suppressed,
    TimeWindows,
    TopologyTestDriver,
)

MINUTE = timedelta(minutes=1)
TUMBLING = TimeWindows.of_size_with_no_grace(MINUTE)
TIMED = Serdes.time_windowed(Serdes.string(), 60_000)
OPTIONS: list[dict[str, Any]] = [{}, {"batched": True}, {"partitions": 3}]


def run(build: Any, keys: Any, config: StreamsConfig | None = None, key: Any = "ada", **options: Any) -> list[str]:
    builder = StreamsBuilder()
    build(builder).to("out")
    with TopologyTestDriver(builder.build(), config, **options) as driver:
        topic = driver.create_input_topic("in")
        topic.pipe_input(key, 1, timestamp_ms=61_000)
        topic.pipe_input(key, 1, timestamp_ms=130_000)
        if "batched" in options:
            driver.commit()
        return [str(each.key) for each in driver.create_output_topic("out", keys, Serdes.bytes()).read_records()]


def counts(b: StreamsBuilder, windows: Any = TUMBLING) -> Any:
    return b.stream("in").group_by_key().windowed_by(windows).count()


WINDOWS = ["[ada@60000/120000]", "[ada@120000/180000]"]


@pytest.mark.parametrize("options", OPTIONS)
def test_results_are_written_with_the_default_serde_inside(options: Any) -> None:
    assert run(lambda b: counts(b).to_stream(), TIMED, **options) == WINDOWS


@pytest.mark.parametrize("options", OPTIONS)
def test_results_are_suppressed_until_the_window_closes(options: Any) -> None:
    final = Suppressed.until_window_closes(BufferConfig.unbounded())
    assert run(lambda b: counts(b).suppress(final).to_stream(), TIMED, **options) == WINDOWS[:1]


def test_sliding_windows_and_sessions_have_their_serdes_too() -> None:
    sliding = SlidingWindows.of_time_difference_with_no_grace(timedelta(seconds=10))
    keys: Any = Serdes.time_windowed(Serdes.string(), 10_000)
    assert run(lambda b: counts(b, sliding).to_stream(), keys)[0] == "[ada@51000/61000]"
    sessions, keys = SessionWindows.of_inactivity_gap_with_no_grace(MINUTE), Serdes.session_windowed(Serdes.string())
    assert run(lambda b: counts(b, sessions).to_stream(), keys)[0] == "[ada@61000/61000]"


@pytest.mark.parametrize("options", OPTIONS)
def test_derived_tables_keep_windowed_keys(options: Any) -> None:
    def build(b: StreamsBuilder) -> Any:
        mapped = counts(b).map_values(str, materialized=Materialized("m"))
        kept = mapped.filter(lambda _k, _v: True, materialized=Materialized("f"))
        return kept.to_stream().repartition(Repartitioned("r"))

    assert sorted(run(build, TIMED, **options)) == sorted(WINDOWS)


@pytest.mark.parametrize("options", OPTIONS)
def test_a_foreign_key_join_asks_with_windowed_keys(options: Any) -> None:
    def build(b: StreamsBuilder) -> Any:
        other = b.stream("in").group_by(lambda _k, _v: "1", Grouped("g")).count()
        # The answer comes a batch later, and the window that asked must still be there.
        kept: Any = Materialized(retention=10 * MINUTE)
        left = b.stream("in").group_by_key().windowed_by(TUMBLING).count(materialized=kept)
        return left.join(other, lambda left, _right: left, foreign_key=str).to_stream()

    assert set(run(build, TIMED, **options)) == set(WINDOWS)


def test_a_foreign_key_join_writes_primary_keys_with_the_serde_of_keys() -> None:
    builder = StreamsBuilder()
    orders, users = builder.table("orders"), builder.table("users")
    orders.join(users, lambda order, user: order + user, foreign_key=str).to_stream().to("out")
    config = StreamsConfig(default_key_serde=Serdes.string(), default_value_serde=Serdes.long())
    with TopologyTestDriver(builder.build(), config) as driver:
        driver.create_input_topic("users").pipe_input("5", 10)
        driver.create_input_topic("orders").pipe_input("o1", 5)
        assert driver.create_output_topic("out").read_key_values() == [("o1", 15)]


def test_the_default_serde_is_the_applications() -> None:
    config = StreamsConfig(default_key_serde=Serdes.long())
    keys = Serdes.time_windowed(Serdes.long(), 60_000)
    assert run(lambda b: counts(b).to_stream(), keys, config, key=7)[0] == "[7@60000/120000]"

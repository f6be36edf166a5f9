"""The clock that functions without a context go by."""

from __future__ import annotations

import time

import pytest

from headrace import Consumed, Produced, Serdes, StreamsBuilder, TopologyTestDriver
from headrace.runtime.task_clock import task_clock_ms


def test_outside_of_a_task_it_is_the_clock_of_the_machine() -> None:
    before_ms = time.time_ns() // 1_000_000
    assert before_ms <= task_clock_ms() <= time.time_ns() // 1_000_000


@pytest.mark.parametrize("batched", [False, True])
def test_functions_of_a_task_see_the_clock_of_its_host(*, batched: bool) -> None:
    builder = StreamsBuilder()
    text = Serdes.string()
    stream = builder.stream("in", Consumed(key_serde=text, value_serde=text))
    stamped = stream.map_values(lambda value: f"{value} at {task_clock_ms()}")
    stamped.to("out", Produced(key_serde=text, value_serde=text))
    with TopologyTestDriver(builder.build(), initial_wall_clock_ms=7, batched=batched) as driver:
        source = driver.create_input_topic("in", text, text)
        target = driver.create_output_topic("out", text, text)
        source.pipe_input("k", "a")
        if batched:
            driver.commit()
        assert target.read_value() == "a at 7"
    assert task_clock_ms() > 1_000_000


def test_a_task_that_fails_takes_its_clock_with_it() -> None:
    builder = StreamsBuilder()
    text = Serdes.string()

    def fail(value: str) -> str:
        raise ValueError(value)

    builder.stream("in", Consumed(key_serde=text, value_serde=text)).map_values(fail).to("out")
    with TopologyTestDriver(builder.build(), initial_wall_clock_ms=7) as driver:
        with pytest.raises(Exception, match="boom"):
            driver.create_input_topic("in", text, text).pipe_input("k", "boom")
        assert task_clock_ms() > 1_000_000

"""Stateless operations: what their functions may give, and what type checkers know of the result."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any, assert_type

import pytest

from headrace import (
    Consumed,
    KStream,
    ProcessingError,
    Producer,
    Serdes,
    Streams,
    StreamsBuilder,
    StreamsConfig,
    TopologyTestDriver,
    has_value,
)
from headrace.app.engine import local_engine


@pytest.mark.parametrize("result", ["to be", b"to be", ""])
def test_flat_map_values_to_one_text_is_an_error_with_a_hint(result: Any) -> None:
    builder = StreamsBuilder()
    builder.stream("in").flat_map_values(lambda _value: result).to("out")
    with TopologyTestDriver(builder.build()) as driver:
        topic = driver.create_input_topic("in")
        with pytest.raises(ProcessingError, match=r"flat_map_values needs several results; .*return a list: \[text\]"):
            topic.pipe_input("a", "x")


def test_flat_map_values_takes_every_other_iterable() -> None:
    builder = StreamsBuilder()
    builder.stream("in").flat_map_values(lambda line: (word for word in line.split())).to("out")
    with TopologyTestDriver(builder.build()) as driver:
        driver.create_input_topic("in").pipe_input("a", "to be")
        assert driver.create_output_topic("out").read_values() == ["to", "be"]


def test_filter_narrows_the_type_of_values() -> None:
    builder = StreamsBuilder()

    def parse(text: str) -> int | None:
        return int(text) if text.isdecimal() else None

    stream = builder.stream("in", Consumed(Serdes.string(), Serdes.string()))
    parsed = stream.map_values(parse)
    assert_type(parsed, KStream[str, int | None])
    numbers = parsed.filter(has_value)
    assert_type(numbers, KStream[str, int])
    assert_type(numbers.filter(lambda _key, number: number > 1), KStream[str, int])
    numbers.to("out")
    with TopologyTestDriver(builder.build()) as driver:
        driver.create_input_topic("in").pipe_values(["1", "x", "2"])
        assert driver.create_output_topic("out").read_values() == [1, 2]


class Told(logging.Handler):
    def __init__(self) -> None:
        super().__init__(logging.INFO)
        self.text = ""

    def emit(self, record: logging.LogRecord) -> None:
        self.text += self.format(record) + "\n"


@pytest.mark.parametrize("failing", ["function", "source", "sink"])
def test_logs_do_not_quote_records(tmp_path: Path, failing: str) -> None:
    config = StreamsConfig(application_id="app", state_dir=tmp_path, log_sync="none")
    with Producer(config, "in", Serdes.string(), Serdes.string(), partitions=1) as producer:
        producer.send("a", "secret")
    builder, text = StreamsBuilder(), Consumed(Serdes.string(), Serdes.string())
    if failing == "function":
        builder.stream("in", text).map_values(int).to("out")
    elif failing == "source":
        builder.stream("in").to("out")
    else:
        builder.stream("in", text).map_values(lambda value: {value}).to("out")
    told = Told()
    logging.getLogger("headrace").addHandler(told)
    try:
        with pytest.raises(Exception, match="secret"):
            # Who catches it gets all of it.
            Streams(builder.build(), config, engine=local_engine).run(until_end=True)
    finally:
        logging.getLogger("headrace").removeHandler(told)
    assert "application 'app' failed: " in told.text
    assert "offset 0" in told.text
    assert "secret" not in told.text

from collections.abc import Iterator

import pytest

from examples.word_count import COUNT_STORE, LINES, WORD_COUNTS, build
from headrace import Serdes, StreamsBuilder, TestInputTopic, TestOutputTopic, TopologyTestDriver


@pytest.fixture
def driver() -> Iterator[TopologyTestDriver]:
    builder = StreamsBuilder()
    build(builder)
    with TopologyTestDriver(builder.build()) as driver:
        yield driver


@pytest.fixture
def lines(driver: TopologyTestDriver) -> TestInputTopic[str, str]:
    return driver.create_input_topic(LINES, Serdes.string(), Serdes.string(), start_ms=0)


@pytest.fixture
def counts(driver: TopologyTestDriver) -> TestOutputTopic[str, int]:
    return driver.create_output_topic(WORD_COUNTS, Serdes.string(), Serdes.long())


def test_every_word_changes_its_count(lines: TestInputTopic[str, str], counts: TestOutputTopic[str, int]) -> None:
    lines.pipe_input(value="to be or not to be")
    assert counts.read_key_values() == [("to", 1), ("be", 1), ("or", 1), ("not", 1), ("to", 2), ("be", 2)]


def test_counts_go_on_over_lines(lines: TestInputTopic[str, str], counts: TestOutputTopic[str, int]) -> None:
    lines.pipe_values(["kafka", "kafka streams"])
    assert counts.read_key_values_to_map() == {"kafka": 2, "streams": 1}


def test_case_and_punctuation_do_not_matter(lines: TestInputTopic[str, str], counts: TestOutputTopic[str, int]) -> None:
    lines.pipe_input(value="Hello, hello... HELLO!")
    assert counts.read_key_values() == [("hello", 1), ("hello", 2), ("hello", 3)]


@pytest.mark.parametrize("line", ["", "   ", "?!"])
def test_line_without_words_counts_nothing(
    line: str, lines: TestInputTopic[str, str], counts: TestOutputTopic[str, int]
) -> None:
    lines.pipe_input(value=line)
    assert counts.is_empty()


def test_count_has_the_time_of_the_latest_line_even_if_lines_are_out_of_order(
    lines: TestInputTopic[str, str], counts: TestOutputTopic[str, int]
) -> None:
    lines.pipe_input(value="late", timestamp_ms=50)
    lines.pipe_input(value="late", timestamp_ms=20)
    assert [(record.value, record.timestamp_ms) for record in counts.read_records()] == [(1, 50), (2, 50)]


def test_store_can_be_asked(driver: TopologyTestDriver, lines: TestInputTopic[str, str]) -> None:
    lines.pipe_values(["a b", "b"])
    store = driver.get_key_value_store(COUNT_STORE)
    assert store.get("b") == 2
    assert store.get("c") is None

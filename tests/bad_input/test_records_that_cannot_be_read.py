"""Input records whose bytes are not what the serde reads: fail, go on, or write a dead letter."""

from typing import Any

import pytest

from headrace import (
    Consumed,
    DeserializationError,
    LogAndContinueExceptionHandler,
    Materialized,
    Response,
    Serdes,
    StreamsBuilder,
    StreamsConfig,
    Topology,
    TopologyTestDriver,
    dead_letter,
)
from headrace.errors import UncaughtHandlerError

BYTES = Serdes.bytes()
GOOD = (None, 7, b"\x00\x00\x00\x01", b"[1]", ())
BAD_VALUE = (None, 5, b"\x00\x00\x00\x02", b"not JSON", (("trace", b"1"),))
BAD_KEY = (None, 6, b"short", b"[2]", ())
REASONS = ["exception", "message", "stacktrace", "topic", "partition", "offset"]


def topology() -> Topology:
    builder = StreamsBuilder()
    builder.stream("in", Consumed(Serdes.integer(), Serdes.json(), name="source")).to("out")
    return builder.build()


def run(records: list[Any], *, batched: bool, **settings: Any) -> tuple[list[Any], list[Any], float]:
    """Returns the values that came out, the dead letters, and how many records were dropped."""
    with TopologyTestDriver(topology(), StreamsConfig(**settings), batched=batched) as driver:
        driver.pipe_raw_batch("in", records)
        if batched:
            driver.commit()
        values = driver.create_output_topic("out", Serdes.integer()).read_values()
        letters = driver.create_output_topic("dlq", BYTES, BYTES).read_records()
        return values, letters, driver.metrics()["dropped-records-total"]


@pytest.mark.parametrize("batched", [False, True])
@pytest.mark.parametrize(("record", "what"), [(BAD_VALUE, "value"), (BAD_KEY, "key")])
def test_by_default_the_application_stops(record: Any, what: str, *, batched: bool) -> None:
    message = (
        rf"source 'source': the record at in-0 offset 1 cannot be read: {what} of topic 'in': .*; check the serdes"
    )
    with pytest.raises(DeserializationError, match=message) as caught:
        run([GOOD, record], batched=batched)
    assert isinstance(caught.value.__cause__, DeserializationError)


@pytest.mark.parametrize("batched", [False, True])
def test_a_handler_can_skip_what_cannot_be_read(*, batched: bool) -> None:
    handler = LogAndContinueExceptionHandler()
    records = [BAD_VALUE, GOOD, BAD_KEY, GOOD]
    assert run(records, batched=batched, deserialization_exception_handler=handler) == ([[1], [1]], [], 2)


@pytest.mark.parametrize("batched", [False, True])
def test_a_dead_letter_holds_the_bytes_and_the_reason(*, batched: bool) -> None:
    _, (letter, other), _ = run(
        [BAD_VALUE, GOOD, BAD_KEY],
        batched=batched,
        deserialization_exception_handler=LogAndContinueExceptionHandler(),
        errors_dead_letter_queue_topic_name="dlq",
    )
    assert (letter.key, letter.value, letter.timestamp_ms) == (b"\x00\x00\x00\x02", b"not JSON", 5)
    assert [name for name, _ in letter.headers] == ["trace", *(f"__streams.errors.{reason}" for reason in REASONS)]
    assert letter.headers.last("__streams.errors.exception") == b"headrace.errors.DeserializationError"
    assert b"the json serde" in letter.headers.last("__streams.errors.message")
    assert letter.headers.last("__streams.errors.topic") == b"in"
    assert letter.headers.last("__streams.errors.partition") == b"0"
    assert letter.headers.last("__streams.errors.offset") == b"0"
    assert (other.key, other.value) == (b"short", b"[2]")
    assert other.headers.last("__streams.errors.offset") == b"2"


def test_a_handler_of_ones_own_sees_the_bytes_and_chooses_the_topic() -> None:
    seen: list[Any] = []

    def handler(context: Any, error: Exception) -> Response:
        seen.append((context.topic, context.offset, context.node, context.key, context.value))
        return Response.resume([dead_letter(context, error, topic="dlq")])

    _, letters, dropped = run([BAD_VALUE], batched=False, deserialization_exception_handler=handler)
    assert seen == [("in", 0, "source", b"\x00\x00\x00\x02", b"not JSON")]
    assert (len(letters), dropped) == (1, 1)


@pytest.mark.parametrize("answer", [None, "resume"])
def test_a_handler_that_answers_nonsense_stops_the_application(answer: Any) -> None:
    handler: Any = lambda _context, _error: answer  # noqa: E731
    with pytest.raises(UncaughtHandlerError, match="must return a Response"):
        run([BAD_VALUE], batched=False, deserialization_exception_handler=handler)


def test_a_handler_that_raises_stops_the_application() -> None:
    def handler(_context: Any, _error: Exception) -> Response:
        raise KeyError

    with pytest.raises(UncaughtHandlerError, match=r"exception handler .*handler failed with KeyError"):
        run([BAD_VALUE], batched=False, deserialization_exception_handler=handler)


def test_a_global_table_leaves_out_what_it_cannot_read() -> None:
    builder = StreamsBuilder()
    builder.global_table("in", materialized=Materialized("rows"))
    with TopologyTestDriver(builder.build()) as driver:
        driver.pipe_raw("in", b"a", b"not JSON", timestamp_ms=0)
        driver.pipe_raw("in", b"a", b"1", timestamp_ms=0)
        assert driver.get_key_value_store("rows").get("a") == 1


def test_a_serde_that_raises_anything_is_a_serde_that_cannot_read() -> None:
    builder = StreamsBuilder()
    odd = Serdes.of(str.encode, lambda data: {b"known": "x"}[data])
    builder.stream("in", Consumed(value_serde=odd)).to("out")
    with (
        TopologyTestDriver(builder.build()) as driver,
        pytest.raises(DeserializationError, match=r"deserializer .*<lambda> raised KeyError\(b'unknown'\)"),
    ):
        driver.pipe_raw("in", None, b"unknown", timestamp_ms=0)

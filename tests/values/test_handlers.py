"""Handlers decide, dead letters tell why."""

import logging
import pickle
from typing import Any

import pytest

from headrace import Consumed, Serdes, StreamsBuilder
from headrace.errors import ConfigError, DeserializationError, RetriableError, UncaughtHandlerError
from headrace.handlers import (
    DeadLetter,
    DefaultProductionExceptionHandler,
    ErrorContext,
    FailedOutput,
    LateRecord,
    LogAndContinueExceptionHandler,
    LogAndContinueProcessingExceptionHandler,
    LogAndFailExceptionHandler,
    LogAndFailProcessingExceptionHandler,
    Origin,
    Response,
    Result,
    dead_letter,
    decide,
)
from headrace.record import Headers, Record
from headrace.testing import TopologyTestDriver
from headrace.windows import TimeWindow

CONTEXT = ErrorContext(
    topic="orders",
    partition=3,
    offset=41,
    headers=Headers([("trace", b"1")]),
    key=b"secret key",
    value=b"secret value",
    node="parse",
    task_id="0_3",
    timestamp_ms=1000,
)
WITH_TOPIC = ErrorContext(topic="orders", key=b"k", value=b"v", timestamp_ms=1000, dead_letter_topic="failed")
RECORD = Record("a", 1, 1000)


@pytest.mark.parametrize(
    ("handler", "details", "result"),
    [
        (LogAndFailExceptionHandler(), (), Result.FAIL),
        (LogAndContinueExceptionHandler(), (), Result.RESUME),
        (LogAndFailProcessingExceptionHandler(), (RECORD,), Result.FAIL),
        (LogAndContinueProcessingExceptionHandler(), (RECORD,), Result.RESUME),
        (LogAndContinueProcessingExceptionHandler(), (None,), Result.RESUME),
        (DefaultProductionExceptionHandler(), (FailedOutput("t", b"k", b"v", 0),), Result.FAIL),
    ],
)
def test_built_in_handlers_decide_and_write_dead_letters_where_there_is_a_topic(
    handler: Any, details: tuple[Any, ...], result: Result
) -> None:
    error = ValueError("no JSON")
    assert decide(handler, CONTEXT, *details, error=error) == Response(result)
    response = decide(handler, WITH_TOPIC, *details, error=error)
    assert response.result is result
    assert [(letter.topic, letter.key, letter.value) for letter in response.dead_letters] == [("failed", b"k", b"v")]


@pytest.mark.parametrize(
    ("handler", "details"),
    [
        (LogAndFailExceptionHandler(), ()),
        (LogAndContinueExceptionHandler(), ()),
        (LogAndFailProcessingExceptionHandler(), (RECORD,)),
        (LogAndContinueProcessingExceptionHandler(), (RECORD,)),
    ],
)
def test_handlers_log_the_place_but_not_the_data(
    handler: Any, details: tuple[Any, ...], caplog: pytest.LogCaptureFixture
) -> None:
    try:
        try:
            int("secret number")
        except ValueError as cause:
            message = "cannot read b'secret value'"
            raise DeserializationError(message) from cause
    except DeserializationError as error:
        with caplog.at_level(logging.WARNING):
            handler(CONTEXT, *details, error)
    assert "topic='orders', partition=3, offset=41" in caplog.text
    assert "ValueError" in caplog.text
    assert "DeserializationError" in caplog.text
    assert 'File "' in caplog.text
    assert "test_handlers.py" in caplog.text
    # The lines of code are no data.
    shown = [line for line in caplog.text.splitlines() if not line.startswith("    ")]
    assert not [line for line in shown if "secret" in line]


def _written(number: int) -> bytes:
    return str(number).encode()


# Any: values that the serdes take.
@pytest.mark.parametrize(
    ("serde", "value"),
    [
        (Serdes.json(), b"{secret"),
        (Serdes.json(int), b'"secret"'),
        (Serdes.long(), b"secret"),
        (Serdes.string(), b"secret\xff"),
        (Serdes.uuid(), b"secret"),
        (Serdes.of(_written, int), b"secret"),
    ],
)
def test_records_that_cannot_be_read_are_dropped_without_showing_them(
    serde: Any, value: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    builder = StreamsBuilder()
    builder.stream("in", Consumed(Serdes.string(), serde)).to("out")
    config = {"deserialization_exception_handler": LogAndContinueExceptionHandler()}
    with TopologyTestDriver(builder.build(), config) as driver, caplog.at_level(logging.DEBUG):
        driver.create_input_topic("in", key_serde=Serdes.bytes(), value_serde=Serdes.bytes()).pipe_input(b"k", value)
    assert "a record that cannot be read is dropped" in caplog.text
    assert "topic='in', partition=0, offset=0" in caplog.text
    assert "secret" not in caplog.text


@pytest.mark.parametrize(
    ("origin", "error", "result"),
    [
        (Origin.SEND, RetriableError("timeout"), Result.RETRY),
        (Origin.SEND, ValueError("too large"), Result.FAIL),
        (Origin.KEY, RetriableError("odd"), Result.FAIL),
        (Origin.VALUE, ValueError("wrong type"), Result.FAIL),
    ],
)
def test_only_temporary_failures_to_send_are_retried(origin: Origin, error: Exception, result: Result) -> None:
    output = FailedOutput("t", b"k", b"v", 0, origin=origin)
    assert decide(DefaultProductionExceptionHandler(), CONTEXT, output, error=error).result is result
    assert decide(lambda *_: Response.retry(), CONTEXT, output, error=error).result is result


def test_retry_of_a_processing_failure_is_a_failure() -> None:
    assert decide(lambda *_: Response.retry(), CONTEXT, RECORD, error=RetriableError("x")).result is Result.FAIL


def test_handler_that_raises_is_reported_with_both_errors() -> None:
    def broken(context: ErrorContext, error: Exception) -> Response:
        message = "handler bug"
        raise RuntimeError(message)

    with pytest.raises(
        UncaughtHandlerError, match=r"node 'parse'.*broken failed with RuntimeError.*ValueError"
    ) as caught:
        decide(broken, CONTEXT, error=ValueError("no JSON"))
    assert isinstance(caught.value.__cause__, RuntimeError)


def test_handler_must_answer_with_a_response() -> None:
    answer: Any = Result.RESUME
    with pytest.raises(UncaughtHandlerError, match="must return a Response, got Result"):
        decide(lambda *_: answer, CONTEXT, error=ValueError("x"))


def test_dead_letter_is_the_input_record_with_kafkas_headers() -> None:
    def fail() -> None:
        message = "no JSON"
        raise ValueError(message)

    with pytest.raises(ValueError, match="no JSON") as caught:
        fail()
    letter = dead_letter(CONTEXT, caught.value, topic="failed")
    assert (letter.topic, letter.key, letter.value, letter.timestamp_ms) == (
        "failed",
        b"secret key",
        b"secret value",
        1000,
    )
    names = [name for name, _ in letter.headers]
    assert names == ["trace"] + [
        f"__streams.errors.{reason}"
        for reason in ("exception", "message", "stacktrace", "topic", "partition", "offset")
    ]
    told = dict(letter.headers)
    assert told["__streams.errors.exception"] == b"ValueError"
    assert told["__streams.errors.message"] == b"no JSON"
    assert told["__streams.errors.topic"] == b"orders"
    assert told["__streams.errors.partition"] == b"3"
    assert told["__streams.errors.offset"] == b"41"
    assert b"in fail" in (told["__streams.errors.stacktrace"] or b"")


def test_dead_letter_names_exceptions_with_their_module() -> None:
    headers = dead_letter(CONTEXT, ConfigError("x"), topic="failed").headers
    assert headers.last("__streams.errors.exception") == b"headrace.errors.ConfigError"


def test_dead_letter_of_a_punctuation_has_no_position() -> None:
    letter = dead_letter(ErrorContext(node="tick"), ValueError("x"), topic="failed")
    assert (letter.key, letter.value, letter.timestamp_ms) == (None, None, 0)
    assert letter.headers.last("__streams.errors.topic") is None
    assert letter.headers.last("__streams.errors.offset") == b"-1"


def test_dead_letter_needs_a_topic() -> None:
    with pytest.raises(ConfigError, match="errors_dead_letter_queue_topic_name"):
        dead_letter(CONTEXT, ValueError("x"))


@pytest.mark.parametrize(
    "value",
    [
        CONTEXT,
        DeadLetter("failed", b"k", None, 0),
        Response.resume([DeadLetter("failed", b"k", None, 0)]),
        FailedOutput("t", "k", 1, 0, origin=Origin.KEY),
        LateRecord("count", "a", 1, 5, window=TimeWindow(0, 10), close_time_ms=20),
        LogAndContinueExceptionHandler(),
        DefaultProductionExceptionHandler(),
    ],
    ids=lambda value: type(value).__name__,
)
def test_values_pickle(value: Any) -> None:
    assert pickle.loads(pickle.dumps(value)) == value

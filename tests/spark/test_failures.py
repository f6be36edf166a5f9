"""Errors on their way from a worker to the driver."""

from __future__ import annotations

from headrace.errors import ProcessingError, StreamsError
from headrace.spark.failures import Failure


def fail(error: Exception) -> StreamsError:
    """Returns the error of a node whose function has raised."""
    try:
        try:
            raise error
        except Exception as cause:
            message = "node 'parse' failed"
            raise ProcessingError(message, node="parse", topic="orders", partition=1, offset=41) from cause
    except StreamsError as failure:
        return failure


class Unpicklable(Exception):
    def __init__(self, code: int, *, reason: str) -> None:
        super().__init__(code)
        self.function = lambda: reason


class NotMadeAgain(Exception):
    def __init__(self, code: int, reason: str) -> None:
        super().__init__(f"{code}: {reason}")


def test_error_arrives_with_its_attributes_its_cause_and_the_place() -> None:
    error = Failure.of(fail(ValueError("no JSON"))).restored()
    assert isinstance(error, ProcessingError)
    assert (error.node, error.topic, error.partition, error.offset) == ("parse", "orders", 1, 41)
    assert repr(error.__cause__) == "ValueError('no JSON')"
    (note,) = error.__cause__.__notes__  # type: ignore[union-attr]
    assert note.startswith("On the worker:\n")
    assert "in fail" in note


def test_cause_that_cannot_be_made_again_is_told_in_words() -> None:
    error = Failure.of(fail(NotMadeAgain(7, "seven"))).restored()
    assert str(error) == "node 'parse' failed"
    assert error.__cause__ is None
    assert error.__notes__[0].endswith("NotMadeAgain: 7: seven")


def test_cause_that_holds_a_function_arrives() -> None:
    error = Failure.of(fail(Unpicklable(7, reason="seven"))).restored()
    assert error.__cause__ is None or error.__cause__.args == (7,)


def test_error_that_cannot_be_made_again_is_a_plain_one() -> None:
    class Own(StreamsError):
        def __init__(self, code: int, reason: str) -> None:
            super().__init__(f"{code}: {reason}")

    error = Failure.of(Own(7, "seven")).restored()
    assert type(error) is StreamsError
    assert str(error) == "7: seven"

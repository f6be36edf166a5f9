"""Errors say what happened, survive a process boundary, and suggest names."""

import inspect
import pickle

import pytest

from headrace import errors
from headrace.errors import (
    ConfigError,
    InvalidStateStoreError,
    MissingInternalTopicsError,
    ProcessingError,
    StreamsError,
    TaskCorruptedError,
    TopologyError,
    UnknownStateStoreError,
    UnsupportedOperationError,
    describe_value,
    did_you_mean,
)

CLASSES = [value for value in vars(errors).values() if inspect.isclass(value) and issubclass(value, StreamsError)]


@pytest.mark.parametrize("error", CLASSES, ids=lambda error: error.__name__)
def test_every_error_explains_itself_and_is_a_streams_error(error: type[StreamsError]) -> None:
    assert error.__doc__
    assert error.__name__.endswith("Error")


@pytest.mark.parametrize("error", CLASSES, ids=lambda error: error.__name__)
def test_every_error_pickles_with_its_message(error: type[StreamsError]) -> None:
    copy = pickle.loads(pickle.dumps(error("what happened")))
    assert type(copy) is error
    assert str(copy) == "what happened"


def test_errors_are_also_the_builtins_they_resemble() -> None:
    assert issubclass(TopologyError, ValueError)
    assert issubclass(ConfigError, ValueError)
    assert issubclass(UnsupportedOperationError, NotImplementedError)
    assert issubclass(UnknownStateStoreError, InvalidStateStoreError)


def test_processing_error_keeps_its_position_across_pickling() -> None:
    error = ProcessingError("x", node="parse", function="parse (jobs.py:3)", topic="orders", partition=2, offset=7)
    copy = pickle.loads(pickle.dumps(error))
    assert (copy.node, copy.function, copy.topic, copy.partition, copy.offset) == (
        "parse",
        "parse (jobs.py:3)",
        "orders",
        2,
        7,
    )


def test_errors_that_name_things_keep_them_across_pickling() -> None:
    assert pickle.loads(pickle.dumps(MissingInternalTopicsError("gone", topics=["a", "b"]))).topics == ("a", "b")
    assert pickle.loads(pickle.dumps(TaskCorruptedError("corrupt", tasks=["0_1"]))).tasks == ("0_1",)


def test_task_id_is_unknown_until_it_is_set() -> None:
    error = StreamsError("x")
    assert error.task_id is None
    error.task_id = "0_1"
    assert pickle.loads(pickle.dumps(error)).task_id == "0_1"


def test_did_you_mean_prefers_the_closest_name() -> None:
    assert did_you_mean("coumt", ["counts", "count", "amount"]) == "; did you mean 'count'?"
    assert did_you_mean("x", []) == ""


def test_describe_value_survives_a_broken_repr() -> None:
    class Broken:
        def __repr__(self) -> str:
            message = "no"
            raise RuntimeError(message)

    assert describe_value(Broken()).startswith("Broken <repr failed")

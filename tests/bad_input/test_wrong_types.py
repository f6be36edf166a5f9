"""A wrong argument of any public call is refused by that call, or accepted: nothing else ever gets out."""

import inspect
from typing import Any

import pytest

import headrace
from headrace import StreamsError
from tests.bad_input.calls import CALLS, DSL, Call, Given

# No parameter takes a plain object, except keys, values and what is handed on as it is.
NOTHING = object()
WRONG: dict[str, Any] = {
    "nothing": NOTHING,
    "number": 5,
    "negative": -1,
    "fraction": 1.5,
    "not a number": float("nan"),
    "text": "x y",
    "empty": "",
    "bytes": b"x",
    "list": [NOTHING],
    "dict": {"a": NOTHING},
    "class": int,
    "function": lambda: None,
    "flag": True,
}
COVERED = (
    headrace.BranchedKStream,
    headrace.BufferConfig,
    headrace.CogroupedKStream,
    headrace.JoinWindows,
    headrace.KGroupedStream,
    headrace.KGroupedTable,
    headrace.KStream,
    headrace.KTable,
    headrace.SessionWindowedCogroupedKStream,
    headrace.SessionWindowedKStream,
    headrace.SessionWindows,
    headrace.SlidingWindows,
    headrace.Stores,
    headrace.StreamsBuilder,
    headrace.Suppressed,
    headrace.TestInputTopic,
    headrace.TimeWindowedCogroupedKStream,
    headrace.TimeWindowedKStream,
    headrace.TimeWindows,
    headrace.Topology,
    headrace.TopologyTestDriver,
    headrace.UnlimitedWindows,
)
# Made from their own arithmetic by the runtime, which passes what it has checked; or taken as they are.
NOT_COVERED = {
    "JoinWindows.joins",
    "SlidingWindows.windows_for",
    "Stores.custom",
    "TimeWindows.window_at",
    "TimeWindows.windows_for",
    "UnlimitedWindows.window_at",
    "UnlimitedWindows.windows_for",
    # The same as the other getters.
    "TopologyTestDriver.get_session_store",
    "TopologyTestDriver.get_timestamped_window_store",
    "TopologyTestDriver.get_versioned_key_value_store",
    "TopologyTestDriver.get_window_store",
}

MISTAKES = [(call, parameter) for call in CALLS for parameter in call.parameters]
IDS = [f"{call.name}-{parameter}" for call, parameter in MISTAKES]


def attempt(call: Call, parameter: str, wrong: Any) -> Exception | None:
    """Makes the call with one wrong argument, and builds what a call of the DSL drew; returns what was raised."""
    given = Given()
    try:
        call.make(given, **{parameter: [wrong] if parameter.startswith("*") else wrong})
        if call in DSL:
            given.builder.build()
    except Exception as error:
        return error
    finally:
        given.close()
    return None


@pytest.mark.parametrize("call", CALLS, ids=[call.name for call in CALLS])
def test_the_right_arguments_are_right(call: Call) -> None:
    given = Given()
    call.make(given)
    given.close()


@pytest.mark.parametrize(("call", "parameter"), MISTAKES, ids=IDS)
def test_a_wrong_argument_gives_one_of_our_errors_or_none(call: Call, parameter: str) -> None:
    raised = {name: attempt(call, parameter, wrong) for name, wrong in WRONG.items()}
    assert {name: error for name, error in raised.items() if not isinstance(error, StreamsError | None)} == {}
    assert raised["nothing"] is not None, "an object that is nothing was accepted"


def test_every_public_call_with_arguments_is_tried() -> None:
    tried = {call.name.partition(":")[0] for call in CALLS}
    missing = []
    for owner in COVERED:
        for name, member in inspect.getmembers(owner, lambda each: inspect.isfunction(each) or inspect.ismethod(each)):
            own = name in vars(owner) or any(name in vars(base) for base in owner.__mro__[1:-1])
            parameters = [each for each in inspect.signature(member).parameters if each != "self"]
            engine_only = owner is headrace.Topology and name not in vars(owner)
            if own and parameters and not name.startswith("_") and not engine_only:
                missing.append(f"{owner.__name__}.{name}")
    assert set(missing) - tried - NOT_COVERED == set()

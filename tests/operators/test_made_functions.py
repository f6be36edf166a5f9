"""Functions that travel as what they are made of, and are made where they run."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any
from unittest.mock import MagicMock

from headrace import StreamsBuilder, with_key
from headrace.operators.base import with_made_functions
from headrace.testing import TopologyTestDriver
from headrace.topology import operations as ops


@dataclass(frozen=True)
class Plus:
    """Adds a number; what it makes also says that it was made."""

    number: int
    tag: str = "made"

    def __call__(self, *arguments: Any) -> str:
        return f"called {arguments[-1] + self.number}"

    def made_function(self) -> Callable[..., str]:
        return lambda *arguments: f"{self.tag} {arguments[-1] + self.number}"


def test_the_made_function_runs_in_the_task() -> None:
    builder = StreamsBuilder()
    stream = builder.stream("in")
    stream.map_values(Plus(1)).to("plain")
    stream.map_values(with_key(Plus(2))).to("keyed")
    topology = pickle.loads(pickle.dumps(builder.build()))
    with TopologyTestDriver(topology) as driver:
        driver.create_input_topic("in").pipe_input("k", 5)
        assert driver.create_output_topic("plain").read_value() == "made 6"
        assert driver.create_output_topic("keyed").read_value() == "made 7"


def test_other_functions_stay_as_they_are() -> None:
    plain = ops.MapValues(str)
    assert with_made_functions(plain) is plain
    answers_to_any_name = ops.MapValues(MagicMock())
    assert with_made_functions(answers_to_any_name) is answers_to_any_name

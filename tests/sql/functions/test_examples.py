from __future__ import annotations

import pytest

from headrace.sql.expressions.literals import evaluate
from headrace.sql.functions import BUILTIN_FUNCTIONS
from headrace.sql.functions.definitions import ScalarFunction
from headrace.sql.syntax.parser import parse_expression

EXAMPLES = [example for function in BUILTIN_FUNCTIONS for example in function.examples]


@pytest.mark.parametrize(("call", "result"), EXAMPLES)
def test_every_example_of_a_function_gives_what_it_says(call: str, result: str) -> None:
    assert evaluate(parse_expression(call), BUILTIN_FUNCTIONS) == evaluate(parse_expression(result), BUILTIN_FUNCTIONS)


def test_every_function_is_described_in_one_sentence_and_every_scalar_one_has_an_example() -> None:
    for function in BUILTIN_FUNCTIONS:
        assert function.description.startswith(("Returns", "Counts", "Adds")), function.name
        assert function.description.endswith("."), function.name
        assert function.overloads, function.name
        if isinstance(function, ScalarFunction):
            assert function.examples, function.name


def test_there_are_149_functions() -> None:
    kinds = [function.kind for function in BUILTIN_FUNCTIONS]
    assert (kinds.count("SCALAR"), kinds.count("AGGREGATE"), kinds.count("TABLE")) == (129, 18, 2)

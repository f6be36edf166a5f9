"""Public names of ``import headrace``: complete and documented."""

import inspect

import pytest

import headrace

# Classes whose public methods are operations that a topology's author calls: each must show how.
SHOWN = (
    "BranchedKStream",
    "CogroupedKStream",
    "KGroupedStream",
    "KGroupedTable",
    "KStream",
    "KTable",
    "SessionWindowedCogroupedKStream",
    "SessionWindowedKStream",
    "StreamsBuilder",
    "TimeWindowedCogroupedKStream",
    "TimeWindowedKStream",
    "Topology",
)

# Topology's face towards the DSL and the engines.
SEEN_BY_ENGINES_ONLY = {f"Topology.{name}" for base in headrace.Topology.__mro__[1:] for name in vars(base)}


def operations() -> list[str]:
    return [
        f"{owner}.{name}"
        for owner in SHOWN
        for name, _ in inspect.getmembers(getattr(headrace, owner), inspect.isfunction)
        if not name.startswith("_") and f"{owner}.{name}" not in SEEN_BY_ENGINES_ONLY
    ]


def test_everything_in_all_is_there_once() -> None:
    assert len(set(headrace.__all__)) == len(headrace.__all__)
    assert [name for name in headrace.__all__ if not hasattr(headrace, name)] == []


@pytest.mark.parametrize("name", headrace.__all__)
def test_every_public_name_has_a_docstring(name: str) -> None:
    assert inspect.getdoc(getattr(headrace, name))


@pytest.mark.parametrize("name", operations())
def test_every_operation_has_a_docstring_with_an_example(name: str) -> None:
    owner, _, method = name.partition(".")
    text = inspect.getdoc(getattr(getattr(headrace, owner), method)) or ""
    assert ">>>" in text

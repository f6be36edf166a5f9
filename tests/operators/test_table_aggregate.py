"""Grouped tables: rows move from group to group."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from headrace import (
    KGroupedTable,
    KTable,
    LogAndContinueProcessingExceptionHandler,
    Materialized,
    ProcessingError,
    Stores,
    StreamsBuilder,
)
from tests.operators.driving import Step, config, run
from tests.operators.windowing import CACHE

# Values are "group:value".
MOVES = (
    Step("in", "k", "g:a", 5),
    Step("in", "j", "g:b", 4),
    Step("in", "k", "h:a", 6),
    Step("in", "j", "g:c", 3),
    Step("in", "j", None, 7),
    Step("in", "k", None, 8),
)


def by_group(key: str, value: str) -> tuple[Any, Any]:
    group, _, rest = value.partition(":")
    return group or None, rest or None


def _grouped(
    aggregate: Callable[[KGroupedTable[str, str]], KTable[str, Any]],
    selector: Callable[[str, str], tuple[Any, Any]] = by_group,
) -> Callable[[StreamsBuilder], None]:
    def build(builder: StreamsBuilder) -> None:
        table = aggregate(builder.table("in").group_by(selector))
        table.to_stream().map_values(lambda value: None if value is None else str(value)).to("out")

    return build


def concat(key: str, value: str, aggregate: str) -> str:
    return f"{aggregate}+{value}"


def cut(key: str, value: str, aggregate: str) -> str:
    return f"{aggregate}-{value}"


def vanish(left: str, right: str) -> Any:
    return None


@pytest.mark.parametrize("cache", [0, CACHE])
def test_row_is_taken_out_of_its_old_group_before_it_is_added(cache: int) -> None:
    result = run(_grouped(lambda grouped: grouped.aggregate(lambda: "^", concat, cut)), MOVES, config(cache=cache))
    assert result.steps == [
        [("g", "^+a", 5)],
        [("g", "^+a+b", 5)],
        [("g", "^+a+b-a", 6), ("h", "^+a", 6)],
        [("g", "^+a+b-a-b+c", 6)],
        [("g", "^+a+b-a-b+c-c", 7)],
        [("h", "^+a-a", 8)],
    ]


def test_reduce_starts_with_the_first_value() -> None:
    result = run(
        _grouped(
            lambda grouped: grouped.reduce(lambda left, right: f"{left}+{right}", lambda left, right: f"{left}-{right}")
        ),
        MOVES,
    )
    assert [step[0] for step in result.steps] == [
        ("g", "a", 5),
        ("g", "a+b", 5),
        ("g", "a+b-a", 6),
        ("g", "a+b-a-b+c", 6),
        ("g", "a+b-a-b+c-c", 7),
        ("h", "a-a", 8),
    ]


def test_count_keeps_a_group_at_zero() -> None:
    result = run(_grouped(lambda grouped: grouped.count()), MOVES)
    assert [[value for _, value, _ in step] for step in result.steps] == [["1"], ["2"], ["1", "1"], ["1"], ["0"], ["0"]]


def test_subtractor_that_returns_none_deletes_the_group() -> None:
    build = _grouped(lambda grouped: grouped.reduce(lambda left, right: left + right, vanish))
    result = run(build, [Step("in", "k", "g:a", 5), Step("in", "k", None, 2), Step("in", "k", "g:b", 1)])
    assert result.rows == [("g", "a", 5), ("g", None, 5), ("g", "b", 1)]


def test_timestamp_after_a_deletion_within_one_change_is_still_the_latest() -> None:
    build = _grouped(lambda grouped: grouped.reduce(lambda left, right: left + right, vanish))
    assert run(build, [Step("in", "k", "g:a", 5), Step("in", "k", "g:b", 2)]).rows[-1] == ("g", "b", 5)


def test_pairs_without_key_or_value_are_left_out() -> None:
    steps = [Step("in", "k", ":a", 0), Step("in", "k", "g:", 1), Step("in", "k", "g:a", 2), Step("in", "k", ":b", 3)]
    result = run(_grouped(lambda grouped: grouped.aggregate(lambda: "^", concat, cut)), steps)
    assert result.steps == [[], [], [("g", "^+a", 2)], [("g", "^+a-a", 3)]]


def test_out_of_order_change_of_a_versioned_table_is_ignored() -> None:
    def build(builder: StreamsBuilder) -> None:
        store = Stores.persistent_versioned_key_value_store("versions", timedelta(seconds=1))
        table = builder.table("in", materialized=Materialized(store))
        table.group_by(by_group).aggregate(lambda: "^", concat, cut).to_stream().to("out")

    result = run(build, [Step("in", "k", "g:a", 5), Step("in", "k", "g:b", 3), Step("in", "k", "g:c", 6)])
    assert result.steps == [[("g", "^+a", 5)], [], [("g", "^+a-a+c", 6)]]


def test_error_of_the_adder_skips_the_change() -> None:
    def fail(key: str, value: str, aggregate: str) -> str:
        if value == "bad":
            message = "no such value"
            raise LookupError(message)
        return aggregate + value

    build = _grouped(lambda grouped: grouped.aggregate(lambda: "^", fail, cut, name="groups"))
    steps = [Step("in", "k", "g:a", 0), Step("in", "j", "g:bad", 1), Step("in", "i", "g:b", 2)]
    with pytest.raises(ProcessingError, match=r"node 'groups' failed .*no such value"):
        run(build, steps)
    settings = config(processing_exception_handler=LogAndContinueProcessingExceptionHandler())
    assert run(build, steps, settings).rows == [("g", "^a", 0), ("g", "^ab", 2)]

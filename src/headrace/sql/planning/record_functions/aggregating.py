"""Aggregates over groups: what starts, adds, takes back and merges their states, and what makes rows of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from headrace.sql.expressions import RowFunction, TypedExpression
from headrace.sql.functions.definitions import Aggregate
from headrace.sql.planning.record_functions.generated import Generated
from headrace.sql.planning.record_functions.records import Row


@dataclass(frozen=True, slots=True)
class GroupedRow:
    """The key of the group that a row belongs to, and the arguments of its aggregates; with a NULL in it, no group."""

    grouping: RowFunction
    arguments: RowFunction

    def __call__(self, key: Any, row: Row | None) -> tuple[Any, Row | None]:
        if row is None:
            return None, None
        group = self.grouping(row)
        return (None, None) if None in group else (tuple(group), self.arguments(row))


def initial(aggregates: Sequence[Aggregate]) -> Generated:
    """Returns what starts a group."""
    codes = [f"start{number}()" for number, _ in enumerate(aggregates)]
    names = {f"start{number}": one.initialize for number, one in enumerate(aggregates)}
    return Generated("", f"[{', '.join(codes)}]", names)


def added(aggregates: Sequence[Aggregate], widths: Sequence[int]) -> Generated:
    """Returns what adds the arguments of a row to a group."""
    return _folded([one.aggregate for one in aggregates], widths, _places(widths), {})


def added_rows(
    aggregates: Sequence[Aggregate], widths: Sequence[int], arguments: Sequence[TypedExpression]
) -> Generated:
    """Returns what adds a whole row to a group: it computes the arguments itself, none of which can fail."""
    constants = {name: value for one in arguments for name, value in one.constants.items()}
    return _folded([one.aggregate for one in aggregates], widths, [one.code for one in arguments], constants)


def taken_back(aggregates: Sequence[Aggregate], widths: Sequence[int]) -> Generated:
    """Returns what takes the arguments of a row out of a group."""
    return _folded([one.undo for one in aggregates], widths, _places(widths), {})


def _places(widths: Sequence[int]) -> list[str]:
    return [f"row[{place}]" for place in range(sum(widths))]


def _folded(folds: Sequence[Any], widths: Sequence[int], arguments: list[str], constants: dict[str, Any]) -> Generated:
    codes, place = [], 0
    for number, width in enumerate(widths):
        codes.append(f"fold{number}({', '.join([f'states[{number}]', *arguments[place : place + width]])})")
        place += width
    names = constants | {f"fold{number}": fold for number, fold in enumerate(folds)}
    return Generated("key, row, states", f"[{', '.join(codes)}]", names)


def merged(aggregates: Sequence[Aggregate]) -> Generated:
    """Returns what unites the states of two sessions."""
    codes = [f"merge{number}(first[{number}], second[{number}])" for number, _ in enumerate(aggregates)]
    names = {f"merge{number}": one.merge for number, one in enumerate(aggregates)}
    return Generated("key, first, second", f"[{', '.join(codes)}]", names)


def results(
    aggregates: Sequence[Aggregate], *, counted: bool, windowed: bool, with_key: bool, with_bounds: bool
) -> Generated:
    """Returns what makes the row of a group: the results, then the columns of its key, then its window's bounds.

    ``counted`` says that the state is a number by itself, as counting needs no more.
    """
    codes: list[str] = ["states"] if counted else []
    names: dict[str, Any] = {}
    for number, one in enumerate(() if counted else aggregates):
        if type(one).map is Aggregate.map:
            codes.append(f"states[{number}]")
        else:
            codes.append(f"map{number}(states[{number}])")
            names[f"map{number}"] = one.map
    if with_key:
        codes.append("*key.key" if windowed else "*key")
    if with_bounds:
        codes += ["key.window.start_ms", "key.window.end_ms"]
    return Generated("key, states", f"[{', '.join(codes)}]", names)

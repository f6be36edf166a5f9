"""Rows as lines of text: columns that fit the terminal, long cells on several lines."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence

from rich.cells import cell_len, chop_cells

from headrace.cli.sql.client import NumberText

_GAP = "   "
_NARROWEST = 4


# object: what JSON holds.
def cell(value: object) -> str:
    """Returns a value as a cell shows it.

    >>> cell(None), cell(True), cell("a\\nb"), cell([1, None, "x"]), cell({"A": NumberText("1.50")})
    ('null', 'true', 'a\\\\nb', '[1, null, "x"]', '{"A": 1.50}')
    """
    if isinstance(value, str):
        return str(value).replace("\n", "\\n").replace("\t", "\\t")
    return _nested(value)


def is_number(value: object) -> bool:
    """Tells whether a value is written as a number."""
    return isinstance(value, NumberText | int) and not isinstance(value, bool)


def widths(headings: Sequence[str], rows: Sequence[Sequence[str]], width: int | None) -> list[int]:
    """Returns how wide each column is; with a ``width`` all of them fit into it, as far as that goes.

    >>> widths(["A", "NAME"], [["1", "x" * 50]], None), widths(["A", "NAME"], [["1", "x" * 50]], 20)
    ([1, 50], [1, 16])
    """
    found = [max(map(cell_len, column)) for column in zip(headings, *rows, strict=True)]
    if width is None:
        return found
    left = width - len(_GAP) * (len(found) - 1)
    while sum(found) > left and max(found) > _NARROWEST:
        # The widest gives up what the next one does not have, or what is too much.
        widest = max(found)
        several = [index for index, each in enumerate(found) if each == widest]
        below = max((each for each in found if each < widest), default=_NARROWEST)
        too_much = -(-(sum(found) - left) // len(several))
        for index in several:
            found[index] = max(below, widest - too_much, _NARROWEST)
    return found


def lines(
    cells: Sequence[str], found: Sequence[int], *, right: Sequence[bool] = (), wrap: bool = True, fold: bool = True
) -> Iterator[str]:
    """Yields the lines of a row. Without ``wrap`` long cells are cut; without ``fold`` they are as long as they are."""
    columns = [_parts(text, size, wrap=wrap) if fold else [text] for text, size in zip(cells, found, strict=True)]
    sides = list(right) or [False] * len(columns)
    for number in range(max(map(len, columns), default=0)):
        parts = [column[number] if number < len(column) else "" for column in columns]
        padded = [_padded(part, size, right=side) for part, size, side in zip(parts, found, sides, strict=True)]
        yield _GAP.join(padded).rstrip()


def _parts(text: str, size: int, *, wrap: bool) -> list[str]:
    if cell_len(text) <= size:
        return [text]
    if wrap:
        return chop_cells(text, size)
    return [chop_cells(text, max(size - 1, 1))[0] + "…"]


def _padded(text: str, size: int, *, right: bool) -> str:
    space = " " * (size - cell_len(text))
    return space + text if right else text + space


def _nested(value: object) -> str:
    match value:
        case NumberText():
            return str(value)
        case dict():
            fields = (f"{json.dumps(key, ensure_ascii=False)}: {_nested(each)}" for key, each in value.items())
            return f"{{{', '.join(fields)}}}"
        case list():
            return f"[{', '.join(map(_nested, value))}]"
        case _:
            return json.dumps(value, ensure_ascii=False)

"""Output of the prompt: the terminal, and the spool file while there is one."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, TextIO

import click
from rich.cells import cell_len

from headrace.cli.sql.client import NumberText, Piece
from headrace.cli.sql.layout import cell, is_number, lines, widths


class Screen:
    """Prints lines and tables; what is spooled goes to a file as well."""

    def __init__(self, *, as_json: bool = False) -> None:
        self.as_json = as_json
        self.wrap = True
        """Whether long cells go on on further lines, or are cut off."""
        self.column_width: int | None = None
        """How wide a column may be at most."""
        self._spool: TextIO | None = None

    @property
    def width(self) -> int | None:
        """The width of the terminal; None where nothing must be cut off: in a file or a pipe."""
        return shutil.get_terminal_size().columns if sys.stdout.isatty() else None

    def line(self, text: str = "") -> None:
        """Prints text."""
        click.echo(text)
        if self._spool is not None:
            self._spool.write(f"{text}\n")
            self._spool.flush()

    def note(self, text: str) -> None:
        """Says something to the person who watches, beside the data."""
        click.echo(text, err=True)

    def error(self, text: str) -> None:
        """Says what went wrong."""
        click.echo(click.style(text, fg="red"), err=True)
        if self._spool is not None:
            self._spool.write(f"{text}\n")

    # Any: what JSON holds.
    def json(self, value: Any) -> None:
        """Prints a document of JSON."""
        self.line(json.dumps(_plain(value), indent=2, ensure_ascii=False))

    def table(self, headings: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
        """Prints rows under headings."""
        given = [list(row) for row in rows]
        cells = [[cell(value) for value in row] for row in given]
        sizes = self.limited(widths(headings, cells, self.width))
        right = [bool(given) and all(is_number(row[index]) for row in given) for index in range(len(headings))]
        for row in ([*headings], *cells):
            for text in lines(row, sizes, right=right, wrap=self.wrap, fold=self.folds):
                self.line(text)

    @property
    def folds(self) -> bool:
        """Whether cells have to fit into their columns."""
        return self.width is not None or self.column_width is not None

    def limited(self, sizes: list[int]) -> list[int]:
        """Returns widths of columns, none of them wider than it may be."""
        return sizes if self.column_width is None else [min(size, self.column_width) for size in sizes]

    def spool(self, path: Path) -> None:
        """Begins to write a copy of everything to a file."""
        self.end_spool()
        self._spool = path.expanduser().open("a", encoding="utf-8")

    def end_spool(self) -> None:
        """Ends that."""
        if self._spool is not None:
            self._spool.close()
            self._spool = None


class LiveTable:
    """A table whose rows come little by little, as wide as what has come so far.

    On a terminal, rows that need more room get it as long as there is some, below their headings once more. In a file
    or a pipe the headings are there once, and longer cells are as long as they are.
    """

    def __init__(self, screen: Screen, headings: Sequence[str]) -> None:
        self._screen = screen
        self._headings = list(headings)
        self._sizes: list[int] | None = None
        self._widest: list[str] = []
        """The longest cell of each column."""
        self._right: list[bool] = []

    def rows(self, pieces: Sequence[Piece]) -> None:
        """Prints rows as the server has sent them."""
        rows = [_columns(piece, len(self._headings)) for piece in pieces]
        cells = [[cell(value) for value in columns] + mark for columns, mark in rows]
        if self._sizes is None:
            self._right = [
                bool(rows) and all(is_number(columns[index]) for columns, _ in rows)
                for index in range(len(self._headings))
            ]
        if self._sizes is None or self._screen.width is not None:
            self._make_room([row[: len(self._headings)] for row in cells])
        for row in cells:
            self._print(row)

    def _make_room(self, cells: Sequence[Sequence[str]]) -> None:
        known = [self._widest] if self._widest else []
        self._widest = [max(column, key=cell_len) for column in zip(self._headings, *known, *cells, strict=True)]
        sizes = self._screen.limited(widths(self._headings, [self._widest], self._screen.width))
        if sizes != self._sizes:
            self._sizes = sizes
            self._print(self._headings)

    def _print(self, row: Sequence[str]) -> None:
        assert self._sizes is not None, "the headings were printed first"
        count = len(self._headings)
        found = list(
            lines(row[:count], self._sizes, right=self._right, wrap=self._screen.wrap, fold=self._screen.folds)
        )
        for number, text in enumerate(found):
            self._screen.line(text if number or len(row) == count else f"{text}   {row[count]}")

    def end(self) -> None:
        """Prints the headings if there was no row at all."""
        if self._sizes is None:
            self.rows([])


def _columns(piece: Piece, count: int) -> tuple[list[Any], list[str]]:
    row = piece.content["row"]
    columns = list(row["columns"])
    return columns + [None] * (count - len(columns)), ["<tombstone>"] if row.get("tombstone") else []


def _plain(value: Any) -> Any:
    match value:
        case NumberText():
            return float(value)
        case dict():
            return {key: _plain(each) for key, each in value.items()}
        case list():
            return [_plain(each) for each in value]
        case _:
            return value

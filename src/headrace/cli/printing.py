"""Output of commands: tables for people, JSON for programs, notes on stderr."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Sequence
from typing import Any

import click
from rich.console import Console
from rich.filesize import decimal
from rich.table import Table
from rich.text import Text

_WIDE = 10_000

json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON instead of a table.")


def print_json(value: Any) -> None:
    """Prints one JSON document."""
    click.echo(json.dumps(value, indent=2, ensure_ascii=False))


def print_table(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Prints rows under headings; numbers are right-aligned."""
    cells = [list(row) for row in rows]
    table = Table(box=None, pad_edge=False, padding=(0, 3, 0, 0), header_style="bold")
    for index, heading in enumerate(columns):
        numeric = all(isinstance(row[index], int | Size) for row in cells)
        table.add_column(heading, justify="right" if numeric and cells else "left", overflow="fold")
    for row in cells:
        table.add_row(*(Text(f"{cell:,}" if isinstance(cell, int) else str(cell)) for cell in row))
    # A file or a pipe has no width: nothing may be cut off there.
    console = Console(width=None if sys.stdout.isatty() else _WIDE)
    with console.capture() as capture:
        console.print(table)
    click.echo("\n".join(line.rstrip() for line in capture.get().splitlines()))


class Size:
    """A number of bytes, printed as a person reads it.

    >>> str(Size(12_345_678))
    '12.3 MB'
    """

    def __init__(self, size: int) -> None:
        self.size = size

    def __str__(self) -> str:
        return decimal(self.size)


def note(message: str) -> None:
    """Prints a note on stderr, beside the data."""
    click.echo(message, err=True)


def plural(number: int, noun: str) -> str:
    """Returns a number with its noun.

    >>> plural(1, "record"), plural(2_000, "record")
    ('1 record', '2,000 records')
    """
    return f"{number:,} {noun}{'' if number == 1 else 's'}"

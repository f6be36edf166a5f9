"""Terminal output of the demo: live tables on a terminal, a line now and then elsewhere."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from types import TracebackType

import click
from rich import box
from rich.console import Console, Group, RenderableType
from rich.spinner import Spinner
from rich.table import Table
from rich.text import Text

from headrace.app.progress import Counts
from headrace.cli.engine_log import LiveOutput
from headrace.cli.printing import plural
from headrace.devtools.demo.results import Result, Results
from headrace.devtools.demo.retail_purchases import FREE_COFFEES, PATTERNS, REWARDS

_SECONDS_BETWEEN_LINES = 5.0
_RECENT = 5_000
# Three tables stand side by side if there is room; otherwise two and one, with fewer rows: all in 80 by 24.
_WIDE, _ROWS, _FEWER_ROWS = 118, 8, 3

_TABLES: dict[str, tuple[str, tuple[tuple[str, Callable[[Result], str]], ...]]] = {
    PATTERNS: (
        "What sells where",
        (
            ("zip code", lambda result: result.value["zip_code"]),
            ("item", lambda result: result.value["item"]),
            ("total", lambda result: _money(result.value["total_cents"])),
        ),
    ),
    REWARDS: (
        "Rewards",
        (
            ("customer", lambda result: result.key),
            ("points", lambda result: f"{result.value['points']:,}"),
            ("purchases", lambda result: f"{result.value['purchases']:,}"),
        ),
    ),
    FREE_COFFEES: (
        "Free coffees",
        (
            ("customer", lambda result: result.key),
            ("bought", lambda result: f"{result.value['electronics_item']}, {result.value['cafe_item']}"),
            ("spent", lambda result: _money(result.value["spent_cents"])),
        ),
    ),
}


class Show(LiveOutput):
    """Shows what happens until it is left."""

    def __init__(self, results: Results, counts: Counts, seconds: float) -> None:
        self._results = results
        self._counts = counts
        self._seconds = seconds
        self._first: float | None = None
        self._said = 0.0
        self._doing = ""
        self._address: str | None = None
        self._spinner = Spinner("dots")
        super().__init__(Console() if sys.stdout.isatty() else None)

    def serve_at(self, address: str | None) -> None:
        """Shows where the console is."""
        self._address = address
        if address is not None and self._live is None:
            click.echo(f"console: {address}")

    def first_result(self) -> None:
        """Notes that there are results now."""
        self._first = time.monotonic()

    def look(self) -> None:
        """Prints what has changed, if nobody watches a terminal. To be called every now and then."""
        if self._live is not None:
            return
        if self._first is None:
            if self._log.last not in ("", self._doing):
                self._doing = self._log.last
                click.echo(self._start_line())
        elif time.monotonic() - self._said >= _SECONDS_BETWEEN_LINES:
            self._said = time.monotonic()
            click.echo(self._line())

    def _start_line(self) -> str:
        return f"{self._counts.seconds:4.1f} s  {self._log.last or 'loading Spark'}"

    def _line(self) -> str:
        coffees = self._results.latest[FREE_COFFEES]
        last = coffees[-1] if coffees else None
        coffee = f"; a coffee for {last.key}, who bought {last.value['electronics_item']}" if last else ""
        return f"{self._counts.seconds:4.1f} s  {', '.join(' '.join(pair) for pair in self._numbers())}{coffee}"

    def _numbers(self) -> list[tuple[str, str]]:
        counts, last = self._counts, self._counts.last
        found = [
            ("in", f"{counts.records_in:,}"),
            ("out", f"{counts.records_out:,}"),
            ("records/s", f"{counts.rate():,.0f}"),
        ]
        if last is not None:
            found += [
                ("batch", f"{last.duration_ms:,.0f} ms"),
                ("lag", f"{last.lag:,}"),
                ("state", plural(last.state_rows, "row")),
            ]
        latency_ms = self._results.latency_ms(0.5, _RECENT)
        if latency_ms is not None:
            found.append(("latency", f"{latency_ms:,} ms"))
        return found

    def _render(self) -> RenderableType:
        if self._first is None:
            self._spinner.update(text=Text(self._start_line()))
            return self._spinner
        left = max(0.0, self._seconds - (time.monotonic() - self._first))
        numbers = Table(box=None, pad_edge=False, padding=(0, 3, 0, 0))
        for name, _ in self._numbers():
            numbers.add_column(Text(name, style="dim"), justify="right", no_wrap=True)
        numbers.add_row(*(Text(number, style="bold") for _, number in self._numbers()))
        title = Text.assemble(("Purchases on Spark", "bold"), (f"   {left:.0f} s to go, Ctrl-C ends it", "dim"))
        if self._address is not None:
            title.append(f"\nconsole: {self._address}", "cyan")
        wide = self._live is not None and self._live.console.width >= _WIDE
        rows = ((PATTERNS, REWARDS, FREE_COFFEES),) if wide else ((PATTERNS, REWARDS), (FREE_COFFEES,))
        grids = [Table.grid(padding=(0, 3)) for _ in rows]
        for grid, topics in zip(grids, rows, strict=True):
            grid.add_row(*(self._table(topic, _ROWS if wide else _FEWER_ROWS) for topic in topics))
        return Group(title, Text(), *grids, numbers)

    def _table(self, topic: str, rows: int) -> Table:
        title, columns = _TABLES[topic]
        table = Table(title=title, title_justify="left", title_style="bold cyan", box=box.SIMPLE_HEAD, pad_edge=False)
        for position, (name, _) in enumerate(columns):
            table.add_column(name, justify="left" if position == 0 else "right", no_wrap=True)
        latest = self._results.latest[topic][: -rows - 1 : -1]
        for result in latest:
            table.add_row(*(Text(cell(result)) for _, cell in columns))
        # As high from the beginning as in the end, or all that follows would jump.
        for _ in range(rows - len(latest)):
            table.add_row(*("" for _ in columns))
        return table

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._live is not None:
            # A start line has nothing to say once it is over.
            self._live.transient = self._first is None
        super().__exit__(kind, error, trace)


def _money(cents: int) -> str:
    return f"{cents / 100:,.2f}"

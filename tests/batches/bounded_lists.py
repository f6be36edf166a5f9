"""Backfill over lists of records, in this process."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import groupby, islice
from operator import attrgetter
from pathlib import Path

from headrace.batches.bounded_input import InputTopic, as_table, global_topics
from headrace.batches.bounded_rows import ROUND_BITS, BoundedJob, Part, RowKind, ShuffleRow, TaskInput
from headrace.batches.bounded_run import RESULTS, run_rounds
from headrace.batches.bounded_task import run_tasks
from headrace.topics.log import Output


class ListShuffle:
    """Sorts lists, and runs tasks in this process."""

    def __init__(self, directory: Path, *, page: int = 1000) -> None:
        self._directory = directory
        self._page = page

    def select(self, several: Sequence[list[ShuffleRow]], kinds: Iterable[RowKind], level: int) -> list[ShuffleRow]:
        wanted = set(kinds)
        return [row for rows in several for row in rows if row.kind in wanted and row.level == level]

    def merge(self, first: list[ShuffleRow], second: list[ShuffleRow]) -> list[ShuffleRow]:
        return first + second

    def run(self, job: BoundedJob, level: int, rows: list[ShuffleRow]) -> list[ShuffleRow]:
        sent = run_tasks(job, self._inputs(rows, min(self._page, job.chunk_records)), self._directory)
        return [row for pages in sent for page in pages for row in page.rows()]

    def has_next(self, several: Sequence[list[ShuffleRow]]) -> bool:
        return any(row.kind == RowKind.NEXT for rows in several for row in rows)

    def _inputs(self, rows: list[ShuffleRow], most: int) -> Iterator[TaskInput]:
        ordered = sorted(rows, key=attrgetter("task", "time", "input", "sender", "sequence"))
        for (task, is_state), group in groupby(ordered, key=lambda row: (row.task, row.kind == RowKind.STATE)):
            while some := list(islice(group, most)):
                yield TaskInput(task, is_state, [_part(number, some) for number in sorted({row.input for row in some})])


def _part(number: int, rows: Iterable[ShuffleRow]) -> Part:
    chosen = [row for row in rows if row.input == number]
    timestamps, keys, values, headers = zip(
        *map(attrgetter("timestamp", "key", "value", "headers"), chosen), strict=True
    )
    return Part(number, timestamps, keys, values, headers if any(headers) else None)


def run_lists(job: BoundedJob, inputs: Mapping[str, Sequence[Output]], directory: Path) -> list[ShuffleRow]:
    """Runs a backfill over lists of records, and returns its results in the order in which a log would have them."""
    tables = global_topics(job.layout.topology)
    job = replace(job, tables={topic: as_table(records) for topic, records in inputs.items() if topic in tables})
    rows = []
    for topic, records in inputs.items():
        if topic not in tables:
            as_row = InputTopic(job, topic).row
            rows.append([as_row(number, *record) for number, record in enumerate(records)])
    sent = run_rounds(job, rows, ListShuffle(directory))
    results = [row for part in sent for row in part if row.kind in RESULTS]
    return sorted(results, key=lambda row: (row.sequence >> ROUND_BITS, row.level, row.task, row.sequence))


def outputs_of(results: Iterable[ShuffleRow]) -> dict[str, list[ShuffleRow]]:
    """Returns the records for topics by topic."""
    found: dict[str, list[ShuffleRow]] = {}
    for row in results:
        if row.kind == RowKind.OUTPUT:
            found.setdefault(row.topic, []).append(row)
    return found

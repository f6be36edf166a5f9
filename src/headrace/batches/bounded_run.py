"""Backfill as rounds of levels, over whatever shuffles and runs tasks: Spark, or lists in this process.

A round runs level after level, as a micro-batch does. What has crossed a back edge, or a topic that the topology both
writes and reads, is the input of the next round, for which tasks hand their state on to themselves.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from operator import attrgetter
from pathlib import Path
from typing import Protocol, TypeVar

from headrace.batches.bounded_input import InputTopic, as_table, global_topics
from headrace.batches.bounded_rows import (
    INPUT_COLUMNS,
    ROUND_BITS,
    SORTED_BY,
    BoundedJob,
    InputPage,
    RowKind,
    ShuffleRow,
)
from headrace.batches.bounded_task import run_tasks
from headrace.topics.log import Output

Rows = TypeVar("Rows")
"""Shuffle rows, in whichever form."""

FIRST = (RowKind.STATE, RowKind.NEXT)
"""What a round begins with."""
RESULTS = (RowKind.OUTPUT, RowKind.CHANGELOG, RowKind.MEMORY)


class Shuffle(Protocol[Rows]):
    """Brings rows to tasks."""

    def select(self, several: Sequence[Rows], kinds: Iterable[RowKind], level: int) -> Rows:
        """Returns the rows of some kinds that are for tasks of a level."""
        ...

    def merge(self, first: Rows, second: Rows) -> Rows:
        """Returns all rows of both."""
        ...

    def run(self, job: BoundedJob, level: int, rows: Rows) -> Rows:
        """Runs the tasks of a level that get rows, and returns what they have sent."""
        ...

    def has_next(self, several: Sequence[Rows]) -> bool:
        """Returns whether there is a record for another round."""
        ...


def run_rounds(job: BoundedJob, inputs: Sequence[Rows], shuffle: Shuffle[Rows]) -> list[Rows]:
    """Runs everything, and returns what was sent; results are among it, see ``RESULTS``."""
    if not job.has_rounds:
        return _run_round(job, inputs, shuffle)
    done: list[Rows] = []
    number = 0
    step = replace(job, close_windows=False, keeps_state=True, logs_rows=False)
    sent = inputs
    while shuffle.has_next(sent):
        sent = _run_round(replace(step, round=number), sent, shuffle)
        done += sent
        number += 1
    if job.close_windows or job.logs_rows:
        sent = _run_round(replace(job, keeps_state=True, round=number), sent, shuffle)
        done += sent
        while shuffle.has_next(sent):
            number += 1
            sent = _run_round(replace(step, round=number), sent, shuffle)
            done += sent
    return done


def _run_round(job: BoundedJob, before: Sequence[Rows], shuffle: Shuffle[Rows]) -> list[Rows]:
    sent: list[Rows] = []
    for level in range(job.layout.depth):
        rows = shuffle.select(before, FIRST, level)
        if sent:
            rows = shuffle.merge(rows, shuffle.select(sent, (RowKind.INPUT,), level))
        sent.append(shuffle.run(job, level, rows))
    return sent


class ListShuffle:
    """Sorts lists, and runs tasks in this process: for tests, and for what is small."""

    def __init__(self, directory: Path, *, page: int = 1000) -> None:
        self._directory = directory
        self._page = page

    def select(self, several: Sequence[list[ShuffleRow]], kinds: Iterable[RowKind], level: int) -> list[ShuffleRow]:
        wanted = set(kinds)
        return [row for rows in several for row in rows if row.kind in wanted and row.level == level]

    def merge(self, first: list[ShuffleRow], second: list[ShuffleRow]) -> list[ShuffleRow]:
        return first + second

    def run(self, job: BoundedJob, level: int, rows: list[ShuffleRow]) -> list[ShuffleRow]:
        return [row for page in run_tasks(job, self._pages(rows), self._directory) for row in page]

    def has_next(self, several: Sequence[list[ShuffleRow]]) -> bool:
        return any(row.kind == RowKind.NEXT for rows in several for row in rows)

    def _pages(self, rows: list[ShuffleRow]) -> Iterator[InputPage]:
        ordered = map(attrgetter(*INPUT_COLUMNS), sorted(rows, key=attrgetter(*SORTED_BY)))
        while page := list(islice(ordered, self._page)):
            tasks, kinds, numbers, times, keys, values, headers = map(list, zip(*page, strict=True))
            yield tasks, kinds, numbers, times, keys, values, headers


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

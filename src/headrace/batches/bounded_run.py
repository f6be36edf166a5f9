"""Backfill as rounds of levels, over whatever shuffles and runs tasks: Spark, or lists in this process.

A round runs level after level, as a micro-batch does. What has crossed a back edge, or a topic that the topology both
writes and reads, is the input of the next round, for which tasks hand their state on to themselves.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Protocol, TypeVar

from headrace.batches.bounded_rows import (
    BoundedJob,
    RowKind,
)

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
    """Runs all rounds, and returns the rows that were sent; results are among them, see ``RESULTS``."""
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

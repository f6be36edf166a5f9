"""Merge of sorted pages: all that is for one task, by time, from any number of senders.

Pages come by the places of their first rows. Of those that have begun, whatever lies before the next page is next;
columns are cut, joined and sorted as a whole, so that a row costs next to nothing by itself. What is too much for the
memory, because many pages reach far, is merged into one long run in a file, of which a page at a time comes back.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from heapq import heappop, heappush
from itertools import count, pairwise
from operator import attrgetter
from pathlib import Path
from typing import NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa

from headrace.batches.bounded_rows import Part
from headrace.spark.bounded.row_pages import PAGE_ROWS, ROWS, page_length

_AT_ONCE = PAGE_ROWS
"""Rows that are waited for before some are given to the task."""
_AT_ONCE_BYTES = 32 << 20
"""Bytes of them: large values come in pages of few rows."""
_IN_MEMORY = 256 << 20
"""Bytes of pages that have begun; more are put into a file."""
_MERGED = ROWS.append(pa.field("sender", pa.int32()))

Ints: TypeAlias = "np.ndarray[tuple[int], np.dtype[np.int64]]"


class Place(NamedTuple):
    """Where a row stands among all that are for a task."""

    time: int
    input: int
    sender: int
    sequence: int


class Page(NamedTuple):
    """Rows of one input of a task, sorted by time, sender and sequence."""

    input: int
    sender: int | None
    """None: the rows have a column that says it, because they are of several."""
    rows: pa.RecordBatch

    @property
    def first(self) -> Place:
        time, sequence = (self.rows.column(name)[0].as_py() for name in ("time", "sequence"))
        sender = self.rows.column("sender")[0].as_py() if self.sender is None else self.sender
        return Place(time, self.input, sender, sequence)


class _Waiting:
    """A page that has begun."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.at = 0
        self._times = integers(page.rows.column("time"))

    def before(self, place: Place | None) -> Page | None:
        """Takes the rows that lie before a place."""
        start = self.at
        self.at = stop = len(self._times) if place is None else max(start, self._find(place))
        return self.page._replace(rows=self.page.rows.slice(start, stop - start)) if stop > start else None

    def _find(self, place: Place) -> int:
        low, high = _range(self._times, place.time)
        if low == high or self.page.input != place.input:
            return low if self.page.input >= place.input else high
        # Whole days may have one time.
        same = self.page.rows.slice(low, high - low)
        if self.page.sender is None:
            begin, end = _range(integers(same.column("sender")), place.sender)
        elif self.page.sender != place.sender:
            return low if self.page.sender > place.sender else high
        else:
            begin, end = 0, len(same)
        sequences = integers(same.column("sequence"))[begin:end]
        return low + begin + int(np.searchsorted(sequences, place.sequence))

    @property
    def left(self) -> int:
        return len(self._times) - self.at


class PageMerge:
    """Merges the pages of one task."""

    def __init__(
        self,
        pages: Iterable[Page],
        directory: Path,
        *,
        at_once: int = _AT_ONCE,
        at_once_bytes: int = _AT_ONCE_BYTES,
        in_memory: int = _IN_MEMORY,
    ) -> None:
        self._directory = directory
        self._at_once = at_once
        self._at_once_bytes = at_once_bytes
        self._in_memory = in_memory
        self._waiting: list[_Waiting] = []
        # The next page of each sender, by place: the shuffle, and runs in files. A number tells equal ones apart.
        self._coming: list[tuple[Place, int, Page, Iterator[Page]]] = []
        self._numbers = count()
        self._await(iter(pages))

    def parts(self) -> Iterator[list[Part]]:
        """Returns all rows: at each step what lies behind all before, of each input a part."""
        rows = size = 0
        while self._coming:
            first, _, page, others = heappop(self._coming)
            if rows >= self._at_once or size >= self._at_once_bytes:
                if given := self._take(first):
                    yield given
                self._spill()
                rows = size = 0
            self._waiting.append(_Waiting(page))
            rows, size = rows + len(page.rows), size + page.rows.nbytes
            self._await(others)
        if given := self._take(None):
            yield given

    def _await(self, pages: Iterator[Page]) -> None:
        page = next(pages, None)
        if page is not None:
            heappush(self._coming, (page.first, next(self._numbers), page, pages))

    def _take(self, place: Place | None) -> list[Part]:
        taken = _before(place, self._waiting)
        self._waiting = [waiting for waiting in self._waiting if waiting.left]
        return [_part(number, _joined(pages)) for number, pages in taken.items()]

    def _spill(self) -> None:
        """Puts pages that the shuffle has sent into files, if they are too much; runs are not written again."""
        sent = [waiting for waiting in self._waiting if waiting.page.sender is not None]
        if sum(waiting.page.rows.nbytes for waiting in sent) <= self._in_memory:
            return
        self._waiting = [waiting for waiting in self._waiting if waiting.page.sender is None]
        for number, pages in _before(None, sent).items():
            path = self._directory / f"run-{next(self._numbers)}"
            with pa.OSFile(str(path), "wb") as file, pa.ipc.new_stream(file, _MERGED) as stream:
                rows = _joined(pages).combine_chunks()
                stream.write_table(rows, max_chunksize=page_length(rows))
            self._await(_run(path, number))


def _range(ordered: Ints, value: int) -> tuple[int, int]:
    """Returns the places between which a value stands."""
    return int(np.searchsorted(ordered, value)), int(np.searchsorted(ordered, value, side="right"))


def _before(place: Place | None, several: Iterable[_Waiting]) -> dict[int, list[Page]]:
    """Takes what lies before a place, by input."""
    found: dict[int, list[Page]] = {}
    for waiting in several:
        page = waiting.before(place)
        if page is not None:
            found.setdefault(page.input, []).append(page)
    return found


def _run(path: Path, number: int) -> Iterator[Page]:
    with pa.OSFile(str(path)) as file, pa.ipc.open_stream(file) as stream:
        path.unlink()
        for rows in stream:
            yield Page(number, None, rows)


def _joined(pages: Sequence[Page]) -> pa.Table:
    """Returns the rows of pages of one input, sorted."""
    pages = sorted(pages, key=attrgetter("first"))
    table = pa.Table.from_batches([_with_sender(page) for page in pages], _MERGED)
    if all(page.rows.column("time")[-1].as_py() < following.first.time for page, following in pairwise(pages)):
        return table
    columns = [integers(table.column(name).combine_chunks()) for name in ("sequence", "sender", "time")]
    return table.take(pa.array(np.lexsort(columns)))


def _with_sender(page: Page) -> pa.RecordBatch:
    if page.sender is None:
        return page.rows
    senders = pa.repeat(pa.scalar(page.sender, pa.int32()), len(page.rows))
    return pa.RecordBatch.from_arrays([*page.rows.columns, senders], schema=_MERGED)


def _part(number: int, table: pa.Table) -> Part:
    headers = table.column("headers")
    return Part(
        number,
        integers(table.column("timestamp").combine_chunks()).tolist(),
        table.column("key").to_pylist(),
        table.column("value").to_pylist(),
        None if headers.null_count == len(headers) else headers.to_pylist(),
    )


def integers(column: pa.Array) -> Ints:
    """Returns a column without nulls as numpy has it."""
    found: Ints = column.to_numpy(zero_copy_only=False)
    return found

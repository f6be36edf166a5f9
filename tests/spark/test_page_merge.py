"""Sorted pages of many senders come out as one order, whatever overlaps and whatever has to wait in files."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.spark.bounded import row_pages
from headrace.spark.bounded.page_merge import Page, PageMerge
from headrace.spark.bounded.row_pages import ROWS

Row = tuple[int, int, int, int]
"""Time, input, sender, sequence."""


def pages_of(rows: Sequence[Row], run: int, size: int) -> Iterator[Page]:
    """Returns pages of ``size`` rows of one input and sender, sorted within runs of ``run`` rows."""
    pages = []
    by_sender: dict[tuple[int, int], list[Row]] = {}
    for row in rows:
        by_sender.setdefault(row[1:3], []).append(row)
    for (number, sender), own in by_sender.items():
        for begin in range(0, len(own), run):
            ordered = sorted(own[begin : begin + run], key=lambda row: (row[0], row[3]))
            for start in range(0, len(ordered), size):
                part = ordered[start : start + size]
                columns = [
                    [row[0] for row in part],
                    [row[3] for row in part],
                    [None] * len(part),
                    [row[3] * 10 for row in part],
                    [b"key-%d" % row[3] for row in part],
                    [None if row[3] % 3 else b"value-%d" % row[2] for row in part],
                    [None if number else b"header" for row in part],
                ]
                arrays = [pa.array(column, kind) for column, kind in zip(columns, ROWS.types, strict=True)]
                pages.append(Page(number, sender, pa.RecordBatch.from_arrays(arrays, schema=ROWS)))
    return iter(sorted(pages, key=lambda page: page.first))


@given(
    places=st.lists(st.tuples(st.integers(0, 30), st.integers(0, 1), st.integers(-1, 2)), max_size=80),
    run=st.integers(1, 30),
    size=st.integers(1, 8),
    at_once=st.integers(1, 40),
    in_memory=st.sampled_from([0, 2_000, 1 << 30]),
)
def test_rows_come_in_order_of_time_sender_and_sequence(
    places: list[tuple[int, int, int]], run: int, size: int, at_once: int, in_memory: int
) -> None:
    rows = [(*place, sequence) for sequence, place in enumerate(places)]
    found: dict[int, list[Row]] = {0: [], 1: []}
    newest: Row = (-1, 0, 0, 0)
    with TemporaryDirectory() as name:
        directory = Path(name)
        merge = PageMerge(pages_of(rows, run, size), directory, at_once=at_once, in_memory=in_memory)
        for parts in merge.parts():
            places_now: list[Row] = []
            for part in parts:
                for timestamp, key, value, header in zip(
                    part.timestamps, part.keys, part.values, part.headers or [None] * len(part), strict=True
                ):
                    sequence = timestamp // 10
                    assert key == b"key-%d" % sequence
                    sender = places[sequence][2]
                    assert value == (None if sequence % 3 else b"value-%d" % sender)
                    assert header == (None if part.input else b"header")
                    found[part.input].append((places[sequence][0], part.input, sender, sequence))
                    places_now.append(found[part.input][-1])
            assert min(places_now) > newest, "nothing lies before what was given earlier"
            newest = max(places_now)
        assert list(directory.iterdir()) == []
    assert found[0] + found[1] == sorted(rows, key=lambda row: (row[1], row[0], row[2], row[3]))


def large_pages(*pages: Sequence[int], row_bytes: int) -> Iterator[Page]:
    """Returns pages with rows of these times."""
    for times in pages:
        count = len(times)
        columns = [times, times, [None] * count, times, [b"key"] * count, [bytes(row_bytes)] * count, [None] * count]
        arrays = [pa.array(column, kind) for column, kind in zip(columns, ROWS.types, strict=True)]
        yield Page(0, -1, pa.RecordBatch.from_arrays(arrays, schema=ROWS))


def test_large_rows_do_not_wait_for_many_others(tmp_path: Path) -> None:
    pages = large_pages(*([time] for time in range(100)), row_bytes=1_000)
    steps = list(PageMerge(pages, tmp_path, at_once=1_000, at_once_bytes=10_000).parts())
    assert max(sum(map(len, parts)) for parts in steps) <= 10
    assert sum(len(part) for parts in steps for part in parts) == 100


def test_large_rows_come_back_from_files_few_at_a_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(row_pages, "_PAGE_BYTES", 10_000)
    pages = large_pages(*([time, 1_000 + time] for time in range(400)), row_bytes=1_000)
    merge = PageMerge(pages, tmp_path, at_once=1_000, at_once_bytes=10_000, in_memory=100_000)
    steps = [sum(map(len, parts)) for parts in merge.parts()]
    assert sum(steps) == 800
    # Of each of the files a piece is in memory.
    assert max(steps) <= 20


def test_a_page_alone_is_given_at_once(tmp_path: Path) -> None:
    rows = [(time, 0, -1, time) for time in range(100)]
    steps = list(PageMerge(pages_of(rows, 100, 10), tmp_path, at_once=20).parts())
    assert [sum(map(len, parts)) for parts in steps] == [20, 20, 20, 20, 20]

"""Pages of shuffle rows in data frames: a row of Spark says whom a page is for, and has its rows as bytes of Arrow.

Spark would take longer over each single row than the task that sends it, or gets it.
"""

from __future__ import annotations

from collections.abc import Iterator
from struct import Struct
from typing import Any, NamedTuple

import pyarrow as pa
from pyspark.sql import DataFrame

from headrace.batches.bounded_rows import RowPage

ROWS = pa.schema(
    [
        ("time", pa.int64()),
        ("sequence", pa.int64()),
        ("partition", pa.int32()),
        ("timestamp", pa.int64()),
        ("key", pa.binary()),
        ("value", pa.binary()),
        ("headers", pa.binary()),
    ]
)
"""Columns of the rows of a page."""
PAGE_ROWS = 8_192
_PAGE_BYTES = 8 << 20
"""About as many in a page at most: large values make pages of few rows, for a page lies in memory in one piece."""

_FIELDS = {
    "kind": ("int", pa.int32()),
    "level": ("int", pa.int32()),
    "task": ("int", pa.int32()),
    "input": ("int", pa.int32()),
    "sender": ("int", pa.int32()),
    "topic": ("string", pa.string()),
    "first": ("long", pa.int64()),
    "sequence": ("long", pa.int64()),
    "count": ("long", pa.int64()),
    "data": ("binary", pa.binary()),
}
PAGES = ", ".join(f"{name} {kind}" for name, (kind, _) in _FIELDS.items())
"""Columns of a data frame of pages; ``first`` and ``sequence`` are of the first row."""
_ARROW = pa.schema([(name, kind) for name, (_, kind) in _FIELDS.items()])
_BOUNDS = Struct("=ii")
# Before Spark copies a page from socket to row to shuffle to sort and back: it has a third of the bytes then.
_COMPRESSED = pa.ipc.IpcWriteOptions(compression="lz4")


class PageHead(NamedTuple):
    """What all rows of a page have alike, see ``ShuffleRow``."""

    kind: int
    level: int
    task: int
    input: int
    sender: int
    topic: str


def page_length(rows: pa.Table) -> int:
    """Returns how many of some rows make a page."""
    count, size = len(rows), int(rows.nbytes)
    return max(1, min(PAGE_ROWS, _PAGE_BYTES * count // max(1, size)))


def packed_rows(head: PageHead, rows: pa.Table) -> Iterator[pa.RecordBatch]:
    """Returns rows that are sorted as pages, each for itself: their bytes are not copied again."""
    count = page_length(rows)
    for start in range(0, len(rows), count):
        part = rows.slice(start, count)
        firsts = (part.column(name)[0].as_py() for name in ("time", "sequence"))
        values = zip((*head, *firsts, len(part)), _ARROW.types[:-1], strict=True)
        columns = [pa.array([value], kind) for value, kind in values]
        yield pa.RecordBatch.from_arrays([*columns, _one_value(_packed(part))], schema=_ARROW)


def packed_page(page: RowPage) -> Iterator[pa.RecordBatch]:
    """Returns what a task sends as pages, for a data frame."""
    count = len(page)
    columns = [
        page.times,
        range(page.first, page.first + count),
        page.partitions,
        page.timestamps,
        page.keys,
        page.values,
        page.headers,
    ]
    arrays = [_column(values, kind, count) for values, kind in zip(columns, ROWS.types, strict=True)]
    head = PageHead(page.kind, page.level, page.task, page.input, page.sender, page.topic)
    return packed_rows(head, pa.Table.from_arrays(arrays, schema=ROWS))


# Any: what a field of RowPage is.
def _column(values: Any, kind: pa.DataType, count: int) -> pa.Array:
    if values is None:
        return pa.nulls(count, kind)
    if isinstance(values, int):
        return pa.repeat(pa.scalar(values, kind), count)
    return pa.array(values, kind)


def _packed(rows: pa.Table) -> pa.Buffer:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, rows.schema, options=_COMPRESSED) as stream:
        # Behind other rows of a table a part may lie in two pieces.
        stream.write_table(rows.combine_chunks())
    return sink.getvalue()


def _one_value(data: pa.Buffer) -> pa.BinaryArray:
    """Returns a column with these bytes as its only value."""
    bounds = pa.py_buffer(_BOUNDS.pack(0, data.size))
    return pa.Array.from_buffers(pa.binary(), 1, [None, bounds, data])


def unpacked_rows(data: pa.Buffer | bytes) -> pa.RecordBatch:
    """Returns the rows of a page, which its column ``data`` has."""
    with pa.ipc.open_stream(data) as stream:
        return stream.read_next_batch()


def local_pages(pages: DataFrame) -> Iterator[RowPage]:
    """Returns pages in this process, one partition of Spark after the other."""
    for kind, level, task, number, sender, topic, *_, data in pages.toLocalIterator(prefetchPartitions=True):
        columns = (column.to_pylist() for column in unpacked_rows(data).columns)
        times, sequences, partitions, timestamps, keys, values, headers = columns
        head = (kind, level, task, number, sender, topic)
        yield RowPage(*head, sequences[0], times, partitions, timestamps, keys, values, headers)

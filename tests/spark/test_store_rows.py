"""Rows that a changelog leaves, in memory and on disk, for every kind of store that data frames can read."""

from __future__ import annotations

import pytest

from headrace.errors import UnsupportedOperationError
from headrace.spark.dataframes.store_rows import StoreShape, TableRow, restored
from headrace.topics.log import Raw


def raw(offset: int, timestamp_ms: int, key: bytes, value: bytes | None) -> Raw:
    return offset, timestamp_ms, key, value, ()


def time(milliseconds: int) -> bytes:
    return milliseconds.to_bytes(8, "big")


PLAIN = [raw(0, 5, b"a", b"1"), raw(1, 6, b"b", b"2"), raw(2, 7, b"a", None), raw(3, 3, b"b", b"3")]
# A key of a window has its start and a number of four bytes, that of a session its end and its start.
WINDOWS = [
    raw(0, 5, b"a" + time(0) + bytes(4), b"1"),
    raw(1, 15, b"a" + time(10) + bytes(4), b"2"),
    raw(2, 16, b"a" + time(10) + bytes(4), b"3"),
    raw(3, 90_000, b"b" + time(90_000) + bytes(4), b"4"),
]
SESSIONS = [raw(0, 9, b"a" + time(9) + time(3), b"1"), raw(1, 9, b"b" + time(4) + time(4), b"2")]
MANY = 10**6
"""So many records are kept on disk."""


@pytest.mark.parametrize("records", [len(PLAIN), MANY])
@pytest.mark.parametrize(
    ("shape", "changelog", "expected"),
    [
        (StoreShape("s", "key_value"), PLAIN, [TableRow(b"b", b"3", None)]),
        (StoreShape("s", "timestamped_key_value"), PLAIN, [TableRow(b"b", b"3", 3)]),
        # The latest version is that of the latest time.
        (StoreShape("s", "versioned", retention_ms=1_000), PLAIN, [TableRow(b"b", b"2", 6)]),
        (
            StoreShape("s", "timestamped_window", 10, 3_600_000),
            WINDOWS,
            [
                TableRow(b"a", b"1", 5, 0, 10),
                TableRow(b"a", b"3", 16, 10, 20),
                TableRow(b"b", b"4", 90_000, 90_000, 90_010),
            ],
        ),
        # The windows of a are over when b has one that is later by more than the retention.
        (StoreShape("s", "window", 10, 60_000), WINDOWS, [TableRow(b"b", b"4", None, 90_000, 90_010)]),
        (
            StoreShape("s", "session", None, 60_000),
            SESSIONS,
            [TableRow(b"a", b"1", None, 3, 9), TableRow(b"b", b"2", None, 4, 4)],
        ),
    ],
    ids=lambda value: value.kind if isinstance(value, StoreShape) else "",
)
def test_changelog_leaves_current_rows(
    shape: StoreShape, changelog: list[Raw], expected: list[TableRow], records: int
) -> None:
    with restored(shape, [changelog[:1], [], changelog[1:]], records) as rows:
        assert sorted(rows) == expected


def test_store_without_rows_to_show_is_refused() -> None:
    with (
        pytest.raises(UnsupportedOperationError, match="store 's' is of the kind buffer"),
        restored(StoreShape("s", "buffer"), [], 0),
    ):
        pass

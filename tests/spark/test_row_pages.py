"""Pages of rows: as many rows as one may have, fewer if they are large, and all of them come back in their order."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from headrace.batches.bounded_rows import RowKind, RowPage
from headrace.spark.bounded.row_pages import PAGE_ROWS, packed_page, unpacked_rows


def page_of(values: Sequence[bytes]) -> RowPage:
    count = len(values)
    head = (RowKind.OUTPUT, 0, 0, 0, 0, "out")
    return RowPage(*head, 1, 0, [None] * count, range(count), [None] * count, values, None)


@pytest.mark.parametrize(
    ("size", "rows", "pages"), [(10, PAGE_ROWS + 1, 2), (1 << 20, 64, 8), (20 << 20, 2, 2), (10, 0, 0)]
)
def test_a_page_is_neither_long_nor_large(size: int, rows: int, pages: int) -> None:
    values = [number.to_bytes(4, "big") + bytes(size - 4) for number in range(rows)]
    packed = list(packed_page(page_of(values)))
    assert pages <= len(packed) <= pages + 2
    found = [unpacked_rows(data.as_buffer()) for each in packed for data in each.column("data")]
    assert [value for each in found for value in each.column("value").to_pylist()] == values
    assert [each.column("count")[0].as_py() for each in packed] == list(map(len, found))
    assert all(len(each) <= PAGE_ROWS and (len(each) == 1 or each.nbytes < 10 << 20) for each in found)

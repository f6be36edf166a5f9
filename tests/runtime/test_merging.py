"""Merging the records of several upstream tasks."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain, count

from hypothesis import given
from hypothesis import strategies as st

from headrace.runtime.merging import merge_by_time
from headrace.topics.log import Raw

PARTS = st.lists(st.lists(st.lists(st.integers(0, 9), max_size=4), max_size=4), min_size=1, max_size=4)
"""Parts of pages of times."""


def by_heads(parts: list[list[Raw]]) -> list[Raw]:
    """Takes again and again the smallest head, the earlier part at equal times."""
    queues, merged = [list(part) for part in parts], []
    while any(queues):
        queue = min((queue for queue in queues if queue), key=lambda queue: queue[0][1])
        merged.append(queue.pop(0))
    return merged


@given(PARTS)
def test_the_order_is_that_of_smallest_heads(times: list[list[list[int]]]) -> None:
    offsets = count()
    parts: list[list[list[Raw]]] = [
        [[(next(offsets), time_ms, b"k", None, ()) for time_ms in page] for page in part] for part in times
    ]
    merged = [record for page in merge_by_time(parts) for record in page]
    assert merged == by_heads([list(chain.from_iterable(part)) for part in parts])


def test_no_page_is_fetched_before_it_is_needed() -> None:
    fetched = []

    def pages(name: str) -> Iterator[list[Raw]]:
        for time_ms in range(0, 100, 10):
            fetched.append(name)
            yield [(n, time_ms + n, None, None, ()) for n in range(10)]

    merged = merge_by_time([pages("a"), pages("b")])
    assert [time_ms for _, time_ms, _, _, _ in next(merged)] == sorted([*range(9), *range(9)])
    assert sorted(fetched) == ["a", "b"]

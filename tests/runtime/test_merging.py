"""Merging the records of several upstream tasks."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from headrace.runtime.merging import merge_by_time
from headrace.topics.log import Raw

PARTS = st.lists(st.lists(st.integers(0, 9), max_size=8), min_size=1, max_size=4)


def by_heads(parts: list[list[Raw]]) -> list[Raw]:
    """Takes again and again the smallest head, the earlier part at equal times."""
    queues, merged = [list(part) for part in parts], []
    while any(queues):
        queue = min((queue for queue in queues if queue), key=lambda queue: queue[0][1])
        merged.append(queue.pop(0))
    return merged


@given(PARTS)
def test_the_order_is_that_of_smallest_heads(times: list[list[int]]) -> None:
    parts: list[list[Raw]] = [
        [(offset, time_ms, b"%d" % number, None, ()) for offset, time_ms in enumerate(part)]
        for number, part in enumerate(times)
    ]
    assert merge_by_time(parts) == by_heads(parts)

"""The records of one partition that several upstream tasks have sent, as one sequence: that of their processing."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate, chain

from headrace.topics.log import Raw


def merge_by_time(parts: Sequence[Sequence[Raw]]) -> list[Raw]:
    """Takes again and again the first record with the smallest timestamp, at equal times that of the earlier part.

    Records of one part never overtake each other. A record that is older than one before it follows that one at once,
    so sorting by the largest time so far gives the same order, and most of the work is done by ``sorted``.

    >>> left = [(0, 1, None, b"l1", ()), (1, 9, None, b"l9", ()), (2, 4, None, b"l4", ())]
    >>> right = [(0, 1, None, b"r1", ()), (1, 5, None, b"r5", ())]
    >>> [value for _, _, _, value, _ in merge_by_time([left, right])]
    [b'l1', b'r1', b'r5', b'l9', b'l4']
    """
    if len(parts) == 1:
        return list(parts[0])
    records = list(chain.from_iterable(parts))
    times = list(chain.from_iterable(accumulate((record[1] for record in part), max) for part in parts))
    return [records[place] for place in sorted(range(len(records)), key=times.__getitem__)]

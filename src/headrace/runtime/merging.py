"""The records of one partition that several upstream tasks have sent, as one sequence: that of their processing."""

from __future__ import annotations

import sys
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate, islice
from operator import itemgetter

from headrace.topics.log import Raw

_time_of = itemgetter(1)


def merge_by_time(parts: Sequence[Iterable[Sequence[Raw]]]) -> Iterator[Sequence[Raw]]:
    """Takes again and again the first record with the smallest timestamp, at equal times that of the earlier part.

    Parts come in pages, and pages are returned: no more of a part is fetched than the next page needs. Records of one
    part never overtake each other. A record that is older than one before it follows that one at once, so sorting by
    the largest time so far gives the same order, and most of the work is done by ``sorted``.

    >>> left = [[(0, 1, None, b"l1", ()), (1, 9, None, b"l9", ())], [(2, 4, None, b"l4", ())]]
    >>> right = [[(0, 1, None, b"r1", ()), (1, 5, None, b"r5", ())]]
    >>> [[value for _, _, _, value, _ in page] for page in merge_by_time([left, right])]
    [[b'l1', b'r1'], [b'r5'], [b'l9', b'l4']]
    """
    if len(parts) == 1:
        yield from parts[0]
        return
    ahead = [_Ahead(part) for part in parts]
    for part in ahead:
        part.fetch()
    while any(ahead):
        # Whoever has more to come may go on with a record of the time at which it ends now.
        bound_ms = min((part.end_ms for part in ahead if not part.is_over), default=None)
        records, times = list[Raw](), list[int]()
        for part in ahead:
            part.move_before(bound_ms, records, times)
        if records:
            yield [records[place] for place in sorted(range(len(records)), key=times.__getitem__)]
        for part in ahead:
            if not part.is_over and part.end_ms == bound_ms:
                part.fetch()


class _Ahead:
    """What was fetched of a part and has not found its place, with the largest time so far at each record."""

    def __init__(self, pages: Iterable[Sequence[Raw]]) -> None:
        self._pages = iter(pages)
        self._records: list[Raw] = []
        self._times: list[int] = []
        self.end_ms = -sys.maxsize
        self.is_over = False
        """Whether no page is left to fetch."""

    def __bool__(self) -> bool:
        return bool(self._records)

    def fetch(self) -> None:
        """Fetches the next page that has records."""
        page = next(filter(None, self._pages), None)
        if page is None:
            self.is_over = True
            return
        self._times += islice(accumulate(map(_time_of, page), max, initial=self.end_ms), 1, None)
        self._records += page
        self.end_ms = self._times[-1]

    def move_before(self, bound_ms: int | None, records: list[Raw], times: list[int]) -> None:
        """Moves the records before a time to others, or all of them."""
        count = len(self._times) if bound_ms is None else bisect_left(self._times, bound_ms)
        records += self._records[:count]
        times += self._times[:count]
        del self._records[:count], self._times[:count]

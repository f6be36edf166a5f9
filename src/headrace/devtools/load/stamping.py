"""Records from pairs of key and value: event time, and a limit on their number."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from headrace.topics.log import Output


def stamped(
    blocks: Iterable[list[tuple[bytes | None, bytes]]], *, start_ms: int, interval_ms: float, count: int | None = None
) -> Iterator[list[Output]]:
    """Gives the records timestamps that begin at ``start_ms`` and go on evenly, and ends after ``count`` of them.

    >>> list(stamped([[(b"a", b"1"), (None, b"2")], [(b"a", b"3")]], start_ms=0, interval_ms=2.5, count=3))
    [[(None, 0, b'a', b'1', ()), (None, 2, None, b'2', ())], [(None, 5, b'a', b'3', ())]]
    """
    number = 0
    for block in blocks:
        pairs = block if count is None else block[: count - number]
        yield [
            (None, start_ms + int(position * interval_ms), key, value, ())
            for position, (key, value) in enumerate(pairs, number)
        ]
        number += len(pairs)
        if count is not None and number >= count:
            return

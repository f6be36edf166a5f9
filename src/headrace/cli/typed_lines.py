"""Lines of stdin as they come, in pieces that are there now: what is typed must not wait for more input."""

from __future__ import annotations

import io
import os
import select
from collections.abc import Iterator
from typing import BinaryIO

_PIECE = 1 << 18
_IDLE_SECONDS = 0.02


def pieces(stream: BinaryIO) -> Iterator[list[bytes]]:
    """Yields lines without their ends, and an empty list whenever nothing more is there for now.

    >>> list(pieces(io.BytesIO(b"one\\r\\ntwo\\nthree")))
    [[b'one', b'two'], [b'three']]
    """
    rest = b""
    for data in _blocks(stream):
        if not data:
            yield []
            continue
        *lines, rest = (rest + data).split(b"\n")
        if lines:
            yield [line.removesuffix(b"\r") for line in lines]
    if rest:
        yield [rest.removesuffix(b"\r")]


def _blocks(stream: BinaryIO) -> Iterator[bytes]:
    try:
        descriptor = stream.fileno()
    except (OSError, io.UnsupportedOperation):
        # Not a file of the operating system, in a test for instance: everything is there.
        yield from iter(lambda: stream.read(_PIECE), b"")
        return
    while True:
        if not select.select([descriptor], [], [], _IDLE_SECONDS)[0]:
            yield b""
            select.select([descriptor], [], [])
        data = os.read(descriptor, _PIECE)
        if not data:
            return
        yield data

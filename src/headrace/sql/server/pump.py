"""Pump from a blocking iterator to the event loop, in batches and with backpressure."""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Generic, TypeVar

T = TypeVar("T")

_AHEAD = 5_000
"""So many items are fetched before the reader must take some."""


class Pump(Generic[T]):
    """Iterates in a thread of its own; ``batches`` is read in the event loop."""

    def __init__(self, items: Iterator[T], close: Callable[[], None]) -> None:
        self._items = items
        self._close: Callable[[], None] | None = close
        self._buffer: deque[T] = deque()
        self._room = threading.Condition()
        self._is_done = False
        self._is_closed = False
        self.failure: Exception | None = None
        """What the iterator raised; known when the batches have ended."""
        self._loop = asyncio.get_running_loop()
        self._arrived = asyncio.Event()
        self._thread = threading.Thread(target=self._run, name="headrace-sql-rows", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        try:
            for item in self._items:
                with self._room:
                    self._room.wait_for(lambda: len(self._buffer) < _AHEAD or self._is_closed)
                    if self._is_closed:
                        return
                    self._buffer.append(item)
                self._tell()
        except Exception as error:
            self.failure = error
        finally:
            self._is_done = True
            self._tell()

    def _tell(self) -> None:
        try:
            self._loop.call_soon_threadsafe(self._arrived.set)
        except RuntimeError:
            # The loop has ended, and whoever read with it.
            self._is_closed = True

    async def batches(self) -> AsyncIterator[list[T]]:
        """Yields what has come since; ends with the iterator."""
        try:
            while True:
                await self._arrived.wait()
                self._arrived.clear()
                done = self._is_done
                with self._room:
                    taken = list(self._buffer)
                    self._buffer.clear()
                    self._room.notify_all()
                if taken:
                    yield taken
                if done:
                    return
        finally:
            self.close()

    def end(self) -> None:
        """Ends the batches, from any thread, also if the iterator never gives another item."""
        with self._room:
            self._is_done = self._is_closed = True
            self._room.notify_all()
        self._tell()

    def close(self) -> None:
        """Ends the iteration; a second call does nothing."""
        with self._room:
            close, self._close = self._close, None
            self._is_closed = True
            self._room.notify_all()
        if close is not None:
            close()

"""Engines that read what an environment had at one moment, while somebody else goes on writing."""

from __future__ import annotations

from collections.abc import Callable
from typing import NoReturn, TypeVar

from headrace.errors import InvalidStateStoreError
from headrace.state.disk import LmdbEngine, LmdbEnvironment, Transaction

T = TypeVar("T")


class Snapshot:
    """Engines of an environment that only read, all of them at the same moment: that of the last ``begin``.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as directory:
    ...     environment = LmdbEnvironment(directory)
    ...     environment.engine("counts").put(b"a", b"1")
    ...     snapshot = Snapshot(environment)
    ...     seen = snapshot.engine("counts")
    ...     snapshot.begin()
    ...     environment.engine("counts").put(b"a", b"2")
    ...     print(seen.get(b"a"))
    ...     snapshot.end()
    ...     environment.close()
    b'1'
    """

    __slots__ = ("_environment", "pinned")

    def __init__(self, environment: LmdbEnvironment) -> None:
        self._environment = environment
        self.pinned: Transaction | None = None
        """What everything is read in; the engines look for it under this name."""

    def begin(self) -> None:
        """Looks at what is there now."""
        self.end()
        self.pinned = self._environment.begin()

    def end(self) -> None:
        """Stops looking; what was seen may be overwritten."""
        pinned, self.pinned = self.pinned, None
        if pinned is not None:
            pinned.abort()

    def engine(self, name: str) -> LmdbEngine:
        """Returns the engine of that name, as far as it can be read."""
        # It needs no more of an environment than what stands here.
        return LmdbEngine(self, self._environment.engine(name).database)  # type: ignore[arg-type]

    def read(self, action: Callable[[Transaction], T]) -> T:
        if self.pinned is None:
            message = "what was read is over: its iterator, or its store, is closed; ask again"
            raise InvalidStateStoreError(message)
        return action(self.pinned)

    def write(self, action: Callable[[Transaction], T]) -> NoReturn:
        message = "a view only reads; what a store keeps is changed by the processors of its topology"
        raise InvalidStateStoreError(message)

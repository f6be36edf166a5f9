"""Threads, locks, futures and the clock of a history, in place of Python's own."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from types import TracebackType
from typing import Any, Self

from tests.simulation.scheduler import Actor, Scheduler


class World:
    """The history that runs now; what stands in for modules asks it."""

    scheduler: Scheduler
    # Any: what the broker, and hooks of a history, are is known there.
    broker: Any = None
    failing: float = 0.0
    """That a user's function raises."""
    decided: frozenset[str] = frozenset()
    """Tasks that a driver believes to be done, if the attempt does not decide."""
    truncated: Callable[[], None]
    """Called when a reset has emptied topics."""


def _scheduler() -> Scheduler:
    return World.scheduler


class Waiters:
    """Actors that wait for something to change."""

    def __init__(self) -> None:
        self._waiting: list[tuple[Actor, int]] = []

    def wait_for(self, condition: Callable[[], Any], seconds: float | None) -> Any:
        scheduler = _scheduler()
        deadline = None if seconds is None else scheduler.now + seconds
        while not (found := condition()):
            left = None if deadline is None else deadline - scheduler.now
            if left is not None and left <= 0:
                return found
            self._waiting.append(scheduler.new_ticket())
            scheduler.wait(left)
        return found

    def wake(self) -> None:
        waiting, self._waiting = self._waiting, []
        for actor, ticket in waiting:
            _scheduler().wake(actor, ticket)


class Future:
    """A result that another actor, or an answer of the broker, brings."""

    def __init__(self) -> None:
        self._done = False
        self._result: Any = None
        self._error: BaseException | None = None
        self._waiters = Waiters()

    def set_result(self, result: Any) -> None:
        self._done, self._result = True, result
        self._waiters.wake()

    def set_exception(self, error: BaseException) -> None:
        self._done, self._error = True, error
        self._waiters.wake()

    def result(self, seconds: float | None = None) -> Any:
        if not self._waiters.wait_for(lambda: self._done, seconds):
            raise TimeoutError
        if self._error is not None:
            raise self._error
        return self._result


class ThreadPoolExecutor:
    """Does one thing after the other, in any order."""

    def __init__(self, _most: int = 1) -> None:
        pass

    def map(self, function: Callable[[Any], Any], each: Iterable[Any]) -> Iterator[Any]:
        given = list(each)
        _scheduler().rng.shuffle(given)
        return iter([function(one) for one in given])

    def submit(self, function: Callable[..., Any], *arguments: Any) -> Future:
        future = Future()
        try:
            future.set_result(function(*arguments))
        except Exception as error:
            future.set_exception(error)
        return future

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        pass


class Lock:
    """A lock between actors."""

    def __init__(self) -> None:
        self._held = False
        self._waiters = Waiters()

    def __enter__(self) -> None:
        self._waiters.wait_for(lambda: not self._held, None)
        self._held = True

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._held = False
        self._waiters.wake()


class Condition:
    """Between two steps nobody else runs, so entering it does nothing."""

    def __init__(self) -> None:
        self._waiters = Waiters()

    def wait_for(self, condition: Callable[[], Any], seconds: float | None = None) -> Any:
        return self._waiters.wait_for(condition, seconds)

    def notify(self) -> None:
        self._waiters.wake()

    notify_all = notify

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        pass


class _Event:
    def __init__(self) -> None:
        self._set = False
        self._waiters = Waiters()

    def set(self) -> None:
        self._set = True
        self._waiters.wake()

    def is_set(self) -> bool:
        return self._set

    def wait(self, seconds: float | None = None) -> bool:
        return bool(self._waiters.wait_for(lambda: self._set, seconds))


class _Thread:
    """An actor of the process that starts it."""

    def __init__(
        self, target: Callable[..., object], name: str = "", args: tuple[Any, ...] = (), *, daemon: bool = False
    ) -> None:
        self._target, self.name, self._arguments = target, name, args
        self._is_alive = False
        self._waiters = Waiters()

    def start(self) -> None:
        current = _scheduler().current
        assert current is not None, "threads are started by actors"
        self._is_alive = True
        current.process.spawn(self._run, self.name)

    def _run(self) -> None:
        try:
            self._target(*self._arguments)
        finally:
            self._is_alive = False
            self._waiters.wake()

    def join(self, _seconds: float | None = None) -> None:
        self._waiters.wait_for(lambda: not self._is_alive, None)

    def is_alive(self) -> bool:
        return self._is_alive


class Threading:
    """In place of the module ``threading``."""

    Thread, Condition, Event, Lock = _Thread, Condition, _Event, Lock


class NoThreading:
    """In place of ``threading`` where a thread only hears answers, which come by themselves here."""

    Event = _Event

    class Thread:
        def __init__(self, **_: object) -> None:
            pass

        def start(self) -> None:
            pass


class Clock:
    """In place of the module ``time``."""

    @staticmethod
    def monotonic() -> float:
        return World.scheduler.now

    perf_counter = monotonic

    @staticmethod
    def time() -> float:
        return 1_700_000_000 + World.scheduler.now

    @staticmethod
    def time_ns() -> int:
        return int((1_700_000_000 + World.scheduler.now) * 1_000_000_000)

    @staticmethod
    def sleep(seconds: float) -> None:
        World.scheduler.sleep(seconds)

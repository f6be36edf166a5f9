"""A log whose user dies at one of the calls that change something, before or after it has its effect."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

from headrace.topics.journal import DurableLog

_CHANGING = frozenset(
    {"create_topic", "grow_topic", "delete_topic", "append", "describe_application", "delete_records"}
)
_JOURNAL = frozenset({"begin", "commit"})
_TASK = frozenset({"open", "commit"})


class Crash(BaseException):
    """Stands for the end of the process: nobody may handle it."""


class Countdown:
    """Counts calls that change something; at the last one the process ends."""

    def __init__(self, calls: int, *, after: bool) -> None:
        self._left = calls
        self._after = after
        self.called: list[str] = []

    def call(self, name: str, function: Callable[..., Any], *args: Any, **options: Any) -> Any:
        self._left -= 1
        self.called.append(name)
        if self._left == 0 and not self._after:
            raise Crash(name)
        result = function(*args, **options)
        if self._left == 0:
            raise Crash(name)
        return result


class _Crashing:
    """Passes everything on, and counts calls of these names."""

    def __init__(self, thing: Any, countdown: Countdown, names: frozenset[str]) -> None:
        self._thing = thing
        self._countdown = countdown
        self._names = names

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._thing, name)
        if name in self._names:
            return lambda *args, **options: self._countdown.call(name, found, *args, **options)
        return found


class _CrashingLog(_Crashing):
    def open_journal(self, *args: Any) -> Any:
        opened = self._countdown.call("open_journal", self._thing.open_journal, *args)
        return _Crashing(opened, self._countdown, _JOURNAL)

    def task_journal(self, *args: Any) -> Any:
        return _Crashing(self._thing.task_journal(*args), self._countdown, _TASK)


def crashing_log(log: DurableLog, countdown: Countdown) -> DurableLog:
    return cast("DurableLog", _CrashingLog(log, countdown, _CHANGING))

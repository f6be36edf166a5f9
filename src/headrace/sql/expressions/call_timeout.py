"""Time limit of calls that may never return."""

from __future__ import annotations

import threading
from collections.abc import Callable
from datetime import timedelta
from typing import TypeVar

T = TypeVar("T")


def in_time(call: Callable[[], T], limit: timedelta) -> T:
    """Returns what a call returns, or raises what it raises; ``TimeoutError`` if it does neither in time.

    Then it goes on in a thread of its own: no thread can be ended from outside.

    >>> in_time(lambda: 1 + 1, timedelta(seconds=10))
    2
    """
    results: list[T] = []
    failures: list[BaseException] = []

    def run() -> None:
        try:
            results.append(call())
        except BaseException as error:
            failures.append(error)

    thread = threading.Thread(target=run, name="headrace-sql-function", daemon=True)
    thread.start()
    thread.join(limit.total_seconds())
    if thread.is_alive():
        message = f"it has not returned within {limit.total_seconds():g} s"
        raise TimeoutError(message)
    if failures:
        raise failures[0]
    return results[0]

"""The loop of trials, their numbers, and what is said when one fails."""

from __future__ import annotations

import faulthandler
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from random import Random
from typing import TypeAlias

from tests.fuzz import http, log_files, serdes, sql, sql_http, websockets

Trial: TypeAlias = Callable[[Random], str]
"""Returns a word for what came of it, which is counted; raises if something is wrong."""

PARTS: dict[str, Callable[[Path], AbstractContextManager[Trial]]] = {
    "sql": sql.opened,
    "serdes": serdes.opened,
    "http": http.opened,
    "sql_http": sql_http.opened,
    "websockets": websockets.opened,
    "log_files": log_files.opened,
}
_HANG_SECONDS = 120.0


class FuzzError(AssertionError):
    """A trial has found something. The message says how to run it again."""


def run(
    part: str, seconds: float, *, seed: int, least: int = 1, only: int | None = None, watched: bool = False
) -> Counter[str]:
    """Runs trials until the time is over, as many as at ``least``; returns how often each came to what.

    ``watched`` ends the process with a traceback of all threads if a trial hangs.
    """
    outcomes: Counter[str] = Counter()
    with tempfile.TemporaryDirectory(prefix="headrace-fuzz-") as directory, PARTS[part](Path(directory)) as trial:
        deadline = time.monotonic() + seconds
        number = only or 0
        while True:
            again = f"python -m tests.fuzz --part {part} --seed {seed} --trial {number}"
            watch = threading.Timer(_HANG_SECONDS, print, [f"{part} hangs; run it again with: {again}"])
            if watched:
                watch.start()
                # It works also if no other thread ever runs again.
                faulthandler.dump_traceback_later(_HANG_SECONDS + 1, exit=True)
            try:
                outcomes[trial(Random(f"{part}/{seed}/{number}"))] += 1
            except Exception as error:
                message = f"{part}: {type(error).__name__}: {error}\nrun it again with: {again}"
                raise FuzzError(message) from error
            finally:
                if watched:
                    watch.cancel()
                    faulthandler.cancel_dump_traceback_later()
            number += 1
            if only is not None or (time.monotonic() >= deadline and outcomes.total() >= least):
                return outcomes

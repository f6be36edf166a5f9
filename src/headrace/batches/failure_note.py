"""Note of a failed task, in a file: the driver hears of the failure before the other tasks of the batch are done.

It is for people. What becomes of the failure is decided when the batch has ended; a driver on another machine than the
task hears of it only then.
"""

from __future__ import annotations

import os
import time
from contextlib import suppress
from pathlib import Path

from headrace.errors import RetriableError, without_quotes

_NAME = "failing"
_LONGEST = 4_000


def write_failure_note(directory: Path, task: str, error: BaseException) -> None:
    """Says that a task of the application in a directory has failed, unless it will be tried again."""
    if isinstance(error, RetriableError):
        return
    note = directory / f"{_NAME}.{task}"
    with suppress(OSError):
        note.write_text(without_quotes(error)[:_LONGEST], encoding="utf-8")
        os.rename(note, directory / _NAME)


def take_failure_note(directory: Path, *, age_s: float = 0.0) -> str | None:
    """Returns the failure that a task has told, once; None if there is none of that age."""
    note = directory / _NAME
    try:
        if age_s and time.time() - note.stat().st_mtime < age_s:
            return None
        text = note.read_text(encoding="utf-8")
        note.unlink()
    except OSError:
        return None
    return text

"""An error on its way from a worker to the driver: pickling alone would lose its cause and its traceback."""

from __future__ import annotations

import pickle
import traceback
from contextlib import suppress
from dataclasses import dataclass

from pyspark import cloudpickle

from headrace.errors import StreamsError
from headrace.spark.shipping import pack

_TRACEBACK = "Traceback (most recent call last):"
_MOST_RECENT = "most recent failure: "
_CAUSE = "Caused by: "
_FULL = ("No space left on device", "Disk quota exceeded", "File too large")


@dataclass(frozen=True)
class Failure:
    """Reason of a task's failure."""

    error: bytes
    cause: bytes | None
    raised: str
    """Where: the lines of a traceback."""

    @classmethod
    def of(cls, error: StreamsError) -> Failure:
        """Packs an error with the exception of the user's code that it came from.

        >>> error = StreamsError("node 'parse' failed")
        >>> error.__cause__ = ValueError("no JSON")
        >>> Failure.of(error).restored().__cause__
        ValueError('no JSON')
        """
        cause = error.__cause__
        packed = None if cause is None else _pack_error(cause)
        raised = "".join(traceback.format_tb((cause or error).__traceback__)).rstrip()
        if cause is not None and packed is None:
            raised += f"\n{type(cause).__name__}: {cause}"
        return cls(_pack_error(error) or pickle.dumps(StreamsError(str(error))), packed, raised)

    def restored(self) -> StreamsError:
        """Returns the error with its cause; a note says where on the worker it was raised."""
        error: StreamsError = cloudpickle.loads(self.error)
        noted: BaseException = error
        if self.cause is not None:
            # Its class may be one that only the workers have.
            with suppress(Exception):
                error.__cause__ = noted = cloudpickle.loads(self.cause)
        noted.add_note(f"On the worker:\n{self.raised}")
        return error


def _pack_error(error: BaseException) -> bytes | None:
    """Returns an error as bytes, or None if it is of a class that cannot be brought back."""
    try:
        data = pack(error)
        cloudpickle.loads(data)
    except Exception:
        return None
    return data


def reason(error: BaseException) -> str:
    r"""Returns the line of an error of Spark that says most: the last of a Python traceback, or the innermost cause.

    >>> reason(RuntimeError("Failed.\nTraceback (most recent call last):\n  File …\nKeyError: 'x'\n\n\tat org…"))
    "KeyError: 'x'"
    >>> reason(RuntimeError("Called o5.\n: A: cannot load\n\tat a\nCaused by: B: No space left on device\n\tat b"))
    'B: No space left on device; make room on the disk, or raise the limit, and start again'
    >>> reason(RuntimeError("Job aborted: Task 0 failed, most recent failure: Lost task 0.3: crashed\n\tat"))
    'Lost task 0.3: crashed'
    """
    text = str(error)
    said = _error_line(text) or type(error).__name__
    if any(full in text for full in _FULL):
        return f"{said}; make room on the disk, or raise the limit, and start again"
    return said


def _error_line(text: str) -> str:
    _, found, trace = text.rpartition(_TRACEBACK)
    if found:
        lines = trace.partition("\n\tat ")[0].splitlines()
        if last := [line for line in lines if line and not line[0].isspace()]:
            return last[0]
    lines = text.strip().splitlines()
    if causes := [line for line in lines if line.startswith(_CAUSE)]:
        return causes[-1].removeprefix(_CAUSE).strip()
    _, found, last_failure = text.partition(_MOST_RECENT)
    if found:
        return last_failure.strip().splitlines()[0]
    # py4j says first which call it was.
    java = [line.removeprefix(": ") for line in lines if line.startswith(": ")]
    return (java or lines or [""])[0].strip()

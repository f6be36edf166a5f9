"""Standard output and error of Spark's JVM, filtered: only lines of the application's functions are passed on.

Spark copies what its Python workers write there, so a function's ``print`` arrives here among lines of the JVM, of
pyspark and of the launcher's scripts.
"""

from __future__ import annotations

import atexit
import re
import sys
import threading
from collections import deque
from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import IO

_KEPT_LINES = 40
_CLEAR = "\r\x1b[K"
_TRACEBACK = "Traceback (most recent call last):\n"
_FRAME = '  File "'
_DAEMON = re.compile(r'  File ".*pyspark/daemon\.py"')
_ERROR = re.compile(r"[\w.]+(Error|Exception|Interrupt|Exit)\b")
_NOISE = re.compile(r"WARNING: |OpenJDK |Java HotSpot|\[\d+[.,]\d+s\]\[")
"""Warnings of the JVM."""


def of_the_application(lines: Iterable[str]) -> Iterator[str]:
    r"""Yields the lines that functions of the application have written.

    >>> list(of_the_application(["WARNING: Using incubator modules: jdk.incubator.vector\n", "order 17\n"]))
    ['order 17\n']
    """
    headers = ending = 0
    for line in lines:
        if line == _TRACEBACK:
            headers += 1
            continue
        if headers and _DAEMON.match(line):
            # A worker that loses its JVM says so; that is what happens at every stop. Several do it at once.
            ending += headers
            headers = 0
            continue
        if ending and (line.startswith(" ") or line == "\n"):
            continue
        if ending and _ERROR.match(line):
            ending -= 1
            continue
        # Whose it is only its next line tells, and another process may write in between.
        if line.startswith(_FRAME):
            yield from [_TRACEBACK] * headers
            headers = 0
        if _NOISE.match(line) is None:
            yield line


class JvmOutput:
    """Reads it to its end: kept while the JVM starts, for the message if it does not; then passed on."""

    def __init__(self, file: IO[str]) -> None:
        self._file = file
        self._lines: deque[str] = deque(maxlen=_KEPT_LINES)
        self._passing = False
        self._thread = threading.Thread(target=self._read, name="headrace-jvm-output", daemon=True)
        self._thread.start()

    def relay(self) -> None:
        """Passes what the application writes on to this process's standard error, from now on."""
        self._passing = True
        # A daemon thread that writes while the interpreter shuts down can bring it down.
        atexit.register(self._silence)

    def said(self) -> str:
        """Returns the last lines of a JVM that has ended before it was ready."""
        self._thread.join(timeout=5)
        return "\n".join(line for line in self._lines if not line.startswith("\tat ")) or "nothing"

    def _silence(self) -> None:
        self._passing = False

    def _read(self) -> None:
        with self._file:
            for line in of_the_application(self._file):
                if self._passing:
                    # Whatever has become of the terminal: if nobody reads, the JVM stops at its next line.
                    with suppress(Exception):
                        # A progress line may stand there, which is drawn again below.
                        sys.stderr.write(f"{_CLEAR}{line}" if sys.stderr.isatty() else line)
                else:
                    self._lines.append(line.rstrip("\n"))

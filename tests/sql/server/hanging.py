"""Functions for SQL that never return, unless a test lets them."""

from __future__ import annotations

import threading
import time
from pathlib import Path

entered = threading.Event()
gate = threading.Event()


def block(number: int) -> int:
    """Hangs in a call that nothing can interrupt."""
    entered.set()
    gate.wait()
    return number


def spin(number: int) -> int:
    """Hangs in a loop."""
    entered.set()
    while not gate.is_set():
        pass
    return number


def block_elsewhere(number: int, path: str) -> int:
    """Hangs in another process, and tells by a file that it does."""
    Path(path).touch()
    time.sleep(1_000_000)
    return number

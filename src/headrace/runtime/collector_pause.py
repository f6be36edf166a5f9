"""Keeps Python's cyclic garbage collector out of the way of a batch."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def collector_paused() -> Iterator[None]:
    """Switches the cyclic collector off for as long as a batch runs, and on again if it was on.

    Records make no cycles and are freed by their reference counts; but a batch makes so many objects that the
    collector would walk through all of them again and again, for nothing. What cycles user code makes wait for the end
    of the batch.
    """
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()

"""Silence while cases run: many raise on purpose, and the differences that are printed say all that matters."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def quiet() -> Iterator[None]:
    """Silences the project's log."""
    logger = logging.getLogger("headrace")
    level = logger.level
    logger.setLevel(logging.CRITICAL + 1)
    try:
        yield
    finally:
        logger.setLevel(level)

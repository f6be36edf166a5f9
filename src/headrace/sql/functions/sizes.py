"""Size limit of function results, so that a mistyped length does not exhaust memory."""

from __future__ import annotations

MOST_CHARACTERS = 10_000_000
MOST_ITEMS = 1_000_000


def check_size(function: str, size: int, most: int, unit: str) -> None:
    """Raises ``ValueError`` for a result that would be too large.

    >>> check_size("LPAD", 2_000_000_000, MOST_CHARACTERS, "characters")
    Traceback (most recent call last):
    ValueError: LPAD may return 10,000,000 characters at most, and would return 2,000,000,000
    """
    if size > most:
        message = f"{function} may return {most:,} {unit} at most, and would return {size:,}"
        raise ValueError(message)

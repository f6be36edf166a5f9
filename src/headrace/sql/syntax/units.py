"""Units of time, as words of the language."""

from __future__ import annotations

from datetime import timedelta

UNITS = {
    form: plural
    for plural in ("DAYS", "HOURS", "MINUTES", "SECONDS", "MILLISECONDS")
    for form in (plural, plural.removesuffix("S"))
}
"""Each unit by its singular and its plural; the plural is its name."""


def duration(count: int, unit: str) -> timedelta:
    """Returns so many units.

    >>> duration(5, "MINUTE")
    datetime.timedelta(seconds=300)
    """
    return timedelta(**{UNITS[unit].lower(): count})

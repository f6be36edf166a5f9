"""Units of time, as words of the language."""

from __future__ import annotations

from datetime import timedelta

from headrace.sql.errors import SqlParseError

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
    >>> duration(10**12, "DAYS")
    Traceback (most recent call last):
    ...
    headrace.sql.errors.SqlParseError: A duration of 1000000000000 DAYS is too long; the longest has 999999999 days
    """
    try:
        return timedelta(**{UNITS[unit].lower(): count})
    except OverflowError as error:
        message = f"A duration of {count} {unit} is too long; the longest has {timedelta.max.days} days"
        raise SqlParseError(message) from error

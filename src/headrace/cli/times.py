"""Durations and moments as one types them."""

from __future__ import annotations

import re
import time
from datetime import UTC, datetime, timedelta
from typing import Any

import click

_DURATION = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h|d)?")
_UNITS = {"ms": "milliseconds", None: "seconds", "s": "seconds", "m": "minutes", "h": "hours", "d": "days"}


class Duration(click.ParamType[timedelta]):
    """``500ms``, ``30s``, ``5m``, ``1h``, ``7d``; a plain number is in seconds.

    >>> Duration().convert("5m", None, None)
    datetime.timedelta(seconds=300)
    """

    name = "duration"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> timedelta:
        if isinstance(value, timedelta):
            return value
        found = _DURATION.fullmatch(str(value).strip())
        if found is None:
            self.fail(f"'{value}' is no duration; write for example 500ms, 30s, 5m or 1h", param, ctx)
        return timedelta(**{_UNITS[found[2]]: float(found[1])})


class Moment(click.ParamType[int]):
    """A point in time, as milliseconds since 1970: an ISO date, milliseconds, or how long ago.

    >>> Moment().convert("2024-05-01T12:00:00Z", None, None)
    1714564800000
    >>> Moment().convert("1714564800000", None, None)
    1714564800000
    """

    name = "moment"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        text = str(value).strip()
        if text.isdecimal():
            return int(text)
        if found := _DURATION.fullmatch(text):
            ago = timedelta(**{_UNITS[found[2]]: float(found[1])})
            return int(time.time() * 1000) - ago // timedelta(milliseconds=1)
        try:
            moment = datetime.fromisoformat(text)
        except ValueError:
            problem = (
                f"'{text}' is no point in time; write an ISO date (2024-05-01T12:00:00Z), milliseconds since 1970, or "
                "how long ago (10m)"
            )
            self.fail(problem, param, ctx)
        # A date without a zone is meant as on the clock at the wall.
        return int(moment.astimezone(UTC).timestamp() * 1000)

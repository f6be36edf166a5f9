"""Dates and times between text and numbers, without a limit on years."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta, timezone
from functools import lru_cache
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

DAY_MS = 86_400_000
_ZONE = re.compile(r"(?P<sign>[+-])(?P<hours>\d{1,2}):?(?P<minutes>\d{2})?:?(?P<seconds>\d{2})?")
_TIMESTAMP = re.compile(
    r"(?P<year>[+-]?\d{4,})(?:-(?P<month>\d{1,2})(?:-(?P<day>\d{1,2}))?)?"
    r"(?:[T ](?:(?P<hour>\d{1,2})(?::(?P<minute>\d{1,2})(?::(?P<second>\d{1,2})(?:[.,](?P<fraction>\d{1,9}))?)?)?)?)?"
    r"(?P<zone>Z|[+-]\d{1,2}(?::?\d{2})?| ?[A-Za-z]+(?:/[A-Za-z_]+)*)?"
)
_TIME = re.compile(r"(\d{1,2}):(\d{1,2})(?::(\d{1,2})(?:\.(\d{1,9}))?)?")


def days_of(year: int, month: int, day: int) -> int:
    """Returns the days from 1970-01-01 to a date of the Gregorian calendar.

    >>> days_of(1970, 1, 2), days_of(2000, 3, 1)
    (1, 11017)
    """
    shifted = year - (month <= 2)
    era = shifted // 400
    year_of_era = shifted - era * 400
    day_of_year = (153 * (month + (-3 if month > 2 else 9)) + 2) // 5 + day - 1
    day_of_era = year_of_era * 365 + year_of_era // 4 - year_of_era // 100 + day_of_year
    return era * 146_097 + day_of_era - 719_468


def date_of(days: int) -> tuple[int, int, int]:
    """Returns year, month and day of a number of days since 1970-01-01.

    >>> date_of(-1)
    (1969, 12, 31)
    """
    shifted = days + 719_468
    era = shifted // 146_097
    day_of_era = shifted - era * 146_097
    year_of_era = (day_of_era - day_of_era // 1460 + day_of_era // 36_524 - day_of_era // 146_096) // 365
    day_of_year = day_of_era - (365 * year_of_era + year_of_era // 4 - year_of_era // 100)
    shifted_month = (5 * day_of_year + 2) // 153
    day = day_of_year - (153 * shifted_month + 2) // 5 + 1
    month = shifted_month + (3 if shifted_month < 10 else -9)
    return year_of_era + era * 400 + (month <= 2), month, day


def days_in_month(year: int, month: int) -> int:
    """Returns how many days a month has."""
    if month == 2:
        return 29 if year % 4 == 0 and (year % 100 != 0 or year % 400 == 0) else 28
    return 30 if month in (4, 6, 9, 11) else 31


def checked_days(year: int, month: int, day: int) -> int:
    """Returns the days since 1970-01-01; raises ``ValueError`` for a day that no calendar has."""
    if not 1 <= month <= 12 or not 1 <= day <= days_in_month(year, month):
        message = f"no date: {year:04d}-{month:02d}-{day:02d}"
        raise ValueError(message)
    return days_of(year, month, day)


@lru_cache(maxsize=512)
def zone_named(name: str) -> timezone | ZoneInfo:
    """Returns the time zone of an identifier such as ``Europe/Rome``, ``+02:00`` or ``UTC``."""
    text = name.strip()
    if text in ("Z", "UTC", "GMT", "UT"):
        return UTC
    for prefix in ("UTC", "GMT", "UT"):
        if text.startswith(prefix) and text[len(prefix) :][:1] in ("+", "-"):
            text = text[len(prefix) :]
    found = _ZONE.fullmatch(text)
    if found:
        parts = timedelta(
            hours=int(found["hours"]), minutes=int(found["minutes"] or 0), seconds=int(found["seconds"] or 0)
        )
        return timezone(-parts if found["sign"] == "-" else parts)
    try:
        return ZoneInfo(_SHORT_ZONES.get(text, text))
    except (ZoneInfoNotFoundError, ValueError, OSError) as error:
        message = f"Unknown time-zone ID: {name}"
        raise ValueError(message) from error


_SHORT_ZONES = {
    "PST": "America/Los_Angeles",
    "PDT": "America/Los_Angeles",
    "CST": "America/Chicago",
    "CDT": "America/Chicago",
    "EST": "America/New_York",
    "EDT": "America/New_York",
    "MST": "America/Denver",
    "MDT": "America/Denver",
    "CET": "Europe/Paris",
    "CEST": "Europe/Paris",
    "BST": "Europe/London",
    "IST": "Asia/Kolkata",
    "JST": "Asia/Tokyo",
    "AEST": "Australia/Sydney",
}


def offset_ms(zone: timezone | ZoneInfo, epoch_ms: int) -> int:
    """Returns how far local time in the zone is ahead of UTC at an instant."""
    if isinstance(zone, timezone):
        return int(zone.utcoffset(None).total_seconds() * 1000)
    return _delta_ms(datetime.fromtimestamp(_near(epoch_ms) / 1000, zone))


def local_to_epoch_ms(local_ms: int, zone: timezone | ZoneInfo) -> int:
    """Returns the instant of a local time; in a gap it moves forward, in an overlap the earlier one counts."""
    if isinstance(zone, timezone):
        return local_ms - offset_ms(zone, 0)
    near = _near(local_ms)
    naive = datetime(1970, 1, 1) + timedelta(milliseconds=near)
    return local_ms - _delta_ms(naive.replace(tzinfo=zone, fold=0))


def _delta_ms(moment: datetime) -> int:
    delta = moment.utcoffset()
    return 0 if delta is None else int(delta.total_seconds() * 1000)


def _near(epoch_ms: int) -> int:
    # Zones have no rules that differ outside of these years, and datetime cannot go there.
    year = date_of(epoch_ms // DAY_MS)[0]
    if 2 <= year <= 9990:
        return epoch_ms
    cycles = (2000 - year) // 400
    return epoch_ms + cycles * 146_097 * DAY_MS


def parse_timestamp(text: str) -> int:
    """Returns the instant that a text means; what it leaves out is the start of the day, month or year, in UTC.

    >>> parse_timestamp("1970-01-02"), parse_timestamp("1970-01-01T00:00:01.5+0100")
    (86400000, -3598500)
    """
    found = _TIMESTAMP.fullmatch(text.strip())
    if found is None:
        message = (
            f"Failed to parse timestamp '{text}'; required format is: yyyy-MM-dd'T'HH:mm:ss.SSS, "
            "with optional timezone, such as +0100"
        )
        raise ValueError(message)
    days = checked_days(int(found["year"]), int(found["month"] or 1), int(found["day"] or 1))
    hour, minute, second = int(found["hour"] or 0), int(found["minute"] or 0), int(found["second"] or 0)
    fraction = int((found["fraction"] or "0").ljust(3, "0")[:3])
    if hour > 23 or minute > 59 or second > 59:
        message = f"Failed to parse timestamp '{text}': no such time of day"
        raise ValueError(message)
    local = days * DAY_MS + hour * 3_600_000 + minute * 60_000 + second * 1000 + fraction
    zone = found["zone"]
    return local if zone is None else local_to_epoch_ms(local, zone_named(zone))


def parse_date(text: str) -> int:
    """Returns the days since 1970-01-01 of a text such as ``2020-02-29``, ``2020-02`` or ``2020``."""
    found = re.fullmatch(r"([+-]?\d{4,})(?:-(\d{1,2})(?:-(\d{1,2}))?)?", text.strip())
    if found is None:
        days, rest = divmod(parse_timestamp(text), DAY_MS)
        if rest:
            message = f"Failed to parse date '{text}'; required format is: yyyy-MM-dd"
            raise ValueError(message)
        return days
    return checked_days(int(found[1]), int(found[2] or 1), int(found[3] or 1))


def parse_time(text: str) -> int:
    """Returns the milliseconds of the day of a text such as ``13:45:01.250`` or ``13:45``."""
    found = _TIME.fullmatch(text.strip())
    if found is None or int(found[1]) > 23 or int(found[2]) > 59 or int(found[3] or 0) > 59:
        message = f"Failed to parse time '{text}'; required format is: HH:mm:ss.SSS"
        raise ValueError(message)
    fraction = int((found[4] or "0").ljust(3, "0")[:3])
    return int(found[1]) * 3_600_000 + int(found[2]) * 60_000 + int(found[3] or 0) * 1000 + fraction


def year_text(year: int) -> str:
    """Returns a year with at least four digits, and a sign where it needs more or is negative."""
    if 0 <= year <= 9999:
        return f"{year:04d}"
    return f"{year:+05d}" if year < 0 else f"+{year}"


def date_text(days: int) -> str:
    """Returns a date as ``2020-02-29``."""
    year, month, day = date_of(days)
    return f"{year_text(year)}-{month:02d}-{day:02d}"


def time_text(millis: int) -> str:
    """Returns a time of day as short as it can be written: seconds and their fraction only where there are some.

    >>> time_text(3_600_000), time_text(1500)
    ('01:00', '00:00:01.500')
    """
    seconds, fraction = divmod(millis, 1000)
    text = f"{seconds // 3600:02d}:{seconds // 60 % 60:02d}"
    if seconds % 60 or fraction:
        text += f":{seconds % 60:02d}"
    return f"{text}.{fraction:03d}" if fraction else text


def timestamp_text(epoch_ms: int) -> str:
    """Returns an instant as ``2020-02-29T13:45:00.000``."""
    days, rest = divmod(epoch_ms, DAY_MS)
    seconds, fraction = divmod(rest, 1000)
    clock = f"{seconds // 3600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}.{fraction:03d}"
    return f"{date_text(days)}T{clock}"


def to_zone(epoch_ms: int, zone: str) -> int:
    """Returns the local time in a zone, as if it were UTC."""
    return epoch_ms + offset_ms(zone_named(zone), epoch_ms)


def between_zones(epoch_ms: int, source: str, target: str) -> int:
    """Returns the local time in one zone for a local time in another."""
    return to_zone(local_to_epoch_ms(epoch_ms, zone_named(source)), target)

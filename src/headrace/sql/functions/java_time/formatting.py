"""Dates and times as text, by the patterns of Java's DateTimeFormatter."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, timezone
from functools import lru_cache
from zoneinfo import ZoneInfo

from headrace.sql.functions.java_time.patterns import DAYS, MONTHS, ZONE_LETTERS, Element, pattern_of
from headrace.sql.types.times import DAY_MS, date_of, days_of, offset_ms, zone_named


@dataclass(slots=True)
class Moment:
    """A local date and time in a zone, in all the parts that patterns ask for."""

    days: int
    millis: int
    zone: timezone | ZoneInfo
    epoch_ms: int
    year: int
    month: int
    day: int
    hour: int
    minute: int
    second: int
    fraction: int


Writer = Callable[[Moment], str]


def format_date(days: int, text: str) -> str:
    """Returns a date by a pattern without times."""
    return _written(_writers(text, "date"), days, 0, UTC, days * DAY_MS)


def format_time(millis: int, text: str) -> str:
    """Returns a time of day by a pattern without dates."""
    return _written(_writers(text, "time"), 0, millis, UTC, millis)


def format_timestamp(epoch_ms: int, text: str, zone_name: str = "UTC") -> str:
    """Returns an instant by a pattern, in a zone."""
    zone = UTC if zone_name == "UTC" else zone_named(zone_name)
    days, millis = divmod(epoch_ms if zone is UTC else epoch_ms + offset_ms(zone, epoch_ms), DAY_MS)
    return _written(_writers(text, "timestamp"), days, millis, zone, epoch_ms)


def _written(
    writers: tuple[Writer | str, ...], days: int, millis: int, zone: timezone | ZoneInfo, epoch_ms: int
) -> str:
    seconds, fraction = divmod(millis, 1000)
    minutes, second = divmod(seconds, 60)
    hour, minute = divmod(minutes, 60)
    moment = Moment(days, millis, zone, epoch_ms, *date_of(days), hour, minute, second, fraction)
    return "".join([one if isinstance(one, str) else one(moment) for one in writers])


@lru_cache(maxsize=512)
def _writers(text: str, what: str) -> tuple[Writer | str, ...]:
    """Returns what writes each part of a pattern; raises ``ValueError`` if it asks for what the value has not."""
    pattern = pattern_of(text)
    if what == "date" and (pattern.has_time or pattern.has_zone):
        message = f"Unsupported field: the pattern '{text}' asks a date for a time"
        raise ValueError(message)
    if what == "time" and (pattern.has_date or pattern.has_zone):
        message = f"Unsupported field: the pattern '{text}' asks a time for a date"
        raise ValueError(message)
    return tuple(one.text if not one.letter or one.letter in "[]" else _writer(one) for one in pattern.elements)


_NUMBERS: dict[str, Callable[[Moment], int]] = {
    "d": lambda moment: moment.day,
    "D": lambda moment: moment.days - days_of(moment.year, 1, 1) + 1,
    "w": lambda moment: _week(moment.days)[1],
    "h": lambda moment: moment.hour % 12 or 12,
    "H": lambda moment: moment.hour,
    "k": lambda moment: moment.hour or 24,
    "K": lambda moment: moment.hour % 12,
    "m": lambda moment: moment.minute,
    "s": lambda moment: moment.second,
    "A": lambda moment: moment.millis,
    "n": lambda moment: moment.fraction * 1_000_000,
    "N": lambda moment: moment.millis * 1_000_000,
    "u": lambda moment: moment.year,
    "y": lambda moment: moment.year if moment.year > 0 else 1 - moment.year,
    "Y": lambda moment: _week(moment.days)[0],
    "M": lambda moment: moment.month,
    "L": lambda moment: moment.month,
    "Q": lambda moment: (moment.month + 2) // 3,
    "q": lambda moment: (moment.month + 2) // 3,
    # Weeks start on Sunday, as in the locale of the language.
    "e": lambda moment: (moment.days + 4) % 7 + 1,
    "c": lambda moment: (moment.days + 4) % 7 + 1,
}


def _writer(field: Element) -> Writer:
    letter, count = field.letter, field.count
    if letter in ZONE_LETTERS:
        return lambda moment: _zone_text(letter, count, moment)
    if letter in "uyY" and count == 2:
        year = _NUMBERS[letter]
        return lambda moment: f"{year(moment) % 100:02d}"
    if letter == "S":
        return lambda moment: f"{moment.fraction:03d}".ljust(count, "0")[:count]
    if letter in "ML" and count > 2:
        return lambda moment: _short(MONTHS[moment.month - 1], count)
    if letter == "E" or (letter in "ec" and count > 2):
        return lambda moment: _short(DAYS[(moment.days + 3) % 7], max(count, 3))
    if letter in "Qq" and count > 2:
        return lambda moment: _quarter((moment.month + 2) // 3, count)
    if letter == "a":
        return lambda moment: "AM" if moment.hour < 12 else "PM"
    if letter == "G":
        eras = ("AD", "BC") if count < 4 else ("Anno Domini", "Before Christ")
        return lambda moment: eras[moment.year <= 0]
    number = _NUMBERS[letter]
    return lambda moment: f"{number(moment):0{count}d}"


def _short(name: str, count: int) -> str:
    return name[:3] if count == 3 else name[:1] if count == 5 else name


def _quarter(number: int, count: int) -> str:
    return f"Q{number}" if count == 3 else f"{number}{('st', 'nd', 'rd', 'th')[number - 1]} quarter"


def _week(days: int) -> tuple[int, int]:
    # Week 1 is the one with January 1st, and weeks start on Sunday.
    year = date_of(days)[0]
    for candidate in (year + 1, year):
        first = days_of(candidate, 1, 1)
        start = first - (first + 4) % 7
        if days >= start:
            return candidate, (days - start) // 7 + 1
    message = f"no week of the day {days}"
    raise ValueError(message)


def _zone_text(letter: str, count: int, moment: Moment) -> str:
    offset = offset_ms(moment.zone, moment.epoch_ms) // 1000
    sign, hours, minutes = "-" if offset < 0 else "+", abs(offset) // 3600, abs(offset) // 60 % 60
    if letter == "V":
        return moment.zone.key if isinstance(moment.zone, ZoneInfo) else _offset_name(sign, hours, minutes)
    if letter in "zv":
        return _zone_name(moment)
    if letter == "O" or (letter == "Z" and count == 4):
        if not offset:
            return "GMT"
        short = letter == "O" and count < 4
        return (
            f"GMT{sign}{hours}{f':{minutes:02d}' if minutes else ''}"
            if short
            else f"GMT{sign}{hours:02d}:{minutes:02d}"
        )
    if not offset and (letter == "X" or (letter == "Z" and count == 5)):
        return "Z"
    if letter in "Xx" and count == 1:
        return f"{sign}{hours:02d}{f'{minutes:02d}' if minutes else ''}"
    colon = ":" if count == 5 or (letter in "Xx" and count == 3) else ""
    return f"{sign}{hours:02d}{colon}{minutes:02d}"


def _offset_name(sign: str, hours: int, minutes: int) -> str:
    return f"{sign}{hours:02d}:{minutes:02d}" if hours or minutes else "Z"


def _zone_name(moment: Moment) -> str:
    if isinstance(moment.zone, timezone):
        name = _zone_text("V", 2, moment)
        return "UTC" if name == "Z" else name
    if not 2 <= moment.year <= 9990:
        return moment.zone.key
    instant = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=moment.epoch_ms)
    return instant.astimezone(moment.zone).tzname() or moment.zone.key

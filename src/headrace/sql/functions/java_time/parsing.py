"""Dates and times from text, by the patterns of Java's DateTimeFormatter, in any case of letters."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import timezone
from functools import lru_cache
from zoneinfo import ZoneInfo

from headrace.sql.functions.java_time.patterns import DAYS, MONTHS, ZONE_LETTERS, Element, Pattern, pattern_of
from headrace.sql.types.times import DAY_MS, days_in_month, days_of, local_to_epoch_ms, zone_named

_OFFSET = r"[+-]\d{2}(?::?\d{2}(?::?\d{2})?)?"


def parse_timestamp(value: str, text: str, zone_name: str = "UTC") -> int:
    """Returns the instant that a text means by a pattern; a zone in the text counts more than the one given."""
    found = _parsed(value, pattern_of(text))
    local = found.days() * DAY_MS + found.millis()
    return local_to_epoch_ms(local, found.zone or zone_named(zone_name))


def parse_days(value: str, text: str) -> int:
    """Returns the day of the date that a text means by a pattern, which has to say year, month and day."""
    found = _parsed(value, pattern_of(text))
    if not ({"y", "M", "d"} <= found.numbers.keys() or {"y", "D"} <= found.numbers.keys()):
        message = f"Text '{value}' is no whole date by the pattern '{text}': it needs a year, a month and a day"
        raise ValueError(message)
    return found.days()


def parse_time(value: str, text: str) -> int:
    """Returns the time of day that a text means by a pattern without dates."""
    pattern = pattern_of(text)
    if pattern.has_date:
        message = f"Time format contains date field: {text}"
        raise ValueError(message)
    found = _parsed(value, pattern)
    if not found.has_hour():
        message = f"Text '{value}' is no time of day by the pattern '{text}': it needs an hour"
        raise ValueError(message)
    return found.millis()


class Fields:
    """Fields of a parsed text: a number per letter, and a zone."""

    def __init__(self) -> None:
        self.numbers: dict[str, int] = {}
        self.zone: timezone | ZoneInfo | None = None

    def days(self) -> int:
        """Returns the date; what was not said is the first month, the first day, the year 1970."""
        year = self.numbers.get("y", 1970)
        if "D" in self.numbers:
            return days_of(year, 1, 1) + self.numbers["D"] - 1
        month, day = self.numbers.get("M", 1), self.numbers.get("d", 1)
        if not 1 <= month <= 12 or not 1 <= day <= 31:
            message = f"no date: month {month}, day {day}"
            raise ValueError(message)
        return days_of(year, month, min(day, days_in_month(year, month)))

    def has_hour(self) -> bool:
        """Whether the hour of the day is known: one of twelve needs AM or PM."""
        return bool({"A", "H"} & self.numbers.keys()) or {"h", "a"} <= self.numbers.keys()

    def millis(self) -> int:
        """Returns the time of day; what was not said is zero."""
        numbers = self.numbers
        if "A" in numbers:
            return numbers["A"]
        hour = numbers.get("H", 0)
        if "h" in numbers:
            hour = numbers["h"] % 12 + (12 if numbers.get("a") else 0)
        minute, second = numbers.get("m", 0), numbers.get("s", 0)
        if hour > 24 or minute > 59 or second > 59 or (hour == 24 and (minute or second)):
            message = f"no time of day: {hour}:{minute}:{second}"
            raise ValueError(message)
        return (hour * 3600 + minute * 60 + second) * 1000 + numbers.get("S", 0)


@lru_cache(maxsize=512)
def _expression(pattern: Pattern) -> tuple[re.Pattern[str], tuple[Element, ...]]:
    parts: list[str] = []
    fields: list[Element] = []
    for index, one in enumerate(pattern.elements):
        if one.letter == "[":
            parts.append("(?:")
        elif one.letter == "]":
            parts.append(")?")
        elif not one.letter:
            parts.append(re.escape(one.text))
        else:
            follows = pattern.elements[index + 1] if index + 1 < len(pattern.elements) else None
            parts.append(f"({_field_expression(one, number_follows=_is_number(follows))})")
            fields.append(one)
    return re.compile("".join(parts), re.IGNORECASE), tuple(fields)


def _is_number(field: Element | None) -> bool:
    return (
        field is not None
        and bool(field.letter)
        and field.letter in "yuYMLdDHhkKmsSAnN"
        and not (field.letter in "ML" and field.count > 2)
    )


def _field_expression(field: Element, *, number_follows: bool) -> str:
    letter, count = field.letter, field.count
    if letter in "yuY":
        return (
            r"\d{2}"
            if count == 2
            else rf"\d{{{count}}}"
            if number_follows
            else rf"[+-]?\d{{{count if count == 4 else 1},10}}"
        )
    if letter in "ML" and count > 2:
        return "|".join(one[:3] if count == 3 else one for one in MONTHS)
    if (letter in "Eec" and count > 2) or letter == "E":
        return "|".join(one[:3] if count < 4 else one for one in DAYS)
    if letter == "a":
        return "AM|PM"
    if letter == "G":
        return "AD|BC|Anno Domini|Before Christ"
    if letter == "S":
        return rf"\d{{{count}}}"
    if letter == "n":
        return r"\d{1,9}"
    if letter in "AN":
        return r"\d+"
    if letter in "Xx":
        return rf"Z|{_OFFSET}" if letter == "X" else _OFFSET
    if letter == "Z":
        return rf"(?:GMT)?{_OFFSET}|Z|GMT" if count > 3 else _OFFSET
    if letter in "VzvO":
        return rf"(?:GMT|UTC|UT)?{_OFFSET}|GMT[+-]\d+|[A-Za-z][A-Za-z0-9_+-]*(?:/[A-Za-z0-9_+-]+)*"
    return rf"\d{{{count}}}" if count > 1 or number_follows else r"\d{1,3}" if letter == "D" else r"\d{1,2}"


def _parsed(value: str, pattern: Pattern) -> Fields:
    expression, elements = _expression(pattern)
    found = expression.fullmatch(value)
    if found is None:
        message = f"Text '{value}' could not be parsed with the pattern '{pattern.text}'"
        raise ValueError(message)
    fields = Fields()
    for element, text in zip(elements, found.groups(), strict=True):
        if text is not None:
            _store(fields, element, text)
    return fields


def _month_number(text: str) -> int:
    return next(index for index, name in enumerate(MONTHS, 1) if name.lower().startswith(text.lower()))


def _store(fields: Fields, element: Element, text: str) -> None:
    letter = element.letter
    if letter in ZONE_LETTERS:
        upper = text.upper()
        fields.zone = zone_named(upper if "/" not in text else text)
    elif letter in "yuY":
        fields.numbers["y"] = 2000 + int(text) if element.count == 2 else int(text)
    elif letter in "ML":
        fields.numbers["M"] = int(text) if text.isdigit() else _month_number(text)
    elif letter == "a":
        fields.numbers["a"] = int(text.upper() == "PM")
    elif letter == "S":
        fields.numbers["S"] = int(text.ljust(3, "0")[:3])
    elif letter in _SIMPLE:
        name, convert = _SIMPLE[letter]
        fields.numbers[name] = convert(int(text))


_SIMPLE: dict[str, tuple[str, Callable[[int], int]]] = {
    "d": ("d", int),
    "D": ("D", int),
    "H": ("H", int),
    "h": ("h", int),
    "K": ("h", int),
    "k": ("H", lambda hour: hour % 24),
    "m": ("m", int),
    "s": ("s", int),
    "A": ("A", int),
    "n": ("S", lambda nanos: nanos // 1_000_000),
    "N": ("A", lambda nanos: nanos // 1_000_000),
}

"""Dates from text by the patterns of Java's SimpleDateFormat, which is lenient where DateTimeFormatter is not."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timezone

from headrace.sql.functions.java_time.patterns import DAYS, MONTHS, ZONE_LETTERS, Element, pattern_of
from headrace.sql.types.times import DAY_MS, days_of, offset_ms, zone_named

_LETTERS = "DEFGHKMLSWadhkmsuwyYXZz"
_NAMES = {
    "E": tuple(form for name in DAYS for form in (name, name[:3])),
    "G": ("AD", "BC"),
    "a": ("AM", "PM"),
    "M": tuple(form for name in MONTHS for form in (name, name[:3])),
}
_NUMBER = re.compile(r"\s*(\d+)")
_ZONE = re.compile(r"(?:GMT|UTC)?[+-]\d{1,2}(?::?\d{2})?|[A-Za-z][A-Za-z0-9_+-]*(?:/[A-Za-z0-9_+-]+)*")
_UNIT_MS = {"H": 3_600_000, "m": 60_000, "s": 1000, "S": 1}


def parse_date(value: str, text: str) -> int:
    """Returns the date that a text means by a pattern.

    Numbers may have fewer or more figures than the pattern, a month after the twelfth is one of the next year, and what
    follows the last field is not looked at. A time of day has to be midnight.

    >>> parse_date("1970-1-32 and more", "yyyy-MM-dd")
    31
    """
    found = _Found(value, text)
    elements = pattern_of(text).elements
    for element, following in zip(elements, (*elements[1:], None), strict=True):
        found.read(element, number_follows=following is not None and _is_number(following))
    days, rest = divmod(found.millis(), DAY_MS)
    if rest or not elements:
        message = f"Date format contains time field: {text}"
        raise ValueError(message)
    return days


def _is_number(element: Element) -> bool:
    if not element.letter or element.letter in "EGa" or element.letter in ZONE_LETTERS:
        return False
    return element.letter not in "ML" or element.count < 3


class _Found:
    """What has been read of a text."""

    def __init__(self, value: str, text: str) -> None:
        self._value, self._text = value, text
        self._place = 0
        self._numbers: dict[str, int] = {}
        self._offset_ms = 0

    def read(self, element: Element, *, number_follows: bool) -> None:
        """Reads the next element; raises ``ValueError`` if it does not stand there."""
        letter = "M" if element.letter == "L" else element.letter
        if not letter:
            self._skip(element.text)
        elif letter not in _LETTERS:
            message = f"Unknown pattern letter: {letter}"
            raise ValueError(message)
        elif letter in ZONE_LETTERS:
            self._offset_ms = self._read_offset()
        elif _is_number(element):
            number = self._read_number(element.count if number_follows else None)
            if letter in "yY" and element.count < 3 and number < 100:
                number = _near_year(number)
            self._numbers["y" if letter == "Y" else letter] = number
        else:
            self._numbers[letter] = self._read_name(_NAMES[letter])

    def millis(self) -> int:
        """Returns the instant; what was not said is the first of January of 1970, at midnight."""
        numbers = self._numbers
        years, month = divmod(numbers.get("M", 1) - 1, 12)
        year = numbers.get("y", 1970)
        days = days_of((1 - year if numbers.get("G") else year) + years, month + 1, 1) + numbers.get("d", 1) - 1
        if "D" in numbers:
            days = days_of(year, 1, 1) + numbers["D"] - 1
        time = sum(numbers.get(letter, 0) * unit for letter, unit in _UNIT_MS.items())
        time += (numbers.get("k", 0) % 24) * _UNIT_MS["H"]
        time += (numbers.get("h", 0) % 12 + numbers.get("K", 0) + 12 * numbers.get("a", 0)) * _UNIT_MS["H"]
        return days * DAY_MS + time - self._offset_ms

    def _skip(self, literal: str) -> None:
        if not self._value.startswith(literal, self._place):
            raise self._unread()
        self._place += len(literal)

    def _read_number(self, most: int | None) -> int:
        found = _NUMBER.match(self._value, self._place)
        if found is None:
            raise self._unread()
        figures = found[1][:most]
        self._place = found.start(1) + len(figures)
        return int(figures)

    def _read_name(self, names: tuple[str, ...]) -> int:
        """Returns a number of the name: of a month from 1, of others from 0."""
        rest = self._value[self._place :].lower()
        for name in sorted(names, key=len, reverse=True):
            if rest.startswith(name.lower()):
                self._place += len(name)
                place = names.index(name)
                return place // 2 + 1 if names is _NAMES["M"] else place
        raise self._unread()

    def _read_offset(self) -> int:
        found = _ZONE.match(self._value, self._place)
        if found is None:
            raise self._unread()
        self._place = found.end()
        zone = zone_named(found[0])
        return offset_ms(zone, 0) if isinstance(zone, timezone) else offset_ms(zone, self.millis())

    def _unread(self) -> ValueError:
        return ValueError(f"Text '{self._value}' could not be parsed with the pattern '{self._text}'")


def _near_year(two_figures: int) -> int:
    """Returns the year that two figures stand for: one from eighty years ago to nineteen years ahead."""
    first = datetime.now(UTC).year - 80
    year = first - first % 100 + two_figures
    return year if year >= first else year + 100

"""Patterns of Java's DateTimeFormatter, taken apart: ``yyyy-MM-dd'T'HH:mm:ss.SSSX``."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

MONTHS = (
    "January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November",
    "December",
)  # fmt: skip
DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
DATE_LETTERS, TIME_LETTERS, ZONE_LETTERS = "GuyYDMLdQqwEec", "aAhHkKmsSnN", "VvzOXxZ"
_LETTERS = DATE_LETTERS + TIME_LETTERS + ZONE_LETTERS


@dataclass(frozen=True, slots=True)
class Element:
    """One part of a pattern: a field, with its letter and how often it stands there, or text."""

    letter: str
    count: int
    text: str = ""


@dataclass(frozen=True, slots=True)
class Pattern:
    """A pattern, taken apart."""

    text: str
    elements: tuple[Element, ...]

    @property
    def has_date(self) -> bool:
        """Whether a field of a date is part of the pattern."""
        return self._has(DATE_LETTERS)

    @property
    def has_time(self) -> bool:
        """Whether a field of a time of day is part of the pattern."""
        return self._has(TIME_LETTERS)

    @property
    def has_zone(self) -> bool:
        """Whether a time zone is part of the pattern."""
        return self._has(ZONE_LETTERS)

    def _has(self, letters: str) -> bool:
        return any(one.letter and one.letter in letters for one in self.elements)


@lru_cache(maxsize=512)
def pattern_of(text: str) -> Pattern:
    """Returns the parts of a pattern; raises ``ValueError`` for one that is no pattern."""
    elements: list[Element] = []
    index = 0
    while index < len(text):
        one = text[index]
        if one == "'":
            literal, index = _quoted(text, index + 1)
            elements.append(Element("", 0, literal))
        elif one.isascii() and one.isalpha():
            end = index
            while end < len(text) and text[end] == one:
                end += 1
            if one not in _LETTERS:
                message = f"Unknown pattern letter: {one}"
                raise ValueError(message)
            elements.append(Element(one, end - index))
            index = end
        elif one in "{}#":
            message = f"Pattern includes reserved character: '{one}'"
            raise ValueError(message)
        else:
            elements.append(Element(one if one in "[]" else "", 0, "" if one in "[]" else one))
            index += 1
    return Pattern(text, tuple(elements))


def _quoted(text: str, index: int) -> tuple[str, int]:
    if text[index : index + 1] == "'":
        return "'", index + 1
    literal = ""
    while index < len(text):
        if text[index] == "'":
            if text[index + 1 : index + 2] != "'":
                return literal, index + 1
            index += 1
        literal += text[index]
        index += 1
    message = f"Pattern ends with an incomplete string literal: {text}"
    raise ValueError(message)

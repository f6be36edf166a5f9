"""MASK and its relatives: text made unreadable, its form kept."""

from __future__ import annotations

from headrace.sql.functions.definitions import ScalarFunction, overload, scalar

_SIGNS = ", upper STRING, lower STRING, digit STRING, other STRING) STRING"


def masked(
    text: str | None,
    upper: str | None = "X",
    lower: str | None = "x",
    digit: str | None = "n",
    other: str | None = "-",
) -> str | None:
    """Returns the text with a sign for each character, by its kind; NULL as a sign keeps characters of that kind."""
    if text is None:
        return None
    return "".join(_mask(one, upper, lower, digit, other) or one for one in text)


def _mask(one: str, upper: str | None, lower: str | None, digit: str | None, other: str | None) -> str | None:
    sign = upper if one.isupper() else lower if one.islower() else digit if one.isdigit() else other
    return sign[0] if sign else None


def _checked(count: int) -> int:
    if count < 0:
        message = f"a mask needs a number of characters that is not negative, got {count}"
        raise ValueError(message)
    return count


def masked_left(text: str | None, count: int | None, *signs: str | None) -> str | None:
    """Returns the text with its first characters masked."""
    if text is None or count is None:
        return None
    place = _checked(count)
    return (masked(text[:place], *signs) or "") + text[place:]


def masked_right(text: str | None, count: int | None, *signs: str | None) -> str | None:
    """Returns the text with its last characters masked."""
    if text is None or count is None:
        return None
    place = max(len(text) - _checked(count), 0)
    return text[:place] + (masked(text[place:], *signs) or "")


def masked_but_left(text: str | None, count: int | None, *signs: str | None) -> str | None:
    """Returns the text with all but its first characters masked."""
    if text is None or count is None:
        return None
    place = _checked(count)
    return text[:place] + (masked(text[place:], *signs) or "")


def masked_but_right(text: str | None, count: int | None, *signs: str | None) -> str | None:
    """Returns the text with all but its last characters masked."""
    if text is None or count is None:
        return None
    place = max(len(text) - _checked(count), 0)
    return (masked(text[:place], *signs) or "") + text[place:]


_SIDES = (
    ("mask_left", "its first characters", masked_left, "'Xn-b2'"),
    ("mask_right", "its last characters", masked_right, "'A1-xn'"),
    ("mask_keep_left", "all but its first characters", masked_but_left, "'A1-xn'"),
    ("mask_keep_right", "all but its last characters", masked_but_right, "'Xn-b2'"),
)
_COUNTS = {"mask_left": 3, "mask_right": 2, "mask_keep_left": 3, "mask_keep_right": 2}

FUNCTIONS: tuple[ScalarFunction, ...] = (
    scalar(
        "mask",
        "Returns the text with a sign for each character: X, x, n or - for upper case, lower case, digits and others, "
        "or the signs given; NULL as a sign keeps characters of that kind.",
        "String",
        [("MASK('Ab-12')", "'Xx-nn'")],
        overload("(text STRING) STRING", masked, strict=False),
        overload(f"(text STRING{_SIGNS}", masked, strict=False),
    ),
    *(
        scalar(
            name,
            f"Returns the text with {words} masked, by the rules of MASK.",
            "String",
            [(f"{name.upper()}('A1-b2', {_COUNTS[name]})", example)],
            overload("(text STRING, count INT) STRING", function, strict=False),
            overload(f"(text STRING, count INT{_SIGNS}", function, strict=False),
        )
        for name, words, function, example in _SIDES
    ),
)

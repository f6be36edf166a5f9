"""Numbers as Java's ``valueOf`` reads them, and as it casts them."""

from __future__ import annotations

import re
from collections.abc import Callable
from decimal import Context, Decimal, Inexact, InvalidOperation

from headrace.sql.types import SqlDecimal

_INTEGER = re.compile(r"[+-]?[0-9]+\Z")
_DECIMAL = re.compile(r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?\Z")
_LONGEST = 4300
"""Digits of a whole number: as many as Python reads in a text by default."""
_NO_NUMBERS = {"NaN": "nan", "+NaN": "nan", "-NaN": "nan"} | {
    f"{sign}Infinity": f"{sign}inf" for sign in ("", "+", "-")
}


def parse_integer(text: str, bits: int) -> int:
    """Returns the whole number that a text shows, if it has no more than so many bits.

    >>> parse_integer("+12", 32)
    12
    """
    if not _INTEGER.match(text):
        message = f"'{text}' is no whole number"
        raise ValueError(message)
    number = int(text)
    if not -(1 << (bits - 1)) <= number < 1 << (bits - 1):
        message = f"{text} does not fit into {bits} bits"
        raise ValueError(message)
    return number


def parse_double(text: str) -> float:
    """Returns the double that a text shows.

    >>> parse_double(" 1.5d ")
    1.5
    """
    text = text.strip()
    bare = text[:-1] if text[-1:] in "dDfF" and len(text) > 1 else text
    if _DECIMAL.match(bare):
        return float(bare)
    if text in _NO_NUMBERS:
        return float(_NO_NUMBERS[text])
    message = f"'{text}' is no number"
    raise ValueError(message)


def parse_decimal(text: str) -> Decimal:
    """Returns the exact number that a text shows.

    >>> parse_decimal("1.10")
    Decimal('1.10')
    """
    if not _DECIMAL.match(text):
        message = f"'{text}' is no number"
        raise ValueError(message)
    return Decimal(text)


def cut(number: int | Decimal, bits: int) -> int:
    """Returns the number without its fraction cut to so many bits, as Java casts.

    >>> cut(2**31, 32), cut(Decimal("1e999999999"), 64)
    (-2147483648, 0)
    """
    whole = number if isinstance(number, int) else _whole(number, bits)
    half = 1 << (bits - 1)
    return (whole + half) % (half * 2) - half


def _whole(number: Decimal, bits: int) -> int:
    """Returns the number without its fraction, or another one with the same last bits, if it is huge.

    A short text such as 1e999999999 would take minutes to be written out.
    """
    if number.adjusted() < _LONGEST:
        return int(number)
    _, digits, exponent = number.as_tuple()
    if int(exponent) >= bits:
        return 0
    message = f"a number has {len(digits)} digits; at most {_LONGEST} are read"
    raise ValueError(message)


def fitting(type: SqlDecimal) -> Callable[[Decimal], Decimal]:
    """Returns the function that brings decimals to the scale of a type; those that would lose digits raise.

    >>> from headrace.sql.types import DECIMAL
    >>> fitting(DECIMAL(4, 2))(Decimal("1.5"))
    Decimal('1.50')
    """
    unit = Decimal(1).scaleb(-type.scale)
    context = Context(prec=type.precision, traps=[Inexact, InvalidOperation])

    def fit(number: Decimal) -> Decimal:
        try:
            # By position: names of arguments would cost as much as the work.
            fitted = number.quantize(unit, None, context)
        except (Inexact, InvalidOperation):
            raise _misfit(number, type) from None
        if not fitted.is_finite():
            raise _misfit(number, type)
        # Java's decimals have no negative zero.
        return fitted or fitted.copy_abs()

    return fit


def _misfit(number: Decimal, type: SqlDecimal) -> ValueError:
    message = f"Cannot fit decimal '{number}' into {type} without rounding or losing leading digits"
    return ValueError(message)

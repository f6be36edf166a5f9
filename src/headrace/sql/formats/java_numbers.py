"""Numbers as Java's ``toString`` and ``valueOf`` write and read them."""

from __future__ import annotations

import re
from collections.abc import Callable
from decimal import Context, Decimal, Inexact, InvalidOperation

from headrace.sql.types import SqlDecimal

_INTEGER = re.compile(r"[+-]?[0-9]+\Z")
_DECIMAL = re.compile(r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?\Z")
_NO_NUMBERS = {"NaN": "nan", "+NaN": "nan", "-NaN": "nan"} | {
    f"{sign}Infinity": f"{sign}inf" for sign in ("", "+", "-")
}


def double_text(number: float) -> str:
    """Returns a double as Java writes it.

    >>> [double_text(number) for number in (1.0, 1e7, 0.00012, 5e-324, float("inf"))]
    ['1.0', '1.0E7', '1.2E-4', '4.9E-324', 'Infinity']
    """
    size = abs(number)
    if 1e-3 <= size < 1e7 or size == 0:
        return repr(number)
    if number != number:
        return "NaN"
    if size == float("inf"):
        return "Infinity" if number > 0 else "-Infinity"
    _, digits, exponent = Decimal(repr(size)).as_tuple()
    text = "".join(map(str, digits)).rstrip("0")
    if len(text) == 1:
        # Java writes two digits at least, the two that are nearest.
        two = f"{size:.1e}"
        if float(two) == size:
            text = two[0] + two[2].rstrip("0")
    power = len(digits) + int(exponent) - 1
    return f"{'-' if number < 0 else ''}{text[0]}.{text[1:] or '0'}E{power}"


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


def cut(number: int, bits: int) -> int:
    """Returns the number cut to so many bits, as Java casts.

    >>> cut(2**31, 32)
    -2147483648
    """
    half = 1 << (bits - 1)
    return (number + half) % (half * 2) - half


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

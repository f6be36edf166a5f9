"""Numbers as Java computes them: decimals of exact size, integers that wrap around, floats that saturate."""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import ROUND_DOWN, ROUND_HALF_UP, Context, Decimal

from headrace.sql.types import BIGINT, DECIMAL, DOUBLE, INTEGER, SqlBaseType, SqlDecimal, SqlType

CONTEXT = Context(prec=400, rounding=ROUND_HALF_UP, Emax=999_999, Emin=-999_999)
"""Wide enough for every product and quotient of two columns."""
_POWERS = [Decimal(1).scaleb(-scale) for scale in range(100)]


def unit(scale: int) -> Decimal:
    """Returns the smallest step of decimals with this scale.

    >>> unit(2)
    Decimal('0.01')
    """
    return _POWERS[scale] if 0 <= scale < len(_POWERS) else Decimal(1).scaleb(-scale, CONTEXT)


def fitted(value: Decimal, precision: int, scale: int) -> Decimal:
    """Returns the value rounded half up to the scale; raises ``ArithmeticError`` if it then has too many digits.

    >>> fitted(Decimal("1.25"), 3, 1)
    Decimal('1.3')
    """
    if not value.is_finite():
        message = f"Numeric field overflow: {value} is no DECIMAL({precision}, {scale})"
        raise ArithmeticError(message)
    result = value.quantize(unit(scale), ROUND_HALF_UP, CONTEXT)
    if result and result.adjusted() >= precision - scale:
        message = (
            f"Numeric field overflow: A field with precision {precision} and scale {scale} must round to an absolute "
            f"value less than 10^{precision - scale}. Got {plain(value) if value.adjusted() < 100 else value}"
        )
        raise ArithmeticError(message)
    return unsigned_zero(result)


def unsigned_zero(value: Decimal) -> Decimal:
    """Returns the value, zero without a sign: decimals have only one zero.

    >>> unsigned_zero(Decimal("-0.0"))
    Decimal('0.0')
    """
    return value or value.copy_abs()


def negated(value: Decimal) -> Decimal:
    """Returns the value with the other sign and all its digits; unary minus would round it."""
    return unsigned_zero(value.copy_negate())


def of_double(value: float) -> Decimal:
    """Returns the shortest decimal that stands for the float."""
    return Decimal(repr(value))


def plain(value: Decimal) -> str:
    """Returns the number without an exponent, with all its digits.

    >>> plain(Decimal("1E+3")), plain(Decimal("0.0000001"))
    ('1000', '0.0000001')
    """
    return format(value, "f")


def wrap_integer(value: int) -> int:
    """Returns what 32 bits keep of the number."""
    return ((value + 0x8000_0000) & 0xFFFF_FFFF) - 0x8000_0000


def wrap_bigint(value: int) -> int:
    """Returns what 64 bits keep of the number."""
    return ((value + 0x8000_0000_0000_0000) & 0xFFFF_FFFF_FFFF_FFFF) - 0x8000_0000_0000_0000


def double_to_integer(value: float) -> int:
    """Returns the float without its fraction, the nearest INTEGER if it has none, 0 for NaN."""
    return _saturated(value, -0x8000_0000, 0x7FFF_FFFF)


def double_to_bigint(value: float) -> int:
    """Returns the float without its fraction, the nearest BIGINT if it has none, 0 for NaN."""
    return _saturated(value, -0x8000_0000_0000_0000, 0x7FFF_FFFF_FFFF_FFFF)


def _saturated(value: float, smallest: int, largest: int) -> int:
    if math.isnan(value):
        return 0
    if math.isinf(value):
        return largest if value > 0 else smallest
    return max(smallest, min(largest, int(value)))


def double_text(value: float) -> str:
    """Returns a float as Java writes it.

    >>> [double_text(value) for value in (123456.5, 1.0, 0.001, 1e7, 0.00012, 5e-324, -0.0, float("inf"))]
    ['123456.5', '1.0', '0.001', '1.0E7', '1.2E-4', '4.9E-324', '-0.0', 'Infinity']
    """
    size = abs(value)
    if 1e-3 <= size < 1e7 or size == 0:
        return repr(value)
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    _, digits, exponent = Decimal(repr(size)).as_tuple()
    figures = "".join(map(str, digits)).rstrip("0")
    power = len(digits) + int(exponent) - 1
    # Java writes the smallest float with two figures.
    if figures == "5" and power == -324:
        figures = "49"
    return f"{'-' if value < 0 else ''}{figures[0]}.{figures[1:] or '0'}E{power}"


def integer_quotient(left: int, right: int) -> int:
    """Returns the quotient without its fraction, rounded towards zero."""
    quotient = abs(left) // abs(right)
    return quotient if (left < 0) == (right < 0) else -quotient


def integer_remainder(left: int, right: int) -> int:
    """Returns the remainder with the sign of the left side."""
    remainder = abs(left) % abs(right)
    return -remainder if left < 0 else remainder


def double_quotient(left: float, right: float) -> float:
    """Returns the quotient; dividing by zero gives an infinity or NaN."""
    if right == 0:
        if left == 0 or math.isnan(left) or math.isnan(right):
            return math.nan
        return math.copysign(math.inf, math.copysign(1, left) * math.copysign(1, right))
    return left / right


def double_remainder(left: float, right: float) -> float:
    """Returns the remainder with the sign of the left side, NaN where there is none."""
    if right == 0 or math.isinf(left) or math.isnan(left) or math.isnan(right):
        return math.nan
    return math.fmod(left, right)


def decimal_sum(left: Decimal, right: Decimal, precision: int, scale: int) -> Decimal:
    """Returns the sum in the type of sums."""
    return fitted(CONTEXT.add(left, right), precision, scale)


def decimal_difference(left: Decimal, right: Decimal, precision: int, scale: int) -> Decimal:
    """Returns the difference in the type of differences."""
    return fitted(CONTEXT.subtract(left, right), precision, scale)


def decimal_product(left: Decimal, right: Decimal, precision: int, scale: int) -> Decimal:
    """Returns the product in the type of products."""
    return fitted(CONTEXT.multiply(left, right), precision, scale)


def decimal_quotient(left: Decimal, right: Decimal, precision: int, scale: int) -> Decimal:
    """Returns the quotient in the type of quotients."""
    return fitted(CONTEXT.divide(left, right), precision, scale)


def decimal_remainder(left: Decimal, right: Decimal, precision: int, scale: int) -> Decimal:
    """Returns the remainder, with the sign of the left side."""
    return fitted(CONTEXT.remainder(left, right), precision, scale)


def as_decimal_type(sql_type: SqlType) -> SqlDecimal:
    """Returns the decimal that holds every value of an exact numeric type."""
    if isinstance(sql_type, SqlDecimal):
        return sql_type
    return DECIMAL(10, 0) if sql_type == INTEGER else DECIMAL(19, 0)


def widest(left: SqlType, right: SqlType) -> SqlType:
    """Returns the numeric type that holds the values of both.

    >>> str(widest(DECIMAL(4, 2), INTEGER))
    'DECIMAL(12, 2)'
    """
    if left == right:
        return left
    bases = (left.base, right.base)
    if SqlBaseType.DOUBLE in bases:
        return DOUBLE
    if SqlBaseType.DECIMAL in bases:
        first, second = as_decimal_type(left), as_decimal_type(right)
        scale = max(first.scale, second.scale)
        return DECIMAL(max(first.precision - first.scale, second.precision - second.scale) + scale, scale)
    return BIGINT


def operation_type(operator: str, left: SqlDecimal, right: SqlDecimal) -> SqlDecimal:
    """Returns the type of an operation on two decimals."""
    p1, s1, p2, s2 = left.precision, left.scale, right.precision, right.scale
    if operator in "+-":
        scale = max(s1, s2)
        return DECIMAL(max(p1 - s1, p2 - s2) + scale + 1, scale)
    if operator == "*":
        return DECIMAL(p1 + p2 + 1, s1 + s2)
    if operator == "/":
        scale = max(6, s1 + p2 + 1)
        return DECIMAL(p1 - s1 + s2 + scale, scale)
    scale = max(s1, s2)
    return DECIMAL(min(p1 - s1, p2 - s2) + scale, scale)


DECIMAL_OPERATIONS: dict[str, Callable[[Decimal, Decimal, int, int], Decimal]] = {
    "+": decimal_sum,
    "-": decimal_difference,
    "*": decimal_product,
    "/": decimal_quotient,
    "%": decimal_remainder,
}


def truncated(value: Decimal) -> int:
    """Returns the decimal without its fraction."""
    return int(value.to_integral_value(ROUND_DOWN))

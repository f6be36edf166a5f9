"""Comparison of an emitted value with the expected one, by the rules of the corpus."""

from __future__ import annotations

import base64
import re
from decimal import Decimal
from typing import Any

_NUMBER = re.compile(r"[+-]?\d+(\.\d+)?")


def same_json(expected: Any, actual: Any, *, exact: bool = True) -> bool:
    """Compares parsed JSON: a fraction with its scale, a whole number with the expected number cut to one."""
    if isinstance(actual, bool) or isinstance(expected, bool):
        return expected is actual
    if isinstance(actual, Decimal):
        if isinstance(expected, str):
            # Some cases give decimals as text.
            return bool(_NUMBER.fullmatch(expected)) and Decimal(expected).as_tuple() == actual.as_tuple()
        if isinstance(expected, int | Decimal):
            exponent = actual.as_tuple().exponent
            if isinstance(exponent, int) and exponent >= 0:
                # Written with an exponent, but whole: 1.0E12.
                return int(expected) == int(actual)
            if not exact:
                return abs(Decimal(expected) - actual) < Decimal("1e-6")
            return Decimal(expected).as_tuple() == actual.as_tuple()
        return False
    if isinstance(actual, int):
        return isinstance(expected, int | Decimal) and int(expected) == actual
    return _same_shape(expected, actual, lambda left, right: same_json(left, right, exact=exact))


def same_value(expected: Any, actual: Any) -> bool:
    """Compares values that a binary format was read to: doubles within a millionth."""
    if isinstance(actual, bool) or isinstance(expected, bool):
        return expected is actual
    if isinstance(actual, float):
        return isinstance(expected, int | Decimal | float) and abs(float(expected) - actual) < 1e-6
    if isinstance(actual, Decimal):
        return isinstance(expected, int | Decimal | str) and Decimal(str(expected)) == actual
    if isinstance(actual, int):
        return isinstance(expected, int | Decimal) and int(expected) == actual
    if isinstance(actual, bytes):
        return isinstance(expected, str) and base64.b64decode(expected) == actual
    return _same_shape(expected, actual, same_value)


def _same_shape(expected: Any, actual: Any, same: Any) -> bool:
    if isinstance(expected, dict) and isinstance(actual, dict):
        if len(expected) != len(actual):
            return False
        for key, value in expected.items():
            found = key if key in actual else key.upper()
            if found not in actual or not same(value, actual[found]):
                return False
        return True
    if isinstance(expected, list) and isinstance(actual, list):
        return len(expected) == len(actual) and all(map(same, expected, actual))
    return bool(expected == actual)

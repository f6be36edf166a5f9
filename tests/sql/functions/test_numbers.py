from __future__ import annotations

import math
from decimal import Decimal
from typing import Any

import pytest

from tests.sql.expressions.rows import type_of, value


@pytest.mark.parametrize(
    ("text", "kind", "expected"),
    [
        ("ABS(-2147483648)", "INTEGER", -2147483648),
        ("ABS(-1.50)", "DECIMAL(3, 2)", Decimal("1.50")),
        ("CEIL(e)", "DECIMAL(5, 2)", Decimal("13.00")),
        ("FLOOR(-2.5E0)", "DOUBLE", -3.0),
        ("ROUND(2.5E0)", "BIGINT", 3),
        ("ROUND(-2.5E0)", "BIGINT", -2),
        ("ROUND(e)", "DECIMAL(3, 0)", Decimal("12")),
        ("ROUND(e, 1)", "DECIMAL(5, 2)", Decimal("12.30")),
        ("ROUND(1234.5E0, -2)", "DOUBLE", 1200.0),
        ("TRUNC(-12.39, 1)", "DECIMAL(4, 2)", Decimal("-12.30")),
        ("SIGN(-2.5E0)", "INTEGER", -1),
        ("LN(0)", "DOUBLE", -math.inf),
        ("EXP(1000)", "DOUBLE", math.inf),
        ("POWER(2, -1)", "DOUBLE", 0.5),
        ("POWER(0, -1)", "DOUBLE", math.inf),
        ("COT(0)", "DOUBLE", math.inf),
        ("CBRT(-27)", "DOUBLE", -3.0),
        ("GREATEST(e, 1.5)", "DECIMAL(5, 2)", Decimal("12.34")),
        ("GREATEST(s, NULL, 'zoo')", "STRING", "zoo"),
        ("LEAST(n, n)", "INTEGER", None),
    ],
)
def test_number_functions(text: str, kind: str, expected: Any) -> None:
    assert type_of(text) == kind
    assert value(text) == expected


@pytest.mark.parametrize("text", ["SQRT(-1)", "ACOS(2)", "LN(-1)", "POWER(-8E0, 0.5E0)", "LOG(1, 10)"])
def test_outside_of_its_domain_a_function_is_not_a_number(text: str) -> None:
    assert math.isnan(value(text))


def test_distances_are_along_great_circles() -> None:
    # A quarter of the equator, on a sphere of 6371 km.
    assert value("GEO_DISTANCE(0E0, 0E0, 0E0, 90E0)") == pytest.approx(6371 * math.pi / 2)
    assert value("GEO_DISTANCE(0E0, 0E0, 0E0, 90E0, 'mi')") == pytest.approx(3959 * math.pi / 2)
    assert value("GEO_DISTANCE(0E0, 0E0, 0E0, 90E0, ' Kilometres ')") == pytest.approx(6371 * math.pi / 2)
    assert value("GEO_DISTANCE(0E0, 0E0, 0E0, 90E0, CAST(NULL AS STRING))") == pytest.approx(6371 * math.pi / 2)
    assert value("GEO_DISTANCE(0E0, 0E0, 0E0, 90E0, 'ells')") is None
    assert value("GEO_DISTANCE(0E0, 0E0, 0E0, 181E0)") is None
    assert value("GEO_DISTANCE(91E0, 0E0, 0E0, 0E0)") is None

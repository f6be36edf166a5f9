"""Powers, logarithms, angles and distances: functions of floats that give NaN or an infinity instead of failing."""

from __future__ import annotations

import math
from collections.abc import Callable

from headrace.sql.functions.definitions import ScalarFunction, overload, scalar

CATEGORY = "Mathematical"
_NUMBERS = ("INT", "BIGINT", "DOUBLE")
_RADIUS = {
    **dict.fromkeys(("mi", "mile", "miles"), 3959.0),
    **dict.fromkeys(("km", "kilometer", "kilometers", "kilometre", "kilometres"), 6371.0),
}


def _total(function: Callable[[float], float], value: float) -> float:
    """Returns the value of a function, NaN outside of its domain, an infinity where it is too large."""
    try:
        return function(value)
    except OverflowError:
        return math.inf
    except ValueError:
        return math.nan


def arc_cosine(value: float) -> float:
    """Returns the angle of a cosine."""
    return _total(math.acos, value)


def arc_sine(value: float) -> float:
    """Returns the angle of a sine."""
    return _total(math.asin, value)


def arc_tangent(value: float) -> float:
    """Returns the angle of a tangent."""
    return math.atan(value)


def arc_tangent_of(y: float, x: float) -> float:
    """Returns the angle of a point."""
    return math.atan2(y, x)


def cube_root(value: float) -> float:
    """Returns the cube root."""
    root = math.cbrt(value)
    if not root or not math.isfinite(root):
        return root
    # The C library may be off in the last digit; one step of Newton's method corrects it.
    return root - (root * root * root - value) / (3 * root * root)


def cosine(value: float) -> float:
    """Returns the cosine of an angle."""
    return _total(math.cos, value)


def hyperbolic_cosine(value: float) -> float:
    """Returns the hyperbolic cosine."""
    return _total(math.cosh, value)


def cotangent(value: float) -> float:
    """Returns the cotangent of an angle."""
    tangent_of = tangent(value)
    return 1 / tangent_of if tangent_of else math.copysign(math.inf, tangent_of)


def degrees(value: float) -> float:
    """Returns an angle in radians as degrees."""
    return math.degrees(value)


def radians(value: float) -> float:
    """Returns an angle in degrees as radians."""
    return math.radians(value)


def exponential(value: float) -> float:
    """Returns e to a power."""
    return _total(math.exp, value)


def natural_logarithm(value: float) -> float:
    """Returns the logarithm to the base e."""
    return -math.inf if value == 0 else _total(math.log, value)


def logarithm(base: float, value: float) -> float:
    """Returns the logarithm to a base."""
    if base <= 0 or base == 1:
        return math.nan
    return natural_logarithm(value) / natural_logarithm(base)


def pi() -> float:
    """Returns the ratio of a circle's circumference to its diameter."""
    return math.pi


def power(base: float, exponent: float) -> float:
    """Returns the base to a power."""
    base, exponent = float(base), float(exponent)
    if base == 0 and exponent < 0:
        odd = exponent == int(exponent) and int(exponent) % 2 == 1
        return math.copysign(math.inf, base) if odd else math.inf
    try:
        return math.pow(base, exponent)
    except OverflowError:
        odd = exponent == int(exponent) and int(exponent) % 2 == 1
        return -math.inf if base < 0 and odd else math.inf
    except ValueError:
        return math.nan


def sine(value: float) -> float:
    """Returns the sine of an angle."""
    return _total(math.sin, value)


def hyperbolic_sine(value: float) -> float:
    """Returns the hyperbolic sine."""
    try:
        return math.sinh(value)
    except OverflowError:
        return math.copysign(math.inf, value)


def square_root(value: float) -> float:
    """Returns the square root."""
    return _total(math.sqrt, value)


def tangent(value: float) -> float:
    """Returns the tangent of an angle."""
    return _total(math.tan, value)


def hyperbolic_tangent(value: float) -> float:
    """Returns the hyperbolic tangent."""
    return math.tanh(value)


def distance(
    latitude: float | None,
    longitude: float | None,
    to_latitude: float | None,
    to_longitude: float | None,
    unit: str | None = None,
) -> float | None:
    """Returns how far two points on earth are apart, along a great circle: in kilometers unless the unit is miles."""
    if latitude is None or longitude is None or to_latitude is None or to_longitude is None:
        return None
    for name, degrees_of, most in (
        ("latitude", latitude, 90),
        ("latitude", to_latitude, 90),
        ("longitude", longitude, 180),
        ("longitude", to_longitude, 180),
    ):
        if abs(degrees_of) > most:
            message = (
                f"valid {name} values for GeoDistance function are in the range of -{most} to {most} decimal degrees"
            )
            raise ValueError(message)
    radius = _RADIUS.get((unit or "").strip().lower() or "km")
    if radius is None:
        message = f"GeoDistance function units parameter must be one of {', '.join(_RADIUS)}, got {unit}"
        raise ValueError(message)
    first, second = math.radians(latitude), math.radians(to_latitude)
    square = math.sin(math.radians(to_latitude - latitude) / 2) ** 2
    square += math.sin(math.radians(to_longitude - longitude) / 2) ** 2 * math.cos(first) * math.cos(second)
    return radius * (2 * math.asin(math.sqrt(square)))


def _of_number(
    name: str, description: str, example: tuple[str, str], function: Callable[[float], float]
) -> ScalarFunction:
    return scalar(
        name,
        description,
        CATEGORY,
        [example],
        *(overload(f"(value {one}) DOUBLE", function) for one in _NUMBERS),
    )


FUNCTIONS = (
    _of_number("acos", "Returns the angle of a cosine, in radians.", ("ACOS(1)", "0E0"), arc_cosine),
    _of_number("asin", "Returns the angle of a sine, in radians.", ("ASIN(0)", "0E0"), arc_sine),
    _of_number("atan", "Returns the angle of a tangent, in radians.", ("ATAN(0)", "0E0"), arc_tangent),
    scalar(
        "atan2",
        "Returns the angle of the point with these coordinates, y first, in radians.",
        CATEGORY,
        [("ATAN2(0, 1)", "0E0")],
        *(overload(f"(y {one}, x {one}) DOUBLE", arc_tangent_of) for one in _NUMBERS),
    ),
    _of_number("cbrt", "Returns the cube root.", ("CBRT(27)", "3E0"), cube_root),
    _of_number("cos", "Returns the cosine of an angle in radians.", ("COS(0)", "1E0"), cosine),
    _of_number("cosh", "Returns the hyperbolic cosine.", ("COSH(0)", "1E0"), hyperbolic_cosine),
    _of_number("cot", "Returns the cotangent of an angle in radians.", ("ROUND(COT(1), 3)", "6.42E-1"), cotangent),
    _of_number("degrees", "Returns an angle in radians as degrees.", ("DEGREES(PI())", "1.8E2"), degrees),
    _of_number("radians", "Returns an angle in degrees as radians.", ("RADIANS(180) = PI()", "true"), radians),
    _of_number("exp", "Returns e to a power.", ("EXP(0)", "1E0"), exponential),
    _of_number("ln", "Returns the logarithm to the base e.", ("LN(1)", "0E0"), natural_logarithm),
    scalar(
        "log",
        "Returns the logarithm of a number to the base e, or of the second number to the base of the first.",
        CATEGORY,
        [("LOG(2, 8)", "3E0")],
        *(overload(f"(value {one}) DOUBLE", natural_logarithm) for one in _NUMBERS),
        *(overload(f"(base {one}, value {one}) DOUBLE", logarithm) for one in _NUMBERS),
    ),
    scalar(
        "pi",
        "Returns the ratio of a circle's circumference to its diameter.",
        CATEGORY,
        [("ROUND(PI(), 4)", "3.1416E0")],
        overload("() DOUBLE", pi),
    ),
    scalar(
        "power",
        "Returns the first number to the power of the second.",
        CATEGORY,
        [("POWER(2, 10)", "1.024E3")],
        *(overload(f"(base {one}, exponent {one}) DOUBLE", power) for one in _NUMBERS),
    ),
    _of_number("sin", "Returns the sine of an angle in radians.", ("SIN(0)", "0E0"), sine),
    _of_number("sinh", "Returns the hyperbolic sine.", ("SINH(0)", "0E0"), hyperbolic_sine),
    _of_number("sqrt", "Returns the square root.", ("SQRT(9)", "3E0"), square_root),
    _of_number("tan", "Returns the tangent of an angle in radians.", ("TAN(0)", "0E0"), tangent),
    _of_number("tanh", "Returns the hyperbolic tangent.", ("TANH(0)", "0E0"), hyperbolic_tangent),
    scalar(
        "geo_distance",
        "Returns the distance of two points on earth, each as latitude and longitude, in KM or MI.",
        "Other",
        [("ROUND(GEO_DISTANCE(0E0, 0E0, 0E0, 1E0), 1)", "1.112E2")],
        overload("(lat1 DOUBLE, lon1 DOUBLE, lat2 DOUBLE, lon2 DOUBLE, units STRING) DOUBLE", distance, strict=False),
        overload("(lat1 DOUBLE, lon1 DOUBLE, lat2 DOUBLE, lon2 DOUBLE) DOUBLE", distance),
    ),
)

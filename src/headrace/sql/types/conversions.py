"""Conversions of values from one SQL type to another."""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from headrace.sql.errors import SqlStatementError
from headrace.sql.types import SqlArray, SqlBaseType, SqlDecimal, SqlMap, SqlStruct, SqlType
from headrace.sql.types.java_arithmetic import (
    double_text,
    double_to_bigint,
    double_to_integer,
    fitted,
    of_double,
    plain,
    truncated,
    wrap_bigint,
    wrap_integer,
)
from headrace.sql.types.times import (
    DAY_MS,
    date_text,
    parse_date,
    parse_time,
    parse_timestamp,
    time_text,
    timestamp_text,
)

B = SqlBaseType
_TRUE, _FALSE = ("true", "yes"), ("false", "no")


def text_to_boolean(text: str) -> bool:
    """Returns the truth that a text means: ``true``, ``yes`` or their beginnings; anything else is false."""
    return boolean_of(text) is True


def boolean_of(text: str) -> bool | None:
    """Returns the truth that a text means, None if it means none.

    >>> boolean_of("Tr"), boolean_of("n"), boolean_of("maybe")
    (True, False, None)
    """
    word = text.strip().lower()
    if not word:
        return None
    if any(one.startswith(word) for one in _TRUE):
        return True
    return False if any(one.startswith(word) for one in _FALSE) else None


def text_to_integer(text: str) -> int:
    """Returns the INTEGER that a text means; raises ``ValueError`` if it means none."""
    return _in_range(text, -0x8000_0000, 0x7FFF_FFFF)


def text_to_bigint(text: str) -> int:
    """Returns the BIGINT that a text means; raises ``ValueError`` if it means none."""
    return _in_range(text, -0x8000_0000_0000_0000, 0x7FFF_FFFF_FFFF_FFFF)


def _in_range(text: str, smallest: int, largest: int) -> int:
    stripped = text.strip()
    if not stripped.lstrip("+-").isdigit():
        message = f'For input string: "{text}"'
        raise ValueError(message)
    value = int(stripped)
    if not smallest <= value <= largest:
        message = f'For input string: "{text}": out of range'
        raise ValueError(message)
    return value


def text_to_double(text: str) -> float:
    """Returns the DOUBLE that a text means; raises ``ValueError`` if it means none."""
    stripped = text.strip()
    if "_" in stripped or stripped.lower().lstrip("+-") in ("inf", "nan", "infinity"):
        if stripped.lstrip("+-") in ("NaN", "Infinity"):
            return float(stripped)
        message = f'For input string: "{text}"'
        raise ValueError(message)
    return float(stripped.rstrip("dDfF") or stripped)


def text_to_decimal(text: str, precision: int, scale: int) -> Decimal:
    """Returns the decimal that a text means; raises ``ArithmeticError`` if it means none or does not fit."""
    return fitted(Decimal(text.strip()), precision, scale)


def text_to_bytes(text: str) -> bytes:
    """Returns the bytes that a text means in Base64; raises ``ValueError`` if it means none."""
    stripped = text.strip()
    # The padding may be left out.
    return b64decode(stripped + "=" * (-len(stripped) % 4), validate=True)


def integer_to_decimal(value: int, precision: int, scale: int) -> Decimal:
    """Returns an integer as a decimal; raises ``ArithmeticError`` if it does not fit."""
    return fitted(Decimal(value), precision, scale)


def double_to_decimal(value: float, precision: int, scale: int) -> Decimal:
    """Returns a float as a decimal; raises ``ArithmeticError`` if it does not fit."""
    return fitted(of_double(value), precision, scale)


def decimal_to_integer(value: Decimal) -> int:
    """Returns what 32 bits keep of a decimal without its fraction."""
    return wrap_integer(truncated(value))


def decimal_to_bigint(value: Decimal) -> int:
    """Returns what 64 bits keep of a decimal without its fraction."""
    return wrap_bigint(truncated(value))


def boolean_text(value: bool) -> str:  # noqa: FBT001
    """Returns ``true`` or ``false``."""
    return "true" if value else "false"


def timestamp_to_date(epoch_ms: int) -> int:
    """Returns the day of an instant."""
    return epoch_ms // DAY_MS


def timestamp_to_time(epoch_ms: int) -> int:
    """Returns the time of day of an instant."""
    return epoch_ms % DAY_MS


def date_to_timestamp(days: int) -> int:
    """Returns the start of a day."""
    return days * DAY_MS


_SIMPLE: dict[tuple[SqlBaseType, SqlBaseType], Callable[..., Any] | None] = {
    (B.INTEGER, B.BIGINT): None,
    (B.INTEGER, B.DOUBLE): float,
    (B.INTEGER, B.DECIMAL): integer_to_decimal,
    (B.INTEGER, B.STRING): str,
    (B.BIGINT, B.INTEGER): wrap_integer,
    (B.BIGINT, B.DOUBLE): float,
    (B.BIGINT, B.DECIMAL): integer_to_decimal,
    (B.BIGINT, B.STRING): str,
    (B.DOUBLE, B.INTEGER): double_to_integer,
    (B.DOUBLE, B.BIGINT): double_to_bigint,
    (B.DOUBLE, B.DECIMAL): double_to_decimal,
    (B.DOUBLE, B.STRING): double_text,
    (B.DECIMAL, B.INTEGER): decimal_to_integer,
    (B.DECIMAL, B.BIGINT): decimal_to_bigint,
    (B.DECIMAL, B.DOUBLE): float,
    (B.DECIMAL, B.DECIMAL): fitted,
    (B.DECIMAL, B.STRING): plain,
    (B.BOOLEAN, B.STRING): boolean_text,
    (B.STRING, B.BOOLEAN): text_to_boolean,
    (B.STRING, B.INTEGER): text_to_integer,
    (B.STRING, B.BIGINT): text_to_bigint,
    (B.STRING, B.DOUBLE): text_to_double,
    (B.STRING, B.DECIMAL): text_to_decimal,
    (B.STRING, B.DATE): parse_date,
    (B.STRING, B.TIME): parse_time,
    (B.STRING, B.TIMESTAMP): parse_timestamp,
    (B.STRING, B.BYTES): text_to_bytes,
    (B.DATE, B.STRING): date_text,
    (B.DATE, B.TIMESTAMP): date_to_timestamp,
    (B.TIME, B.STRING): time_text,
    (B.TIMESTAMP, B.STRING): timestamp_text,
    (B.TIMESTAMP, B.DATE): timestamp_to_date,
    (B.TIMESTAMP, B.TIME): timestamp_to_time,
}
"""How a value of one type becomes one of another; None where it already is."""
SURE = frozenset({float, str, double_text, plain, boolean_text, date_text, time_text, timestamp_text, wrap_integer})
SURE |= {double_to_integer, double_to_bigint, decimal_to_integer, decimal_to_bigint, text_to_boolean}
SURE |= {timestamp_to_date, timestamp_to_time, date_to_timestamp}
"""Conversions that never fail."""
READ_FROM_TEXT = {
    B.DATE: parse_date,
    B.TIME: parse_time,
    B.TIMESTAMP: parse_timestamp,
    B.BYTES: text_to_bytes,
}
"""The types to which texts are converted without being asked, with what reads them."""


@dataclass(frozen=True, slots=True)
class Sized:
    """A conversion to a decimal of one size."""

    function: Callable[[Any, int, int], Decimal]
    precision: int
    scale: int

    def __call__(self, value: Any) -> Decimal:
        return self.function(value, self.precision, self.scale)


@dataclass(frozen=True, slots=True)
class ArrayCast:
    """Converts the items of an array."""

    item: Callable[[Any], Any] | None

    def __call__(self, value: list[Any]) -> list[Any]:
        convert = self.item
        return value if convert is None else [None if one is None else convert(one) for one in value]


@dataclass(frozen=True, slots=True)
class MapCast:
    """Converts the keys and values of a map."""

    key: Callable[[Any], Any] | None
    value: Callable[[Any], Any] | None

    def __call__(self, value: dict[Any, Any]) -> dict[Any, Any]:
        return {_convert_or_raise(self.key, key): _convert_or_raise(self.value, one) for key, one in value.items()}


@dataclass(frozen=True, slots=True)
class StructCast:
    """Converts the fields of a struct by name; a field that the source has not is NULL."""

    fields: tuple[tuple[str, Callable[[Any], Any] | None], ...]

    def __call__(self, value: dict[str, Any]) -> dict[str, Any]:
        return {name: _convert_or_raise(convert, value.get(name)) for name, convert in self.fields}


@dataclass(frozen=True, slots=True)
class TextOf:
    """The text of an array, map or struct, as Java writes collections."""

    type: SqlType

    def __call__(self, value: Any) -> str:
        return _text(self.type, value)


def _convert_or_raise(convert: Callable[[Any], Any] | None, value: Any) -> Any:
    return value if convert is None or value is None else convert(value)


def _text(sql_type: SqlType, value: Any) -> str:
    if value is None:
        return "null"
    if isinstance(sql_type, SqlArray):
        return f"[{', '.join(_text(sql_type.item, one) for one in value)}]"
    if isinstance(sql_type, SqlMap):
        entries = (f"{_text(sql_type.key, key)}={_text(sql_type.value, one)}" for key, one in value.items())
        return f"{{{', '.join(entries)}}}"
    if isinstance(sql_type, SqlStruct):
        parts = ((part, value.get(part.name)) for part in sql_type.fields)
        return f"Struct{{{','.join(f'{part.name}={_text(part.type, one)}' for part, one in parts if one is not None)}}}"
    function = _SIMPLE.get((sql_type.base, B.STRING))
    return str(function(value) if function else value)


class UnsupportedCast(SqlStatementError):
    """There is no conversion between the two types."""


def _unsupported(source: SqlType, target: SqlType) -> UnsupportedCast:
    return UnsupportedCast(f"Cast of {source} to {target} is not supported")


def _inner_converter(source: SqlType, target: SqlType) -> ArrayCast | MapCast | StructCast | None:
    """Returns the conversion of what is inside of both types; None if they are not of the same kind."""
    if isinstance(source, SqlArray) and isinstance(target, SqlArray):
        return ArrayCast(converter(source.item, target.item))
    if isinstance(source, SqlMap) and isinstance(target, SqlMap):
        return MapCast(converter(source.key, target.key), converter(source.value, target.value))
    if isinstance(source, SqlStruct) and isinstance(target, SqlStruct):
        parts = []
        for part in target.fields:
            have = source.field(part.name)
            parts.append((part.name, None if have is None else converter(have, part.type)))
        return StructCast(tuple(parts))
    return None


def converter(source: SqlType, target: SqlType) -> Callable[[Any], Any] | None:
    """Returns the function that converts a value, None if nothing is to do; raises ``UnsupportedCast`` otherwise.

    >>> from headrace.sql.types import DECIMAL, STRING
    >>> converter(STRING, DECIMAL(3, 1))("1.25")
    Decimal('1.3')
    """
    if source == target:
        return None
    try:
        made = _inner_converter(source, target)
    except UnsupportedCast as error:
        raise _unsupported(source, target) from error
    if made is not None:
        return made
    if target.base is B.STRING and source.base in (B.ARRAY, B.MAP, B.STRUCT):
        return TextOf(source)
    if (source.base, target.base) not in _SIMPLE:
        raise _unsupported(source, target)
    function = _SIMPLE[source.base, target.base]
    if isinstance(target, SqlDecimal) and function is not None:
        return Sized(function, target.precision, target.scale)
    return function

"""Values that go into functions of users and come out of them: NULL where it is taken, results of the declared type."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from headrace.errors import describe_value
from headrace.sql.types import SqlArray, SqlBaseType, SqlDecimal, SqlMap, SqlStruct, SqlType
from headrace.sql.types.java_arithmetic import fitted

_BITS = {
    SqlBaseType.INTEGER: 32,
    SqlBaseType.BIGINT: 64,
    SqlBaseType.DATE: 32,
    SqlBaseType.TIME: 64,
    SqlBaseType.TIMESTAMP: 64,
}
_CLASSES = {SqlBaseType.BOOLEAN: bool, SqlBaseType.STRING: str, SqlBaseType.BYTES: bytes}


def conforming(value: Any, type: SqlType) -> Any:
    """Returns a value as SQL holds one of the type; raises ``TypeError`` if it is none.

    >>> from headrace.sql.types import ARRAY, DOUBLE
    >>> conforming((1, 2.5, None), ARRAY(DOUBLE))
    [1.0, 2.5, None]
    """
    if value is None:
        return None
    base = type.base
    if base in _CLASSES:
        if isinstance(value, _CLASSES[base]):
            return value
    elif base in _BITS:
        if isinstance(value, int) and not isinstance(value, bool) and -1 <= value >> (_BITS[base] - 1) <= 0:
            return value
    elif base is SqlBaseType.DOUBLE:
        if isinstance(value, float | int) and not isinstance(value, bool):
            return float(value)
    elif isinstance(type, SqlDecimal):
        if isinstance(value, Decimal | int) and not isinstance(value, bool):
            return fitted(Decimal(value), type.precision, type.scale)
    elif isinstance(type, SqlArray):
        if isinstance(value, list | tuple):
            return [conforming(item, type.item) for item in value]
    elif isinstance(type, SqlMap):
        if isinstance(value, Mapping):
            return {conforming(key, type.key): conforming(item, type.value) for key, item in value.items()}
    elif isinstance(type, SqlStruct) and isinstance(value, Mapping):
        return _struct(value, type)
    message = f"{describe_value(value)} is no {type}"
    raise TypeError(message)


def _struct(value: Mapping[str, Any], type: SqlStruct) -> dict[str, Any]:
    # Names are in upper case in SQL, whatever they are in Python.
    given = {name if type.field(name) is not None else name.upper(): item for name, item in value.items()}
    strange = [name for name in given if type.field(name) is None]
    if strange:
        message = f"{type} has no field {strange[0]}"
        raise TypeError(message)
    return {field.name: conforming(given.get(field.name), field.type) for field in type.fields}


def result_of(function: Callable[..., Any], value: Any, type: SqlType) -> Any:
    """Returns what a function has returned as a value of its declared type; raises ``TypeError`` if it is none."""
    try:
        return conforming(value, type)
    except (TypeError, ArithmeticError) as error:
        name = getattr(function, "__qualname__", repr(function))
        message = f"{name} returned {describe_value(value)}, and is declared to return {type}: {error}"
        raise TypeError(message) from error


@dataclass(frozen=True, slots=True)
class CheckedFunction:
    """A function as SQL calls it: without NULL for parameters that do not take it, with results of its type."""

    user_function: Callable[..., Any]
    takes_none: tuple[bool, ...]
    """Of each argument; empty if NULL has been dealt with before."""
    result: SqlType

    def __call__(self, *arguments: Any) -> Any:
        if misses_value(self.takes_none, arguments):
            return None
        return result_of(self.user_function, self.user_function(*arguments), self.result)


def misses_value(takes_none: Sequence[bool], arguments: Sequence[Any]) -> bool:
    """Whether an argument is NULL whose parameter does not take it.

    >>> misses_value((True, False), (None, 1)), misses_value((True, False), (1, None))
    (False, True)
    """
    return any(value is None and not taken for value, taken in zip(arguments, takes_none, strict=False))

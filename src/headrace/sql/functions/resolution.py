"""Overload resolution: exact types first, then implicit conversions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar

from headrace.sql.errors import SqlFunctionError
from headrace.sql.functions.signatures import (
    Accepted,
    AnyDecimal,
    AnyStruct,
    Anything,
    ArrayOf,
    Exactly,
    Generic,
    LambdaOf,
    MapOf,
    Parameter,
    Signature,
    Unit,
    is_generic,
)
from headrace.sql.types import SqlArray, SqlBaseType, SqlMap, SqlType
from headrace.sql.types.java_arithmetic import widest
from headrace.sql.types.type_names import type_text


@dataclass(frozen=True, slots=True)
class LambdaArgument:
    """A lambda in a call, before its inputs have types."""

    inputs: int

    def __str__(self) -> str:
        return "LAMBDA"


@dataclass(frozen=True, slots=True)
class UnitArgument:
    """A unit of time in a call."""

    def __str__(self) -> str:
        return "INTERVALUNIT"


Argument = SqlType | LambdaArgument | UnitArgument | None
"""What is known of an argument; None for NULL."""


class HasSignature(Protocol):
    """Anything that can be chosen by its signature."""

    @property
    def signature(self) -> Signature: ...


Choice = TypeVar("Choice", bound=HasSignature)


def argument_text(argument: Argument) -> str:
    """Returns an argument as messages show it."""
    return type_text(argument) if argument is None or isinstance(argument, SqlType) else str(argument)


def choose(name: str, overloads: Sequence[Choice], arguments: Sequence[Argument], *, with_casts: bool = True) -> Choice:
    """Returns the overload that a call means; raises ``SqlFunctionError`` if there is none, or no single best one."""
    for casting in (False, True) if with_casts else (False,):
        found = [one for one in overloads if accepts(one.signature, arguments, with_casts=casting)]
        if not found:
            continue
        found.sort(key=lambda one: _rank(one.signature))
        if len(found) > 1 and _rank(found[-1].signature) == _rank(found[-2].signature):
            message = f"Function '{name}' cannot be resolved due to ambiguous method parameters {_texts(arguments)}."
            raise SqlFunctionError(_with_alternatives(message, name, overloads))
        return found[-1]
    message = f"Function '{name}' does not accept parameters {_texts(arguments)}."
    raise SqlFunctionError(_with_alternatives(message, name, overloads))


def accepts(signature: Signature, arguments: Sequence[Argument], *, with_casts: bool) -> bool:
    """Whether a call with these arguments fits the signature."""
    parameters = spread(signature, len(arguments))
    generics: dict[str, SqlType] = {}
    return parameters is not None and all(
        fits(parameter.accepts, argument, generics, with_casts=with_casts)
        for parameter, argument in zip(parameters, arguments, strict=True)
    )


def spread(signature: Signature, count: int) -> list[Parameter] | None:
    """Returns one parameter per argument, the variadic one repeated; None if the number does not fit."""
    places = spread_places(signature, count)
    return None if places is None else [signature.parameters[place] for place in places]


def spread_places(signature: Signature, count: int) -> list[int] | None:
    """Returns, for each argument, which parameter takes it; None if the number does not fit."""
    size = len(signature.parameters)
    variadic = next((place for place, parameter in enumerate(signature.parameters) if parameter.variadic), None)
    if variadic is None:
        return list(range(size)) if size == count else None
    times = count - size + 1
    return None if times < 0 else [*range(variadic), *[variadic] * times, *range(variadic + 1, size)]


def fits(accepted: Accepted, argument: Argument, generics: dict[str, SqlType], *, with_casts: bool) -> bool:
    """Whether an argument can be passed; learns what the generic types stand for."""
    if argument is None:
        return not isinstance(accepted, LambdaOf | Unit)
    if isinstance(argument, LambdaArgument):
        return isinstance(accepted, LambdaOf) and len(accepted.inputs) == argument.inputs
    if isinstance(argument, UnitArgument):
        return isinstance(accepted, Unit)
    if isinstance(accepted, Anything):
        return True
    if isinstance(accepted, Generic):
        return _same_generic(accepted.name, argument, generics, with_casts=with_casts)
    if isinstance(accepted, ArrayOf):
        return isinstance(argument, SqlArray) and fits(accepted.item, argument.item, generics, with_casts=with_casts)
    if isinstance(accepted, MapOf):
        return (
            isinstance(argument, SqlMap)
            and fits(accepted.key, argument.key, generics, with_casts=with_casts)
            and fits(accepted.value, argument.value, generics, with_casts=with_casts)
        )
    if isinstance(accepted, AnyStruct):
        return argument.base is SqlBaseType.STRUCT
    if isinstance(accepted, AnyDecimal):
        return argument.base is SqlBaseType.DECIMAL or (
            with_casts and argument.base in (SqlBaseType.INTEGER, SqlBaseType.BIGINT)
        )
    if isinstance(accepted, Exactly):
        return argument == accepted.type or (with_casts and implicitly_castable(argument, accepted.type))
    return False


def _same_generic(name: str, argument: SqlType, generics: dict[str, SqlType], *, with_casts: bool) -> bool:
    found = generics.setdefault(name, argument)
    if found != argument and with_casts and found.base in NUMBERS and argument.base in NUMBERS:
        generics[name] = widest(found, argument)
        return True
    return found == argument


NUMBERS = (SqlBaseType.INTEGER, SqlBaseType.BIGINT, SqlBaseType.DECIMAL, SqlBaseType.DOUBLE)
"""Numeric types, each of which is converted to those behind it where they are needed."""


def implicitly_castable(source: SqlType, target: SqlType) -> bool:
    """Whether a value is converted without being asked to: numbers to wider ones, text to dates and times."""
    if source.base in NUMBERS and target.base in NUMBERS:
        return NUMBERS.index(source.base) <= NUMBERS.index(target.base)
    times = (SqlBaseType.DATE, SqlBaseType.TIME, SqlBaseType.TIMESTAMP)
    return source == target or (source.base is SqlBaseType.STRING and target.base in times)


def _rank(signature: Signature) -> tuple[bool, int, int]:
    generic = sum(is_generic(parameter.accepts) for parameter in signature.parameters)
    return (not signature.variadic, len(signature.parameters), -generic)


def _texts(arguments: Sequence[Argument]) -> str:
    return f"({', '.join(argument_text(argument) for argument in arguments)})"


def _with_alternatives(message: str, name: str, overloads: Sequence[HasSignature]) -> str:
    alternatives = "\n".join(f"{name}{one.signature}" for one in overloads)
    return (
        f"{message}\nValid alternatives are:\n{alternatives}\n"
        "For detailed information on a function run: DESCRIBE FUNCTION <Function-Name>;"
    )


__all__ = [
    "NUMBERS",
    "Argument",
    "LambdaArgument",
    "UnitArgument",
    "accepts",
    "argument_text",
    "choose",
    "fits",
    "implicitly_castable",
    "spread",
    "spread_places",
]

"""The signature of a function: what it takes, with generic types, and what it gives.

Signatures are written as text, ``(array ARRAY<T>, value T) BOOLEAN``: a single capital letter is a type that has to be
the same wherever it stands, ``DECIMAL`` is a decimal of any size, ``STRUCT`` a struct of any fields, ``ANY`` anything,
``(K, V) => R`` a lambda, ``INTERVALUNIT`` a unit of time, and ``...`` behind a type says that it may repeat.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from headrace.sql.types import ARRAY, INTEGER, MAP, PLAIN_TYPES, STRING, SqlType

_TOKEN = re.compile(r"\s*(=>|\.\.\.|\w+|[(),<>])")


@dataclass(frozen=True, slots=True)
class Exactly:
    """One type without parameters."""

    type: SqlType

    def __str__(self) -> str:
        return "INT" if self.type == INTEGER else "VARCHAR" if self.type == STRING else str(self.type)


@dataclass(frozen=True, slots=True)
class AnyDecimal:
    """A decimal of any size."""

    def __str__(self) -> str:
        return "DECIMAL"


@dataclass(frozen=True, slots=True)
class AnyStruct:
    """A struct with any fields."""

    def __str__(self) -> str:
        return "STRUCT"


@dataclass(frozen=True, slots=True)
class Anything:
    """A value of any type, unrelated to those of other arguments."""

    def __str__(self) -> str:
        return "ANY"


@dataclass(frozen=True, slots=True)
class Generic:
    """A type that is the same wherever this name stands in the signature."""

    name: str

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True, slots=True)
class ArrayOf:
    """An array."""

    item: Accepted

    def __str__(self) -> str:
        return f"ARRAY<{self.item}>"


@dataclass(frozen=True, slots=True)
class MapOf:
    """A map."""

    key: Accepted
    value: Accepted

    def __str__(self) -> str:
        return f"MAP<{self.key}, {self.value}>"


@dataclass(frozen=True, slots=True)
class LambdaOf:
    """A lambda with inputs and a result."""

    inputs: tuple[Accepted, ...]
    result: Accepted

    def __str__(self) -> str:
        inputs = ", ".join(str(one) for one in self.inputs)
        return f"({inputs}) => {self.result}" if len(self.inputs) > 1 else f"{inputs} => {self.result}"


@dataclass(frozen=True, slots=True)
class Unit:
    """A unit of time."""

    def __str__(self) -> str:
        return "INTERVALUNIT"


Accepted = Exactly | AnyDecimal | AnyStruct | Anything | Generic | ArrayOf | MapOf | LambdaOf | Unit


@dataclass(frozen=True, slots=True)
class Parameter:
    """One parameter of a function; a variadic one takes any number of arguments, also none."""

    name: str
    accepts: Accepted
    variadic: bool = False

    def __str__(self) -> str:
        return f"{self.accepts}{'...' if self.variadic else ''} {self.name}"


@dataclass(frozen=True, slots=True)
class Signature:
    """Parameters and result of one overload. ``returns`` is None where the function computes its type.

    >>> str(signature("(array ARRAY<T>, values T...) BOOLEAN"))
    '(ARRAY<T> array, T... values)'
    """

    parameters: tuple[Parameter, ...]
    returns: Accepted

    @property
    def variadic(self) -> bool:
        """Whether one of the parameters may repeat."""
        return any(parameter.variadic for parameter in self.parameters)

    def __str__(self) -> str:
        return f"({', '.join(str(parameter) for parameter in self.parameters)})"


def signature(text: str) -> Signature:
    """Returns the signature that the text describes."""
    reader = _Reader(text)
    reader.take("(")
    parameters: list[Parameter] = []
    while not reader.has(")"):
        if parameters:
            reader.take(",")
        name = reader.next()
        accepted = reader.accepted()
        parameters.append(Parameter(name, accepted, reader.has("...") and bool(reader.next())))
    reader.take(")")
    return Signature(tuple(parameters), reader.accepted())


def is_generic(accepted: Accepted) -> bool:
    """Whether a generic type is part of it."""
    if isinstance(accepted, Generic | Anything):
        return True
    if isinstance(accepted, ArrayOf):
        return is_generic(accepted.item)
    if isinstance(accepted, MapOf):
        return is_generic(accepted.key) or is_generic(accepted.value)
    return isinstance(accepted, LambdaOf) and any(map(is_generic, (*accepted.inputs, accepted.result)))


def resolved(accepted: Accepted, generics: dict[str, SqlType]) -> SqlType | None:
    """Returns the type with generic types filled in, or None where one of them is unknown."""
    if isinstance(accepted, Exactly):
        return accepted.type
    if isinstance(accepted, Generic):
        return generics.get(accepted.name)
    if isinstance(accepted, ArrayOf):
        item = resolved(accepted.item, generics)
        return None if item is None else ARRAY(item)
    if isinstance(accepted, MapOf):
        key, value = resolved(accepted.key, generics), resolved(accepted.value, generics)
        return None if key is None or value is None else MAP(key, value)
    return None


class _Reader:
    def __init__(self, text: str) -> None:
        self.tokens = _TOKEN.findall(text)
        self.index = 0

    def has(self, token: str) -> bool:
        return self.index < len(self.tokens) and self.tokens[self.index] == token

    def next(self) -> str:
        self.index += 1
        return str(self.tokens[self.index - 1])

    def take(self, token: str) -> None:
        if not self.has(token):
            message = f"signature {' '.join(self.tokens)!r}: {token!r} expected as part {self.index + 1}"
            raise ValueError(message)
        self.index += 1

    def accepted(self) -> Accepted:
        first = self._one()
        if self.has("=>"):
            self.next()
            return LambdaOf(first if isinstance(first, tuple) else (first,), self.accepted())
        if isinstance(first, tuple):
            message = f"signature {' '.join(self.tokens)!r}: '=>' expected behind a list of inputs"
            raise ValueError(message)
        return first

    def _one(self) -> Accepted | tuple[Accepted, ...]:
        word = self.next()
        if word == "(":
            inputs = [self.accepted()]
            while self.has(","):
                self.next()
                inputs.append(self.accepted())
            self.take(")")
            return tuple(inputs)
        if word in ("ARRAY", "MAP"):
            self.take("<")
            first = self.accepted()
            if word == "ARRAY":
                self.take(">")
                return ArrayOf(first)
            self.take(",")
            second = self.accepted()
            self.take(">")
            return MapOf(first, second)
        if word in PLAIN_TYPES:
            return Exactly(PLAIN_TYPES[word])
        named: dict[str, Accepted] = {
            "DECIMAL": AnyDecimal(),
            "STRUCT": AnyStruct(),
            "ANY": Anything(),
            "INTERVALUNIT": Unit(),
        }
        return named.get(word) or Generic(word)

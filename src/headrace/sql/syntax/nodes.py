"""Expressions as values: what the parser makes and the compiler reads. Names are already folded to upper case."""

from __future__ import annotations

from dataclasses import dataclass, field
from decimal import Decimal

from headrace.sql.errors import Position
from headrace.sql.types import SqlType


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """Base of all nodes. Two nodes are equal if they mean the same, wherever they were written."""

    position: Position | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Literal(Node):
    """A constant: ``int`` is INTEGER or BIGINT by size, ``float`` DOUBLE (with an exponent), ``Decimal`` DECIMAL."""

    value: bool | int | float | Decimal | str | None


@dataclass(frozen=True, slots=True)
class ColumnReference(Node):
    """``name``, or ``source.name``."""

    name: str
    source: str | None = None


@dataclass(frozen=True, slots=True)
class FieldAccess(Node):
    """``base->name``."""

    base: Expression
    name: str


@dataclass(frozen=True, slots=True)
class Subscript(Node):
    """``base[index]`` of an array (from 1, negative from the end) or a map."""

    base: Expression
    index: Expression


@dataclass(frozen=True, slots=True)
class Unary(Node):
    """``-x``, ``+x`` or ``NOT x``."""

    operator: str
    operand: Expression


@dataclass(frozen=True, slots=True)
class Binary(Node):
    """Arithmetic ``+ - * / %`` and ``||`` (written as ``+``)."""

    operator: str
    left: Expression
    right: Expression


@dataclass(frozen=True, slots=True)
class Comparison(Node):
    """``= <> < <= > >=``, ``IS DISTINCT FROM``, ``IS NOT DISTINCT FROM``."""

    operator: str
    left: Expression
    right: Expression


@dataclass(frozen=True, slots=True)
class Logical(Node):
    """``AND`` or ``OR``."""

    operator: str
    left: Expression
    right: Expression


@dataclass(frozen=True, slots=True)
class IsNull(Node):
    """``x IS NULL``, ``x IS NOT NULL``."""

    operand: Expression
    negated: bool = False


@dataclass(frozen=True, slots=True)
class Between(Node):
    """``x [NOT] BETWEEN low AND high``."""

    operand: Expression
    low: Expression
    high: Expression
    negated: bool = False


@dataclass(frozen=True, slots=True)
class InList(Node):
    """``x [NOT] IN (…)``."""

    operand: Expression
    items: tuple[Expression, ...]
    negated: bool = False


@dataclass(frozen=True, slots=True)
class Like(Node):
    """``x [NOT] LIKE pattern [ESCAPE c]``."""

    operand: Expression
    pattern: Expression
    escape: str | None = None
    negated: bool = False


@dataclass(frozen=True, slots=True)
class When(Node):
    """One branch of a CASE."""

    condition: Expression
    result: Expression


@dataclass(frozen=True, slots=True)
class Case(Node):
    """``CASE [operand] WHEN … THEN … [ELSE …] END``: with an operand each condition is compared with it."""

    operand: Expression | None
    branches: tuple[When, ...]
    default: Expression | None


@dataclass(frozen=True, slots=True)
class TypeName(Node):
    """A type as written: complete, or the name of a type made by ``CREATE TYPE``, alone or inside others.

    ``type`` is set for types without custom names in them; else ``text`` has to be resolved with the catalogue.
    """

    text: str
    type: SqlType | None


@dataclass(frozen=True, slots=True)
class Cast(Node):
    """``CAST(x AS type)``."""

    operand: Expression
    target: TypeName


@dataclass(frozen=True, slots=True)
class Call(Node):
    """``NAME(arguments)``; ``COUNT(*)`` has no arguments."""

    name: str
    arguments: tuple[Expression, ...]
    starred: bool = field(default=False, compare=False, repr=False)
    """Whether it was written with ``*``; that is to be seen in messages only."""


@dataclass(frozen=True, slots=True)
class MakeArray(Node):
    """``ARRAY[…]``."""

    items: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class MakeMap(Node):
    """``MAP(key := value, …)``."""

    entries: tuple[tuple[Expression, Expression], ...]


@dataclass(frozen=True, slots=True)
class MakeStruct(Node):
    """``STRUCT(name := value, …)``."""

    fields: tuple[tuple[str, Expression], ...]


@dataclass(frozen=True, slots=True)
class Lambda(Node):
    """``x => body``, ``(x, y) => body``."""

    parameters: tuple[str, ...]
    body: Expression


@dataclass(frozen=True, slots=True)
class LambdaVariable(Node):
    """A parameter of a lambda, inside its body."""

    name: str


@dataclass(frozen=True, slots=True)
class IntervalUnit(Node):
    """A unit of time as an argument: ``TIMESTAMPADD(HOURS, 1, ts)``. Upper case, plural: ``HOURS``."""

    name: str


@dataclass(frozen=True, slots=True)
class AtTimeZone(Node):
    """``x AT TIME ZONE 'zone'``."""

    operand: Expression
    zone: Expression


Expression = (
    Literal
    | ColumnReference
    | FieldAccess
    | Subscript
    | Unary
    | Binary
    | Comparison
    | Logical
    | IsNull
    | Between
    | InList
    | Like
    | Case
    | Cast
    | Call
    | MakeArray
    | MakeMap
    | MakeStruct
    | Lambda
    | LambdaVariable
    | IntervalUnit
    | AtTimeZone
)

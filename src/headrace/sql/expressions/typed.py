"""Typed expression: a SQL type, and Python source over a row."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

from headrace.sql.syntax.nodes import ColumnReference
from headrace.sql.types import SqlType

_REPEATABLE = re.compile(r"\w+|row\[\d+\]|None|True|False")


class _NotLiteral:
    def __repr__(self) -> str:
        return "NOT_LITERAL"


NOT_LITERAL = _NotLiteral()
"""The ``literal`` of an expression that is none."""


@dataclass(frozen=True, slots=True)
class Slot:
    """Place of a column's value at run time: a type, and Python source such as ``row[3]``."""

    type: SqlType
    code: str


class Scope(Protocol):
    """Scope of an expression: the columns that its names mean."""

    def slot(self, reference: ColumnReference) -> Slot:
        """Returns the place of the column; raises ``SqlStatementError`` for a name that means nothing here."""


@dataclass(frozen=True, slots=True)
class TypedExpression:
    """An expression with its type, as Python source over the variable ``row``, a list of column values."""

    type: SqlType | None
    """None for a bare NULL, which has no type of its own."""
    code: str
    constants: Mapping[str, object] = field(default_factory=dict)
    """What the names in the code stand for."""
    can_fail: bool = False
    """Whether evaluating it may raise; a failed column is NULL and is reported."""
    nullable: bool = True
    literal: object = NOT_LITERAL
    """The value, where it is known without a row."""

    @property
    def is_literal(self) -> bool:
        """Whether the value is known without a row."""
        return self.literal is not NOT_LITERAL

    @property
    def repeatable(self) -> bool:
        """Whether the code may stand several times in a row function: it is a name or a place in the row."""
        return _REPEATABLE.fullmatch(self.code) is not None

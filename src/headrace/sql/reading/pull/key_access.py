"""Choice of rows by a pull query: the keys, or the range of keys, that its condition selects."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from headrace.sql.catalog import SourceDefinition
from headrace.sql.errors import SqlError, SqlStatementError
from headrace.sql.expressions.literals import constant
from headrace.sql.functions.registry import FunctionRegistry
from headrace.sql.reading.pull.conditions import (
    RANGES,
    Conjunction,
    TooManyAlternatives,
    alternatives,
    compared_column,
    is_constant,
)
from headrace.sql.syntax.formatter import expression_text, name_text
from headrace.sql.syntax.nodes import Comparison, Expression, Literal
from headrace.sql.types import BIGINT, INTEGER, STRING
from headrace.sql.types.schema import WINDOW_BOUNDS, Column

Bounds = tuple[Any, Any]
"""The lowest and the highest value, both included; None is an open end."""

_OPEN: Bounds = (None, None)


@dataclass(frozen=True, slots=True)
class KeyRows:
    """The rows of one key; of a windowed table those whose windows start within bounds."""

    key: tuple[Any, ...]
    starts: Bounds = _OPEN


@dataclass(frozen=True, slots=True)
class RangeRows:
    """The rows whose only key column is within bounds."""

    bounds: Bounds


Access = tuple[KeyRows | RangeRows, ...]


class KeyConditions:
    """Finds keys in the conditions of one table; names of columns are those of the table."""

    def __init__(self, table: SourceDefinition, functions: FunctionRegistry, settings: Mapping[str, object]) -> None:
        self._table = table
        self._functions = functions
        self._settings = settings
        self._keys = {column.name: column for column in table.schema.key}

    def access(self, condition: Expression | None) -> Access | None:
        """Returns where rows that meet the condition can be; None if they can be anywhere."""
        if condition is None or not self._bytes_are_known():
            return None
        try:
            found = [self._choose_access(each) for each in alternatives(condition)]
        except TooManyAlternatives:
            return None
        usable = [each for each in found if each is not None]
        return tuple(dict.fromkeys(usable)) if len(usable) == len(found) else None

    def _bytes_are_known(self) -> bool:
        """Whether equal keys have equal bytes: who else writes to a topic may write the same JSON in many ways."""
        return self._table.key_format == "KAFKA" or self._table.is_derived

    def _choose_access(self, conditions: Conjunction) -> KeyRows | RangeRows | None:
        key: dict[str, Any] = {}
        for comparison in conditions:
            found = self._key_comparison(comparison)
            if found is not None and found[1] == "=":
                key.setdefault(found[0].name, self.key_value(found[0], found[2], comparison))
        if self._keys and len(key) == len(self._keys):
            return KeyRows(tuple(map(_hashable, (key[name] for name in self._keys))), self._window_starts(conditions))
        return self._key_range(conditions)

    def check_values(self, conditions: Conjunction) -> None:
        """Raises if a key column is compared with what is no value of its type, or with NULL."""
        for condition in conditions:
            found = self._key_comparison(condition)
            if found is not None:
                self.key_value(found[0], found[2], condition)

    def _key_comparison(self, condition: Expression) -> tuple[Column, str, Expression] | None:
        if not isinstance(condition, Comparison):
            return None
        compared = compared_column(condition)
        if compared is None or compared[0].name not in self._keys or not is_constant(compared[2]):
            return None
        return self._keys[compared[0].name], compared[1], compared[2]

    def key_value(self, column: Column, node: Expression, comparison: Expression) -> Any:
        """Returns the value that a key column is compared with, as a value of the column's type."""
        try:
            value = constant(node, column.type, self._functions, column=column.name, settings=self._settings)
        except SqlError as error:
            if isinstance(error.__cause__, TimeoutError):
                raise
            message = (
                f"'{literal_text(node)}' can not be converted to the type of the key column: "
                f"{name_text(column.name)} {column.type} KEY"
            )
            raise SqlStatementError(message, position=node.position) from error
        if value is None:
            message = f"Primary key columns can not be NULL: {expression_text(comparison)}"
            raise SqlStatementError(message, position=node.position)
        return value

    def _key_range(self, conditions: Conjunction) -> RangeRows | None:
        """Returns a range of keys, where the order of their bytes is known."""
        table = self._table
        if len(self._keys) != 1 or table.window is not None or table.key_format != "KAFKA":
            return None
        [column] = self._keys.values()
        if column.type not in (STRING, INTEGER, BIGINT):
            return None
        low, high = _OPEN
        for condition in conditions:
            for operator, node in self._range_limits(condition):
                value = self._limit_value(column, node)
                if value is None:
                    continue
                if operator in (">", ">="):
                    low = value if low is None else max(low, value)
                else:
                    high = value if high is None else min(high, value)
        return None if (low, high) == _OPEN else RangeRows((low, high))

    def _range_limits(self, condition: Expression) -> list[tuple[str, Expression]]:
        found = self._key_comparison(condition)
        if found is not None and found[1] in RANGES:
            return [(found[1], found[2])]
        return []

    def _limit_value(self, column: Column, node: Expression) -> Any:
        # A limit that is no value of the column, such as 1.5 for an integer, is left to the condition itself.
        with suppress(SqlError):
            return constant(node, column.type, self._functions, column=column.name, settings=self._settings)
        return None

    def _window_starts(self, conditions: Conjunction) -> Bounds:
        """Returns what the conditions say about the start of windows that have a size."""
        window = self._table.window
        if window is None or window.size is None:
            return _OPEN
        size_ms = window.size // timedelta(milliseconds=1)
        low: int | None = None
        high: int | None = None
        for condition in conditions:
            compared = compared_column(condition) if isinstance(condition, Comparison) else None
            if compared is None or compared[0].name not in WINDOW_BOUNDS or not is_constant(compared[2]):
                continue
            value: int | None = None
            with suppress(SqlError):
                value = constant(compared[2], BIGINT, self._functions, settings=self._settings)
            if value is None:
                continue
            start = value - size_ms if compared[0].name == "WINDOWEND" else value
            if compared[1] in (">", ">=", "="):
                low = start if low is None else max(low, start)
            if compared[1] in ("<", "<=", "="):
                high = start if high is None else min(high, start)
        return low, high


def literal_text(node: Expression) -> str:
    """Returns a literal as it is printed, without quotes; any other expression as it is written."""
    if not isinstance(node, Literal) or not isinstance(node.value, str):
        return expression_text(node)
    return node.value


def _hashable(value: Any) -> Any:
    return _Unhashable(value) if isinstance(value, list | dict) else value


class _Unhashable:
    """Holds a value of a key that is a list or a dict; equal ones are not recognised as such."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value


def plain_key(key: tuple[Any, ...]) -> tuple[Any, ...]:
    """Returns the values of a key as serdes take them."""
    return tuple(each.value if isinstance(each, _Unhashable) else each for each in key)

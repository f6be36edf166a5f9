"""ksqlDB's rules for the condition of a pull query, with and without table scans."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NoReturn

from headrace.sql.catalog import SourceDefinition
from headrace.sql.errors import SqlError, SqlStatementError
from headrace.sql.expressions.comparisons import OPERATOR_NAMES
from headrace.sql.expressions.literals import constant
from headrace.sql.functions.registry import FunctionRegistry
from headrace.sql.reading.pull.conditions import (
    RANGES,
    Conjunction,
    TooManyAlternatives,
    alternatives,
    compared_column,
    is_constant,
    shown,
)
from headrace.sql.reading.pull.key_access import KeyConditions
from headrace.sql.syntax.formatter import expression_text
from headrace.sql.syntax.nodes import ColumnReference, Comparison, Expression, Like, Literal
from headrace.sql.types import BIGINT, BYTES, STRING
from headrace.sql.types.schema import WINDOW_BOUNDS, Schema

TABLE_SCANS = "ksql.query.pull.table.scan.enabled"
RANGE_SCANS = "ksql.query.pull.range.scan.enabled"
MORE = " See https://cnfl.io/queries for more info.\n"
HELP = f"{MORE}Add EMIT CHANGES if you intended to issue a push query."
_COMBINED = "cannot be combined with other comparisons such as an IN predicate"
_NEEDS_SCAN = f"Query requires table scan to be enabled. Table scans can be enabled by setting {TABLE_SCANS}=true"
_SIDES = {"=": "EQUAL", "<": "LESS_THAN", "<=": "LESS_THAN", ">": "GREATER_THAN", ">=": "GREATER_THAN"}
_BOUND_OPERATORS = frozenset(_SIDES)


def is_on(settings: Mapping[str, object], name: str, *, default: bool = True) -> bool:
    """Whether a setting is true."""
    return str(settings.get(name, default)).lower() == "true"


def check_like(condition: Expression, schema: Schema) -> None:
    """Raises if a column that is no text is compared with a pattern, or one with a pattern that is no text."""
    if isinstance(condition, Like) and isinstance(condition.operand, ColumnReference):
        column = schema.find(condition.operand.name)
        if column is not None and column.type != STRING:
            message = f"The column type for Like condition must be VARCHAR. The column type is {column.type}"
            raise SqlStatementError(message, position=condition.position)
        pattern = condition.pattern
        if isinstance(pattern, Literal) and not isinstance(pattern.value, str | None):
            message = f"Like condition on non-string pattern {expression_text(pattern)}; write it in quotes"
            raise SqlStatementError(message, position=pattern.position or condition.position)


def check_condition(
    condition: Expression | None,
    table: SourceDefinition,
    functions: FunctionRegistry,
    settings: Mapping[str, object],
) -> None:
    """Raises unless the condition has the form that ksqlDB demands, with scans of tables and without them."""
    scans = is_on(settings, TABLE_SCANS)
    if condition is None:
        if not scans:
            _refuse("Missing WHERE clause", table)
        return
    try:
        found = alternatives(condition)
    except TooManyAlternatives:
        if not scans:
            raise SqlStatementError(_NEEDS_SCAN) from None
        return
    has_range = False
    for each in found:
        checked = _Alternative(each, table, scans=scans)
        if checked.needs_scan:
            return
        has_range |= checked.has_range
    keys = KeyConditions(table, functions, settings)
    for each in found:
        keys.check_values(each)
        _check_bounds(each, table, functions, settings)
    if not scans and has_range and not _by_index(found, table, settings):
        raise SqlStatementError(_NEEDS_SCAN)


def _by_index(found: list[Conjunction], table: SourceDefinition, settings: Mapping[str, object]) -> bool:
    return (
        len(found) == 1
        and is_on(settings, RANGE_SCANS)
        and table.window is None
        and [column.type for column in table.schema.key] in ([STRING], [BYTES])
    )


class _Alternative:
    """Conditions that all have to hold, checked."""

    def __init__(self, conditions: Conjunction, table: SourceDefinition, *, scans: bool) -> None:
        self._table = table
        self._scans = scans
        self._keys = [column.name for column in table.schema.key]
        self._seen: set[str] = set()
        self.needs_scan = False
        self.has_range = False
        """Whether it has a range of a key."""
        for condition in conditions:
            self._check(condition)
        if self.needs_scan:
            return
        if not self._seen:
            self._scan_or_refuse(f"WHERE clause missing key column for disjunct: {shown(conditions)}")
        elif len(self._seen) != len(self._keys):
            names = ", ".join(f"`{name}`" for name in self._keys if name in self._seen)
            self._scan_or_refuse(
                f"Multi-column sources must specify every key in the WHERE clause. Specified: [{names}] "
                f"Expected: [{Schema(table.schema.key)}]"
            )

    def _scan_or_refuse(self, message: str) -> None:
        if not self._scans:
            _refuse(message, self._table)
        self.needs_scan = True

    def _check(self, condition: Expression) -> None:
        if isinstance(condition, Like):
            if not isinstance(condition.operand, ColumnReference):
                self._scan_or_refuse("Like condition must be between strings")
            return
        if not isinstance(condition, Comparison):
            _refuse(f"Unsupported expression in WHERE clause: {expression_text(condition)}", self._table)
        compared = compared_column(condition)
        if compared is None:
            self._scan_or_refuse("A comparison must directly reference a key column")
        elif not is_constant(compared[2]):
            self._scan_or_refuse("A comparison must be between a key column and a resolvable expression")
        else:
            self._check_column(condition, compared[0].name, compared[1])

    def _check_column(self, condition: Comparison, name: str, operator: str) -> None:
        if name in WINDOW_BOUNDS:
            if operator not in _BOUND_OPERATORS:
                _refuse(f"Unsupported `{name}` bounds: {OPERATOR_NAMES[operator]}", self._table)
            return
        if name not in self._keys:
            return
        if operator != "=" and operator not in RANGES:
            self._scan_or_refuse(f"Bound on key columns '[{Schema(self._table.schema.key)}]' must currently be '='")
        if name in self._seen and not self._scans:
            _refuse(f"A comparison condition on the key column {_COMBINED}", self._table)
        self._seen.add(name)
        self.has_range |= operator in RANGES


def _check_bounds(
    conditions: Conjunction, table: SourceDefinition, functions: FunctionRegistry, settings: Mapping[str, object]
) -> None:
    """Raises if a bound of the windows is no time, or is limited twice in the same way."""
    limits: set[tuple[str, str]] = set()
    for condition in conditions:
        compared = compared_column(condition) if isinstance(condition, Comparison) else None
        if compared is None or compared[0].name not in WINDOW_BOUNDS:
            continue
        name, side = compared[0].name, _SIDES[compared[1]]
        if not _is_time(compared[2], functions, settings):
            _refuse("Window bounds must resolve to an INT, BIGINT, or STRING containing a datetime", table)
        others = {one for of, one in limits if of == name}
        if side not in others and others and "EQUAL" in {*others, side}:
            _refuse(f"`{expression_text(condition)}` cannot be combined with other `{name}` bounds", table)
        if side in others:
            _refuse(f"Duplicate `{name}` bounds on: {side}", table)
        limits.add((name, side))


def _is_time(node: Expression, functions: FunctionRegistry, settings: Mapping[str, object]) -> bool:
    if isinstance(node, Literal) and isinstance(node.value, str):
        # It has been read as a timestamp already.
        return True
    try:
        constant(node, BIGINT, functions, settings=settings)
    except SqlError:
        return False
    return True


def _refuse(message: str, table: SourceDefinition) -> NoReturn:
    whole = f"{message}. {_remedy(table)}"
    raise SqlStatementError(whole)


def _remedy(table: SourceDefinition) -> str:
    lines = [
        f"{HELP.strip()}",
        "Pull queries require a WHERE clause that:",
        " - includes a key equality expression, e.g. `SELECT * FROM X WHERE <key-column> = Y;`.",
        " - in the case of a multi-column key, is a conjunction of equality expressions that cover all key columns.",
        " - to support range expressions, e.g. `SELECT * FROM X WHERE <key-column> < Y;`, range scans need to be "
        f"enabled by setting {RANGE_SCANS}=true",
    ]
    if table.window is not None:
        lines.append(" - (optionally) limits the time bounds of the windowed table: WINDOWSTART and WINDOWEND.")
    lines += ["", f"If more flexible queries are needed, table scans can be enabled by setting {TABLE_SCANS}=true."]
    return "\n".join(lines)

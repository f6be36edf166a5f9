"""What ksqlDB demands of the condition of a pull query where scans of tables are switched off."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NoReturn

from headrace.sql.catalog import SourceDefinition
from headrace.sql.errors import SqlStatementError
from headrace.sql.pull.conditions import (
    RANGES,
    Conjunction,
    TooManyAlternatives,
    alternatives,
    compared_column,
    is_constant,
    shown,
)
from headrace.sql.schema import WINDOW_BOUNDS, Schema
from headrace.sql.syntax.nodes import ColumnReference, Comparison, Expression, Like
from headrace.sql.syntax.writing import expression_text
from headrace.sql.types import STRING

TABLE_SCANS = "ksql.query.pull.table.scan.enabled"
RANGE_SCANS = "ksql.query.pull.range.scan.enabled"
MORE = " See https://cnfl.io/queries for more info.\n"
HELP = f"{MORE}Add EMIT CHANGES if you intended to issue a push query."
_COMBINED = "cannot be combined with other comparisons such as an IN predicate"
_NEEDS_SCAN = "Query requires table scan to be enabled. "


def is_on(settings: Mapping[str, object], name: str, *, default: bool = True) -> bool:
    """Whether a setting is true."""
    return str(settings.get(name, default)).lower() == "true"


def check_like(condition: Expression, schema: Schema) -> None:
    """Raises if a column that is no text is compared with a pattern."""
    if isinstance(condition, Like) and isinstance(condition.operand, ColumnReference):
        column = schema.find(condition.operand.name)
        if column is not None and column.type != STRING:
            message = f"The column type for Like condition must be VARCHAR. The column type is {column.type}"
            raise SqlStatementError(message, position=condition.position)


def check_without_scans(condition: Expression | None, table: SourceDefinition, settings: Mapping[str, object]) -> None:
    """Raises unless the rows that meet a condition can be found by their keys."""
    if condition is None:
        _refuse("Missing WHERE clause", table)
    try:
        found = alternatives(condition)
    except TooManyAlternatives:
        raise SqlStatementError(_NEEDS_SCAN + _remedy(table)) from None
    with_ranges = [_check(each, table) for each in found]
    if not any(with_ranges):
        return
    by_index = (
        len(found) == 1
        and is_on(settings, RANGE_SCANS)
        and table.window is None
        and [column.type for column in table.schema.key] == [STRING]
    )
    if not by_index:
        raise SqlStatementError(_NEEDS_SCAN + _remedy(table))


def _check(conditions: Conjunction, table: SourceDefinition) -> bool:
    """Checks one alternative; returns whether it has a range of a key."""
    keys = {column.name for column in table.schema.key}
    seen: set[str] = set()
    has_range = False
    for condition in conditions:
        if isinstance(condition, Like):
            _refuse("Like condition must be between strings", table)
        if not isinstance(condition, Comparison):
            _refuse(f"Unsupported expression in WHERE clause: {expression_text(condition)}", table)
        compared = compared_column(condition)
        if compared is None:
            _refuse("A comparison must directly reference a key column", table)
        column, operator, other = compared
        if column.name in WINDOW_BOUNDS or column.name not in keys:
            continue
        if not is_constant(other):
            _refuse("A comparison must be between a key column and a resolvable expression", table)
        if operator != "=" and operator not in RANGES:
            shown_key = ", ".join(str(Schema((each,))) for each in table.schema.key)
            _refuse(f"Bound on key columns '[{shown_key}]' must currently be '='", table)
        if column.name in seen:
            what = "An equality" if operator == "=" else "A comparison"
            _refuse(f"{what} condition on the key column {_COMBINED}", table)
        seen.add(column.name)
        has_range |= operator in RANGES
    if not seen:
        _refuse(f"WHERE clause missing key column for disjunct: {shown(conditions)}", table)
    if seen != keys:
        names = ", ".join(f"`{name}`" for name in sorted(seen))
        message = f"Multi-column sources must specify every key in the WHERE clause. Specified: [{names}]"
        _refuse(message, table)
    return has_range


def _refuse(message: str, table: SourceDefinition) -> NoReturn:
    whole = f"{message}. {_remedy(table)}"
    raise SqlStatementError(whole)


def _remedy(table: SourceDefinition) -> str:
    lines = [
        f"{HELP.strip()}",
        "Pull queries require a WHERE clause that:",
        " - includes a key equality expression, e.g. `SELECT * FROM X WHERE <key-column> = Y;`.",
        " - in the case of a multi-column key, is a conjunction of equality expressions that cover all key columns.",
    ]
    if table.window is not None:
        lines.append(" - (optionally) limits the time bounds of the windowed table: WINDOWSTART and WINDOWEND.")
    lines += ["", f"If more flexible queries are needed, table scans can be enabled by setting {TABLE_SCANS}=true."]
    return "\n".join(lines)

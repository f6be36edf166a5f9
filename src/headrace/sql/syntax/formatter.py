"""Expressions and queries as text, in the form in which messages and EXPLAIN show them."""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal
from functools import singledispatch

from headrace.sql.syntax import nodes
from headrace.sql.syntax.statements import (
    CreateAsSelect,
    Distinct,
    InsertInto,
    Join,
    Properties,
    Query,
    SelectAll,
    SelectFields,
    SelectItem,
    SelectQuery,
    Source,
    Statement,
    Window,
    Within,
)
from headrace.sql.syntax.token_reader import RESERVED
from headrace.sql.types import quoted


def name_text(name: str) -> str:
    """Returns the name as it has to be written to mean the same.

    >>> name_text("A"), name_text("a"), name_text("FROM")
    ('A', '`a`', '`FROM`')
    """
    return f"`{name}`" if name in RESERVED else quoted(name)


def number_text(value: float | Decimal) -> str:
    """Returns a number with a fraction as Java writes it.

    >>> number_text(1e10), number_text(0.5), number_text(Decimal("1.50"))
    ('1.0E10', '0.5', '1.50')
    """
    if isinstance(value, Decimal):
        return f"{value:f}"
    if value != value or value in (float("inf"), float("-inf")):
        return {"inf": "Infinity", "-inf": "-Infinity"}.get(str(value), "NaN")
    if value == 0 or 1e-3 <= abs(value) < 1e7:
        text = f"{Decimal(repr(value)):f}"
        return text if "." in text else text + ".0"
    sign, digits, exponent = Decimal(repr(value)).as_tuple()
    assert isinstance(exponent, int)  # infinities were handled above
    written = "".join(map(str, digits)).rstrip("0") or "0"
    power = exponent + len(digits) - 1
    return f"{'-' if sign else ''}{written[0]}.{written[1:] or '0'}E{power}"


@singledispatch
def expression_text(node: nodes.Node) -> str:
    """Returns the expression as text; what an operator joins is in parentheses.

    >>> from headrace.sql.syntax.parser import parse_expression
    >>> expression_text(parse_expression("s.a + 1 > abs(b) and not c is null"))
    '(((S.A + 1) > ABS(B)) AND (NOT (C IS NULL)))'
    """
    message = f"No text for {type(node).__name__}"
    raise TypeError(message)


@expression_text.register
def _(node: nodes.Literal) -> str:
    match node.value:
        case None:
            return "null"
        case bool():
            return "true" if node.value else "false"
        case str():
            return "'" + node.value.replace("'", "''") + "'"
        case int():
            return str(node.value)
        case _:
            return number_text(node.value)


@expression_text.register
def _(node: nodes.ColumnReference) -> str:
    return name_text(node.name) if node.source is None else f"{name_text(node.source)}.{name_text(node.name)}"


@expression_text.register
def _(node: nodes.FieldAccess) -> str:
    return f"{expression_text(node.base)}->{name_text(node.name)}"


@expression_text.register
def _(node: nodes.Subscript) -> str:
    return f"{expression_text(node.base)}[{expression_text(node.index)}]"


@expression_text.register
def _(node: nodes.Unary) -> str:
    if node.operator == "NOT":
        return f"(NOT {expression_text(node.operand)})"
    operand = expression_text(node.operand)
    return f"{node.operator} {operand}" if operand.startswith("-") else f"{node.operator}{operand}"


@expression_text.register
def _(node: nodes.Binary) -> str:
    return _join_operands(node.left, node.operator, node.right)


@expression_text.register
def _(node: nodes.Comparison) -> str:
    return _join_operands(node.left, node.operator, node.right)


@expression_text.register
def _(node: nodes.Logical) -> str:
    return _join_operands(node.left, node.operator, node.right)


def _join_operands(left: nodes.Expression, operator: str, right: nodes.Expression) -> str:
    return f"({expression_text(left)} {operator} {expression_text(right)})"


def _not(*, negated: bool) -> str:
    return "NOT " if negated else ""


@expression_text.register
def _(node: nodes.IsNull) -> str:
    return f"({expression_text(node.operand)} IS {_not(negated=node.negated)}NULL)"


@expression_text.register
def _(node: nodes.Between) -> str:
    bounds = f"{expression_text(node.low)} AND {expression_text(node.high)}"
    return f"({expression_text(node.operand)} {_not(negated=node.negated)}BETWEEN {bounds})"


@expression_text.register
def _(node: nodes.InList) -> str:
    return f"({expression_text(node.operand)} {_not(negated=node.negated)}IN ({_list_items(node.items)}))"


@expression_text.register
def _(node: nodes.Like) -> str:
    escape = "" if node.escape is None else f" ESCAPE '{node.escape}'"
    operator = f"{_not(negated=node.negated)}LIKE"
    return f"({expression_text(node.operand)} {operator} {expression_text(node.pattern)}{escape})"


@expression_text.register
def _(node: nodes.When) -> str:
    return f"WHEN {expression_text(node.condition)} THEN {expression_text(node.result)}"


@expression_text.register
def _(node: nodes.Case) -> str:
    parts = ["CASE"]
    if node.operand is not None:
        parts.append(expression_text(node.operand))
    parts.extend(expression_text(branch) for branch in node.branches)
    if node.default is not None:
        parts.append(f"ELSE {expression_text(node.default)}")
    return f"({' '.join([*parts, 'END'])})"


@expression_text.register
def _(node: nodes.TypeName) -> str:
    return node.text if node.type is None else str(node.type)


@expression_text.register
def _(node: nodes.Cast) -> str:
    return f"CAST({expression_text(node.operand)} AS {expression_text(node.target)})"


@expression_text.register
def _(node: nodes.Call) -> str:
    return f"{name_text(node.name)}({'*' if node.starred else _list_items(node.arguments)})"


@expression_text.register
def _(node: nodes.MakeArray) -> str:
    return f"ARRAY[{_list_items(node.items)}]"


@expression_text.register
def _(node: nodes.MakeMap) -> str:
    return f"MAP({', '.join(f'{expression_text(key)}:={expression_text(value)}' for key, value in node.entries)})"


@expression_text.register
def _(node: nodes.MakeStruct) -> str:
    return f"STRUCT({', '.join(f'{name_text(name)}:={expression_text(value)}' for name, value in node.fields)})"


@expression_text.register
def _(node: nodes.Lambda) -> str:
    names = ", ".join(map(name_text, node.parameters))
    return f"{names if len(node.parameters) == 1 else f'({names})'} => {expression_text(node.body)}"


@expression_text.register
def _(node: nodes.LambdaVariable) -> str:
    return name_text(node.name)


@expression_text.register
def _(node: nodes.IntervalUnit) -> str:
    return node.name


@expression_text.register
def _(node: nodes.AtTimeZone) -> str:
    return f"{expression_text(node.operand)} AT TIME ZONE {expression_text(node.zone)}"


def _list_items(items: tuple[nodes.Expression, ...]) -> str:
    return ", ".join(map(expression_text, items))


def duration_text(length: timedelta) -> str:
    """Returns the duration with the largest unit that divides it.

    >>> duration_text(timedelta(minutes=90))
    '90 MINUTES'
    """
    milliseconds = length // timedelta(milliseconds=1)
    for unit, size in (("DAYS", 86_400_000), ("HOURS", 3_600_000), ("MINUTES", 60_000), ("SECONDS", 1000)):
        if milliseconds and milliseconds % size == 0:
            return f"{milliseconds // size} {unit}"
    return f"{milliseconds} MILLISECONDS"


def properties_text(properties: Properties) -> str:
    """Returns the properties as they stand behind a name, with a space before them; nothing if there are none."""
    if not properties:
        return ""
    return f" WITH ({', '.join(f'{name}={expression_text(value)}' for name, value in properties)})"


def query_text(query: Query) -> str:
    """Returns a query over several lines."""
    lines = [f"SELECT{_distinct_text(query.distinct)}", ",\n".join(f"  {_select_text(item)}" for item in query.select)]
    lines.append(f"FROM {_source_text(query.source)}")
    lines.extend(_join_text(join) for join in query.joins)
    if query.window is not None:
        lines.append(_window_text(query.window))
    if query.where is not None:
        lines.append(f"WHERE {expression_text(query.where)}")
    if query.group_by:
        lines.append(f"GROUP BY {_grouping_text(query.group_by)}")
    if query.partition_by:
        lines.append(f"PARTITION BY {_grouping_text(query.partition_by)}")
    if query.having is not None:
        lines.append(f"HAVING {expression_text(query.having)}")
    if query.order_by:
        ordering = (f"{expression_text(node)}{' DESC' if descending else ''}" for node, descending in query.order_by)
        lines.append(f"ORDER BY {', '.join(ordering)}")
    if query.emit is not None:
        lines.append(f"EMIT {query.emit}")
    if query.limit is not None:
        lines.append(f"LIMIT {query.limit}")
    if query.offset is not None:
        lines.append(f"OFFSET {query.offset}")
    return "\n".join(lines)


def _distinct_text(distinct: Distinct | None) -> str:
    if distinct is None:
        return ""
    return f" DISTINCT ON ({_list_items(distinct.expressions)}) WITHIN {duration_text(distinct.within)}"


def _grouping_text(items: tuple[nodes.Expression, ...]) -> str:
    return _list_items(items) if len(items) == 1 else f"({_list_items(items)})"


def _select_text(item: SelectItem | SelectAll | SelectFields) -> str:
    match item:
        case SelectAll():
            return "*" if item.source is None else f"{name_text(item.source)}.*"
        case SelectFields():
            return f"{expression_text(item.struct)}->*"
        case _:
            text = expression_text(item.expression)
            return text if item.alias is None else f"{text} {name_text(item.alias)}"


def _source_text(source: Source) -> str:
    return f"{name_text(source.name)} {name_text(source.alias)}"


def _join_text(join: Join) -> str:
    words = {"INNER": "INNER JOIN", "LEFT": "LEFT OUTER JOIN", "RIGHT": "RIGHT OUTER JOIN", "OUTER": "FULL OUTER JOIN"}
    within = "" if join.within is None else f" {_within_text(join.within)}"
    return f"{words[join.kind]} {_source_text(join.source)}{within} ON ({expression_text(join.condition)})"


def _within_text(within: Within) -> str:
    if within.before == within.after:
        size = duration_text(within.before)
    else:
        size = f"({duration_text(within.before)}, {duration_text(within.after)})"
    return f"WITHIN {size}{'' if within.grace is None else f' GRACE PERIOD {duration_text(within.grace)}'}"


def _window_text(window: Window) -> str:
    parts = [f"{'' if window.kind == 'SESSION' else 'SIZE '}{duration_text(window.size)}"]
    if window.advance is not None:
        parts.append(f"ADVANCE BY {duration_text(window.advance)}")
    if window.retention is not None:
        parts.append(f"RETENTION {duration_text(window.retention)}")
    if window.grace is not None:
        parts.append(f"GRACE PERIOD {duration_text(window.grace)}")
    return f"WINDOW {window.kind} ( {', '.join(parts)} )"


def statement_text(statement: Statement) -> str:
    """Returns a statement with a query over several lines; any other as it was written."""
    match statement:
        case CreateAsSelect():
            replacing = "OR REPLACE " if statement.or_replace else ""
            exists = "IF NOT EXISTS " if statement.if_not_exists else ""
            head = f"CREATE {replacing}{statement.kind} {exists}{name_text(statement.name)}"
            return f"{head}{properties_text(statement.properties)} AS {query_text(statement.query)}"
        case InsertInto():
            head = f"INSERT INTO {name_text(statement.target)}{properties_text(statement.properties)}"
            return f"{head} {query_text(statement.query)}"
        case SelectQuery():
            return query_text(statement.query)
        case _:
            return statement.text

"""A condition as alternatives, each of which is a list of conditions that all have to hold."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from headrace.sql.planning.tree import references
from headrace.sql.syntax.formatter import expression_text
from headrace.sql.syntax.nodes import Between, ColumnReference, Comparison, Expression, InList, Like, Logical, Unary

Conjunction = tuple[Expression, ...]

_MOST = 10_000
_MIRRORED = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}
RANGES = frozenset(_MIRRORED)


class TooManyAlternatives(Exception):
    """Writing the condition out would cost more than looking at all rows."""


def alternatives(condition: Expression, *, negated: bool = False) -> list[Conjunction]:
    """Returns the alternatives of a condition, or of its negation.

    ``x IN (…)`` is one for each item, BETWEEN is two conditions, and NOT stands only around what is one condition.

    >>> from headrace.sql.syntax.parser import parse_expression
    >>> [shown(each) for each in alternatives(parse_expression("A IN (1, 2) AND B = 3"))]
    ['((A = 1) AND (B = 3))', '((A = 2) AND (B = 3))']
    >>> [shown(each) for each in alternatives(parse_expression("NOT (A = 1 OR B NOT IN (2, 3))"))]
    ['((NOT (A = 1)) AND (B = 2))', '((NOT (A = 1)) AND (B = 3))']
    """
    match condition:
        case Unary(operator="NOT"):
            return alternatives(condition.operand, negated=not negated)
        case Logical():
            left, right = alternatives(condition.left, negated=negated), alternatives(condition.right, negated=negated)
            if (condition.operator == "OR") is not negated:
                found = left + right
            elif len(left) * len(right) > _MOST:
                raise TooManyAlternatives
            else:
                found = [one + other for one in left for other in right]
        case Between():
            low = Comparison(">=", condition.operand, condition.low, position=condition.position)
            high = Comparison("<=", condition.operand, condition.high, position=condition.position)
            found = [(low, high)] if condition.negated is negated else [(_not(low),), (_not(high),)]
        case InList():
            position = condition.position
            equal = [Comparison("=", condition.operand, item, position=position) for item in condition.items]
            found = [(each,) for each in equal] if condition.negated is negated else [tuple(map(_not, equal))]
        case _:
            found = [(_not(condition) if negated else condition,)]
    if len(found) > _MOST:
        raise TooManyAlternatives
    return found


def _not(condition: Expression) -> Expression:
    if isinstance(condition, Like):
        return replace(condition, negated=not condition.negated)
    return Unary("NOT", condition, position=condition.position)


def conjuncts(condition: Expression | None) -> tuple[Expression, ...]:
    """Returns the conditions that all have to hold.

    >>> from headrace.sql.syntax.parser import parse_expression
    >>> [expression_text(each) for each in conjuncts(parse_expression("A = 1 AND (B = 2 OR C = 3)"))]
    ['(A = 1)', '((B = 2) OR (C = 3))']
    """
    if condition is None:
        return ()
    if isinstance(condition, Logical) and condition.operator == "AND":
        return conjuncts(condition.left) + conjuncts(condition.right)
    return (condition,)


def conjunction(conditions: Iterable[Expression]) -> Expression | None:
    """Returns one condition that holds when all do; None if there are none."""
    made: Expression | None = None
    for each in conditions:
        made = each if made is None else Logical("AND", made, each, position=made.position)
    return made


def shown(conditions: Conjunction) -> str:
    """Returns the conditions of an alternative as a message shows them."""
    whole = conjunction(conditions)
    return "" if whole is None else expression_text(whole)


def compared_column(comparison: Comparison) -> tuple[ColumnReference, str, Expression] | None:
    """Returns the column that is compared, the operator seen from its side, and what it is compared with.

    >>> from headrace.sql.syntax.parser import parse_expression
    >>> column, operator, other = compared_column(parse_expression("5 < A"))
    >>> column.name, operator, other
    ('A', '>', Literal(value=5))
    """
    if isinstance(comparison.left, ColumnReference):
        return comparison.left, comparison.operator, comparison.right
    if isinstance(comparison.right, ColumnReference):
        operator = _MIRRORED.get(comparison.operator, comparison.operator)
        return comparison.right, operator, comparison.left
    return None


def is_constant(expression: Expression) -> bool:
    """Whether an expression needs no row."""
    return next(references(expression), None) is None

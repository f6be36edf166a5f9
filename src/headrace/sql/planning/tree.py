"""Walking over expressions, and replacing parts of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import fields, replace
from typing import Any, cast

from headrace.sql.syntax.nodes import Call, ColumnReference, Expression, Node


def walk(expression: Expression) -> Iterator[Node]:
    """Yields the expression and everything inside it, from the outside in.

    >>> from headrace.sql.syntax.parser import parse_expression
    >>> [type(node).__name__ for node in walk(parse_expression("A + 1"))]
    ['Binary', 'ColumnReference', 'Literal']
    """
    yield from _walk(expression)


def references(expression: Expression) -> Iterator[ColumnReference]:
    """Yields the columns that an expression refers to, in their order."""
    return (node for node in walk(expression) if isinstance(node, ColumnReference))


def calls(expression: Expression) -> Iterator[Call]:
    """Yields the function calls in an expression, the outer ones first."""
    return (node for node in walk(expression) if isinstance(node, Call))


def replaced(expression: Expression, replacement: Callable[[Node], Expression | None]) -> Expression:
    """Returns the expression with every part replaced for which ``replacement`` gives something else.

    The outer parts are asked first; what is put in their place is not looked into again.

    >>> from headrace.sql.syntax.nodes import Literal
    >>> from headrace.sql.syntax.parser import parse_expression
    >>> zero = lambda node: Literal(0) if isinstance(node, ColumnReference) else None
    >>> replaced(parse_expression("ABS(A)"), zero)
    Call(name='ABS', arguments=(Literal(value=0),))
    """
    return cast("Expression", _replaced(expression, replacement))


def _walk(value: Any) -> Iterator[Node]:
    if isinstance(value, Node):
        yield value
        for field in fields(value):
            yield from _walk(getattr(value, field.name))
    elif isinstance(value, tuple):
        for item in value:
            yield from _walk(item)


def _replaced(value: Any, replacement: Callable[[Node], Expression | None]) -> Any:
    if isinstance(value, tuple):
        return tuple(_replaced(item, replacement) for item in value)
    if not isinstance(value, Node):
        return value
    found = replacement(value)
    if found is not None:
        return found
    parts = {field.name: getattr(value, field.name) for field in fields(value) if field.name != "position"}
    changed = {name: new for name, old in parts.items() if (new := _replaced(old, replacement)) is not old}
    changed = {name: new for name, new in changed.items() if new != parts[name]}
    return replace(value, **changed) if changed else value

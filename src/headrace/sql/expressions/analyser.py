"""The walk over an expression: every kind of node has one rule, registered by the module that owns it."""

from __future__ import annotations

import hashlib
import math
import pickle
from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Any, TypeVar

from headrace.sql.errors import SqlStatementError
from headrace.sql.expressions.typed import Scope, Slot, TypedExpression
from headrace.sql.functions.registry import FunctionRegistry
from headrace.sql.syntax.nodes import Expression, Node
from headrace.sql.types import SqlType

N = TypeVar("N", bound=Node)
Rule = Callable[["Analyser", Any], TypedExpression]  # each rule takes its own kind of node
_RULES: dict[type[Node], Rule] = {}


def rule(
    kind: type[N],
) -> Callable[[Callable[[Analyser, N], TypedExpression]], Callable[[Analyser, N], TypedExpression]]:
    """Registers how nodes of this kind are typed and compiled."""

    def register(function: Callable[[Analyser, N], TypedExpression]) -> Callable[[Analyser, N], TypedExpression]:
        _RULES[kind] = function
        return function

    return register


class Analyser:
    """Types and compiles one expression."""

    def __init__(self, scope: Scope, functions: FunctionRegistry, settings: Mapping[str, object]) -> None:
        self.scope = scope
        self.functions = functions
        self.settings = settings
        self.variables: dict[str, Slot] = {}
        """The parameters of the lambdas around the node being visited."""
        self._names = 0

    def visit(self, node: Expression) -> TypedExpression:
        """Returns the node, typed and compiled."""
        found = _RULES.get(type(node))
        if found is None:
            message = f"expressions: no rule for {type(node).__name__}; it cannot stand inside an expression"
            raise SqlStatementError(message, position=node.position)
        return found(self, node)

    def new_name(self, prefix: str) -> str:
        """Returns a variable that no other part of this expression uses."""
        self._names += 1
        return f"{prefix}{self._names}"

    def held(self, expression: TypedExpression) -> tuple[str, str]:
        """Returns code for the first use of an expression and for every later one, which costs nothing."""
        if expression.repeatable:
            return expression.code, expression.code
        name = self.new_name("t")
        return f"({name} := {expression.code})", name


def constant_name(value: object, prefix: str = "k") -> str:
    """Returns a name for a constant that depends on nothing but its value, so that equal plans have equal source."""
    if callable(value) and hasattr(value, "__qualname__"):
        module, name = getattr(value, "__module__", None), value.__qualname__
        if "<" not in name and module != "__main__":
            digest = hashlib.sha256(f"{module}.{name}".encode()).hexdigest()[:8]
            return f"{name.replace('.', '_')}_{digest}"
        return f"{prefix}_{id(value):x}"
    try:
        data = pickle.dumps(value)
    except (AttributeError, pickle.PicklingError):
        # It holds a function that was made inside of another one.
        return f"{prefix}_{id(value):x}"
    return f"{prefix}_{hashlib.sha256(data).hexdigest()[:12]}"


def call_code(function: Callable[..., object], *arguments: str) -> tuple[str, dict[str, object]]:
    """Returns code that calls a function, and the constant that the code needs."""
    name = constant_name(function)
    return f"{name}({', '.join(arguments)})", {name: function}


def literal_code(value: object) -> tuple[str, dict[str, object]]:
    """Returns code for a value that is known now."""
    if isinstance(value, (bool, str, bytes)) or value is None:
        return repr(value), {}
    if isinstance(value, int) or (isinstance(value, float) and math.isfinite(value)):
        return (repr(value) if value >= 0 else f"({value!r})"), {}
    name = constant_name(value, "d" if isinstance(value, Decimal) else "k")
    return name, {name: value}


def literal(value: object, sql_type: SqlType | None) -> TypedExpression:
    """Returns an expression whose value is known now."""
    code, constants = literal_code(value)
    return TypedExpression(sql_type, code, constants, nullable=value is None, literal=value)


def merged(*expressions: TypedExpression, extra: Mapping[str, object] | None = None) -> dict[str, object]:
    """Returns the constants of all parts of an expression."""
    result: dict[str, object] = {}
    for expression in expressions:
        result.update(expression.constants)
    if extra:
        result.update(extra)
    return result

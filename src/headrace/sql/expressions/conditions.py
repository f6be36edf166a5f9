"""AND, OR, CASE, IN and LIKE."""

from __future__ import annotations

import re
from functools import lru_cache

from headrace.sql.errors import SqlStatementError
from headrace.sql.expressions.analyser import Analyser, call_code, constant_name, merged, rule
from headrace.sql.expressions.arithmetic import known_truth
from headrace.sql.expressions.casts import convert
from headrace.sql.expressions.coercion import coerced_list
from headrace.sql.expressions.typed import TypedExpression
from headrace.sql.syntax.formatter import expression_text
from headrace.sql.syntax.nodes import Case, Comparison, Expression, InList, Like, Logical
from headrace.sql.types import BOOLEAN, STRING, SqlType
from headrace.sql.types.type_names import type_text


@rule(Logical)
def _logical(analyser: Analyser, node: Logical) -> TypedExpression:
    sides = [_condition(analyser, side, parent) for side, parent in _operands(node)]
    code = f"({f' {node.operator.lower()} '.join(side.code for side in sides)})"
    return TypedExpression(BOOLEAN, code, merged(*sides), any(side.can_fail for side in sides), nullable=False)


def _operands(node: Logical) -> list[tuple[Expression, Logical]]:
    """Returns the operands of a chain of one operator, in their order, each with the node it is an operand of."""
    # Python takes a long chain, but not as many parentheses around its beginning.
    chain = [node]
    while isinstance(chain[-1].left, Logical) and chain[-1].left.operator == node.operator:
        chain.append(chain[-1].left)
    return [(chain[-1].left, chain[-1]), *((one.right, one) for one in reversed(chain))]


def _condition(analyser: Analyser, side: Expression, node: Logical) -> TypedExpression:
    expression = analyser.visit(side)
    if expression.type != BOOLEAN:
        message = (
            f"Unsupported types for {node.operator}: {expression_text(node)}. It takes BOOLEAN, but "
            f"{expression_text(side)} is {type_text(expression.type)}"
        )
        raise SqlStatementError(message, position=node.position)
    return known_truth(analyser, expression)


@rule(Case)
def _case(analyser: Analyser, node: Case) -> TypedExpression:
    conditions: list[TypedExpression] = []
    results: list[TypedExpression] = []
    for branch in node.branches:
        condition: Expression = branch.condition
        if node.operand is not None:
            condition = Comparison("=", node.operand, branch.condition, position=branch.position)
        typed = analyser.visit(condition)
        if typed.type != BOOLEAN:
            message = (
                "WHEN operand type should be boolean.\n"
                f"Type for '{expression_text(condition)}' is {type_text(typed.type)}"
            )
            raise SqlStatementError(message, position=branch.position)
        conditions.append(known_truth(analyser, typed))
        results.append(analyser.visit(branch.result))
    then_type = _then_type(node, results)
    default = analyser.visit(node.default) if node.default is not None else None
    default_type = None if default is None else default.type
    if then_type is not None and default_type is not None and then_type != default_type:
        message = (
            "Invalid Case expression. Type for the default clause should be the same as for 'THEN' clauses."
            f"\nTHEN type: {type_text(then_type)}.\nDEFAULT type: {type_text(default_type)}."
        )
        raise SqlStatementError(message, position=node.position)
    result_type = then_type or default_type
    if result_type is None:
        message = "Invalid Case expression. All case branches have NULL type"
        raise SqlStatementError(message, position=node.position)
    if default is None or default.type is None:
        default = TypedExpression(result_type, "None")
    results = [convert(analyser, result, result_type) for result in results]
    code = default.code
    for condition_code, result in zip(reversed(conditions), reversed(results), strict=True):
        code = f"({result.code} if {condition_code.code} else {code})"
    parts = (*conditions, *results, default)
    nullable = any(part.nullable for part in (*results, default))
    return TypedExpression(result_type, code, merged(*parts), any(part.can_fail for part in parts), nullable)


def _then_type(node: Case, results: list[TypedExpression]) -> SqlType | None:
    found: SqlType | None = None
    for branch, result in zip(node.branches, results, strict=True):
        if result.type is None:
            continue
        if found is not None and found != result.type:
            message = (
                "Invalid Case expression. Type for all 'THEN' clauses should be the same."
                f"\nTHEN expression 'WHEN {expression_text(branch.condition)} THEN {expression_text(branch.result)}' "
                f"has type: {type_text(result.type)}.\nPrevious THEN expression(s) type: {type_text(found)}."
            )
            raise SqlStatementError(message, position=branch.position)
        found = result.type
    return found


@rule(InList)
def _in(analyser: Analyser, node: InList) -> TypedExpression:
    common, typed = coerced_list(analyser, (node.operand, *node.items), prefix="Invalid Predicate: ")
    operand, items = typed[0], [item for item in typed[1:] if item.literal is not None]
    if common is None or operand.type is None:
        message = f"Invalid Predicate: {expression_text(node)}: NULL is in no list; use IS NULL"
        raise SqlStatementError(message, position=node.position)
    constants = merged(operand, *items)
    can_fail = any(part.can_fail for part in typed)
    if all(item.is_literal for item in items):
        values = [item.literal for item in items]
        # Tuples have an order, sets of text have none: equal statements get equal source.
        name = constant_name(tuple(values), "in")
        constants[name] = frozenset(values)
        code = f"({operand.code} in {name})"
    else:
        first, later = analyser.held(operand)
        tests = " or ".join(f"{later} == {item.code}" for item in items)
        # Held first, also where it is never None, so that it is evaluated once.
        code = f"({tests})" if operand.repeatable and not operand.nullable else f"({first} is not None and ({tests}))"
    if node.negated:
        code = f"(not {code})"
    return TypedExpression(BOOLEAN, code, constants, can_fail, nullable=False)


@lru_cache(maxsize=1024)
def like_pattern(pattern: str, escape: str | None) -> re.Pattern[str]:
    """Returns the regular expression of a LIKE pattern: ``%`` is any text, ``_`` any character.

    >>> like_pattern("a%b_%c", None).pattern
    'a(?>.*?b.).*c'
    """
    parts = [""]
    index = 0
    while index < len(pattern):
        character = pattern[index]
        if character == escape and index + 1 < len(pattern):
            index += 1
            parts[-1] += re.escape(pattern[index])
        elif character == "%":
            parts.append("")
        else:
            parts[-1] += "." if character == "_" else re.escape(character)
        index += 1
    first, *others = parts
    if not others:
        return re.compile(first, re.DOTALL)
    # Each part where it is found first, for good: to try all places of all parts would take for ever.
    found = "".join(f"(?>.*?{part})" for part in others[:-1] if part)
    return re.compile(f"{first}{found}.*{others[-1]}", re.DOTALL)


def is_like(text: str, pattern: str, escape: str | None) -> bool:
    """Whether the whole text has the form of the pattern."""
    return like_pattern(pattern, escape).fullmatch(text) is not None


@rule(Like)
def _like(analyser: Analyser, node: Like) -> TypedExpression:
    operand, pattern = analyser.visit(node.operand), analyser.visit(node.pattern)
    for part, part_node in ((operand, node.operand), (pattern, node.pattern)):
        if part.type != STRING:
            message = (
                f"Like condition must be between strings, invalid types: {expression_text(node)}: "
                f"{expression_text(part_node)} is {type_text(part.type)}"
            )
            raise SqlStatementError(message, position=node.position)
    constants = merged(operand, pattern)
    if isinstance(pattern.literal, str):
        compiled = like_pattern(pattern.literal, node.escape)
        name = constant_name((pattern.literal, node.escape), "like")
        constants[name] = compiled
        code = f"({name}.fullmatch({operand.code}) is not None)"
    else:
        code, more = call_code(is_like, operand.code, pattern.code, repr(node.escape))
        constants.update(more)
    if node.negated:
        code = f"(not {code})"
    return TypedExpression(BOOLEAN, code, constants, can_fail=True, nullable=False)

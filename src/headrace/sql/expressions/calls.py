"""Calls of functions: which overload is meant, arguments in the types it takes, lambdas in the types it gives them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from headrace.sql.errors import SqlError, SqlFunctionError, SqlStatementError
from headrace.sql.expressions.analyser import Analyser, call_code, literal, merged, rule
from headrace.sql.expressions.casts import convert
from headrace.sql.expressions.typed import NOT_LITERAL, Slot, TypedExpression
from headrace.sql.functions.definitions import (
    Aggregate,
    AggregateFunction,
    CallSite,
    Overload,
    ScalarFunction,
    TableFunction,
)
from headrace.sql.functions.resolution import (
    Argument,
    LambdaArgument,
    UnitArgument,
    choose,
    fits,
    spread,
    spread_places,
)
from headrace.sql.functions.signatures import Accepted, AnyDecimal, Exactly, LambdaOf, Unit, resolved
from headrace.sql.syntax.formatter import expression_text
from headrace.sql.syntax.nodes import AtTimeZone, Call, ColumnReference, Expression, IntervalUnit, Lambda
from headrace.sql.syntax.units import UNITS
from headrace.sql.types import ARRAY, STRING, TIMESTAMP, SqlType
from headrace.sql.types.java_arithmetic import as_decimal_type
from headrace.sql.types.times import to_zone
from headrace.sql.types.type_names import type_text

R = TypeVar("R")


@dataclass(frozen=True, slots=True)
class AggregateCall:
    """One call of an aggregate function: what to feed it, and what folds the rows."""

    name: str
    arguments: tuple[TypedExpression, ...]
    """The values of a row that ``aggregate.aggregate(state, *values)`` takes."""
    argument_nodes: tuple[Expression, ...]
    """The same arguments as they were written."""
    aggregate: Aggregate


@dataclass(frozen=True, slots=True)
class TableCall:
    """One call of a table function: ``expression`` is a list with one item per row, or NULL for no rows."""

    name: str
    item_type: SqlType
    expression: TypedExpression


@rule(Call)
def _call(analyser: Analyser, node: Call) -> TypedExpression:
    function = _located(node, lambda: analyser.functions.function(node.name))
    if isinstance(function, ScalarFunction):
        return _compiled(analyser, node, function.name, function.overloads)
    what = "an aggregate" if isinstance(function, AggregateFunction) else "a table"
    message = (
        f"Can't find any functions with the name '{node.name}' that give one value for one row: it is {what} function, "
        f"which cannot be used here: {expression_text(node)}"
    )
    raise SqlStatementError(message, position=node.position)


def table_call_of(analyser: Analyser, node: Call) -> TableCall:
    """Returns a call of a table function, typed and compiled."""
    function = _located(node, lambda: analyser.functions.function(node.name))
    if not isinstance(function, TableFunction):
        message = f"{function.name} is no table function: {expression_text(node)}"
        raise SqlStatementError(message, position=node.position)
    expression = _compiled(analyser, node, function.name, function.overloads)
    if expression.type is None:
        message = f"Function '{function.name}': the type of its rows is unknown; cast NULL arguments to a type"
        raise SqlStatementError(message, position=node.position)
    item = expression.type
    listed = TypedExpression(ARRAY(item), expression.code, expression.constants, expression.can_fail)
    return TableCall(function.name, item, listed)


def aggregate_call_of(analyser: Analyser, node: Call) -> AggregateCall:
    """Returns a call of an aggregate function with its arguments typed and compiled."""
    function = _located(node, lambda: analyser.functions.function(node.name))
    if not isinstance(function, AggregateFunction):
        message = f"{function.name} is no aggregate function: {expression_text(node)}"
        raise SqlStatementError(message, position=node.position)
    typed = [analyser.visit(argument) for argument in node.arguments]
    types = [one.type for one in typed]
    chosen = _located(node, lambda: choose(function.name, function.overloads, types, with_casts=False))
    places = spread_places(chosen.signature, len(typed)) or []
    columns = [index for index, place in enumerate(places) if place < len(chosen.columns)]
    constants: list[object] = []
    for index, place in enumerate(places):
        if place < len(chosen.columns):
            continue
        if not typed[index].is_literal:
            message = (
                f"Parameter {index + 1} passed to function {function.name} must be a literal constant, but was "
                f"expression: '{expression_text(node.arguments[index])}'"
            )
            raise SqlStatementError(message, position=node.position)
        constants.append(typed[index].literal)
    made = _located(node, lambda: chosen.make([types[index] for index in columns], constants, analyser.settings))
    return AggregateCall(
        function.name,
        tuple(typed[index] for index in columns),
        tuple(node.arguments[index] for index in columns),
        made,
    )


def _located(node: Expression, action: Callable[[], R]) -> R:
    """Runs an action; its error then says where in the statement it happened."""
    try:
        return action()
    except SqlError as error:
        error.position = error.position or node.position
        raise
    except ValueError as error:
        # What a function says about the constants of a call.
        raise SqlFunctionError(str(error), position=node.position) from error


def _compiled(analyser: Analyser, node: Call, name: str, overloads: Sequence[Overload]) -> TypedExpression:
    typed: list[TypedExpression | None] = []
    arguments: list[Argument] = []
    for index, argument in enumerate(node.arguments):
        if isinstance(argument, Lambda):
            typed.append(None)
            arguments.append(LambdaArgument(len(argument.parameters)))
        elif (unit := _unit(argument, index, overloads)) is not None:
            typed.append(literal(unit, STRING))
            arguments.append(UnitArgument())
        else:
            typed.append(analyser.visit(argument))
            arguments.append(typed[-1].type if typed[-1] is not None else None)
    chosen = _located(node, lambda: choose(name, overloads, arguments))
    parameters = spread(chosen.signature, len(arguments)) or []
    generics: dict[str, SqlType] = {}
    final: list[TypedExpression] = []
    for parameter, kind in zip(parameters, arguments, strict=True):
        fits(parameter.accepts, kind, generics, with_casts=True)
    for parameter, one in zip(parameters, typed, strict=True):
        if one is not None:
            final.append(_in_parameter(analyser, one, parameter.accepts, generics))
    for index, (parameter, argument_node) in enumerate(zip(parameters, node.arguments, strict=True)):
        if isinstance(argument_node, Lambda) and isinstance(parameter.accepts, LambdaOf):
            final.insert(index, _lambda(analyser, argument_node, parameter.accepts, generics, node))
    types = tuple(one.type for one in final)
    result = chosen.returns(types) if chosen.returns else resolved(chosen.signature.returns, generics)
    site = CallSite(types, analyser.settings)
    function = _located(node, lambda: chosen.bind(site) if chosen.bind else chosen.function)
    assert function is not None, f"{name}: an overload without a function"
    code, constants = _code(analyser, function, final, strict=chosen.strict)
    return TypedExpression(result, code, constants, can_fail=True)


def _unit(argument: Expression, index: int, overloads: Sequence[Overload]) -> str | None:
    if isinstance(argument, IntervalUnit):
        return argument.name
    if isinstance(argument, ColumnReference) and argument.source is None and argument.name in UNITS:
        takes_unit = any(
            index < len(one.signature.parameters) and isinstance(one.signature.parameters[index].accepts, Unit)
            for one in overloads
        )
        return UNITS[argument.name] if takes_unit else None
    return None


def _in_parameter(
    analyser: Analyser, expression: TypedExpression, accepted: Accepted, generics: dict[str, SqlType]
) -> TypedExpression:
    if expression.type is None:
        target = accepted.type if isinstance(accepted, Exactly) else None
        return TypedExpression(target, "None", literal=None)
    target = resolved(accepted, generics)
    if target is not None and target != expression.type:
        return convert(analyser, expression, target)
    if isinstance(accepted, AnyDecimal) and as_decimal_type(expression.type) != expression.type:
        return convert(analyser, expression, as_decimal_type(expression.type))
    return expression


def _lambda(
    analyser: Analyser, node: Lambda, accepted: LambdaOf, generics: dict[str, SqlType], call: Call
) -> TypedExpression:
    outer = dict(analyser.variables)
    names: list[str] = []
    for parameter, one in zip(node.parameters, accepted.inputs, strict=True):
        sql_type = resolved(one, generics)
        if sql_type is None:
            message = f"lambda in {expression_text(call)}: the type of {parameter} is unknown; cast NULL to a type"
            raise SqlStatementError(message, position=node.position)
        names.append(analyser.new_name("p"))
        analyser.variables[parameter] = Slot(sql_type, names[-1])
    body = analyser.visit(node.body)
    analyser.variables = outer
    if not fits(accepted.result, body.type, generics, with_casts=False):
        needed = resolved(accepted.result, generics)
        message = (
            f"Expected lambda to return {type_text(needed)} but it returns {type_text(body.type)}: "
            f"{expression_text(node)}"
        )
        raise SqlStatementError(message, position=node.position)
    code = f"(lambda {', '.join(names)}: {body.code})"
    return TypedExpression(None, code, body.constants, nullable=False, literal=NOT_LITERAL)


def _code(
    analyser: Analyser, function: Callable[..., object], arguments: Sequence[TypedExpression], *, strict: bool
) -> tuple[str, dict[str, object]]:
    if not strict:
        code, constants = call_code(function, *(one.code for one in arguments))
        return code, merged(*arguments, extra=constants)
    checks: list[str] = []
    codes: list[str] = []
    for one in arguments:
        if one.nullable:
            first, later = analyser.held(one)
            checks.append(f"{first} is None")
            codes.append(later)
        else:
            codes.append(one.code)
    code, constants = call_code(function, *codes)
    if checks:
        code = f"(None if {' or '.join(checks)} else {code})"
    return code, merged(*arguments, extra=constants)


@rule(AtTimeZone)
def _at_time_zone(analyser: Analyser, node: AtTimeZone) -> TypedExpression:
    operand, zone = analyser.visit(node.operand), analyser.visit(node.zone)
    if operand.type != TIMESTAMP or zone.type != STRING:
        message = (
            f"AT TIME ZONE takes a TIMESTAMP and a STRING: {expression_text(node)} has "
            f"{type_text(operand.type)} and {type_text(zone.type)}"
        )
        raise SqlStatementError(message, position=node.position)
    code, constants = _code(analyser, to_zone, (operand, zone), strict=True)
    return TypedExpression(TIMESTAMP, code, constants, can_fail=True)

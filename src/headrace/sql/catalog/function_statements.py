"""``CREATE FUNCTION`` and ``DROP FUNCTION``: from the functions there are to the next ones."""

from __future__ import annotations

from headrace.errors import did_you_mean
from headrace.sql.errors import SqlStatementError
from headrace.sql.functions import BUILTIN_FUNCTIONS, FunctionRegistry
from headrace.sql.functions.python import load_function
from headrace.sql.syntax.statements import CreateFunction, DropFunction


def create_function(statement: CreateFunction, functions: FunctionRegistry) -> tuple[FunctionRegistry, str]:
    """Returns the functions with one that is written in Python; those of the language cannot be replaced."""
    if statement.name in functions:
        if statement.if_not_exists:
            return functions, f"Function {statement.name} already exists."
        if statement.name in BUILTIN_FUNCTIONS or not statement.or_replace:
            remedy = "use another name" if statement.name in BUILTIN_FUNCTIONS else "say CREATE OR REPLACE FUNCTION"
            message = f"Cannot add function {statement.name}: a function of that name already exists; {remedy}"
            raise SqlStatementError(message)
    return functions.with_functions(load_function(statement.target, statement.name)), "Function created"


def drop_function(statement: DropFunction, functions: FunctionRegistry) -> tuple[FunctionRegistry, str]:
    """Returns the functions without one that was created."""
    if statement.name in BUILTIN_FUNCTIONS:
        message = f"Cannot drop function {statement.name}: it is part of the language"
        raise SqlStatementError(message)
    if statement.name not in functions:
        if statement.if_exists:
            return functions, f"Function {statement.name} does not exist."
        hint = did_you_mean(statement.name, [function.name.upper() for function in functions])
        message = f"Function {statement.name} does not exist{hint}"
        raise SqlStatementError(message)
    return functions.without(statement.name), f"Function {statement.name} was dropped."

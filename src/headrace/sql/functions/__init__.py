"""The functions of the language: what they take, what they do, and how to add more.

``registry`` holds them by name, ``signatures`` and ``resolution`` say which overload a call means, ``definitions`` is
what a function is made of; the other modules are families of functions.
"""

from headrace.sql.functions.builtin import BUILTIN_FUNCTIONS
from headrace.sql.functions.definitions import (
    Aggregate,
    AggregateFunction,
    AggregateOverload,
    AnyFunction,
    Overload,
    ScalarFunction,
    TableFunction,
)
from headrace.sql.functions.python import load_function, sql_function, udaf, udf, udtf
from headrace.sql.functions.registry import FunctionRegistry

__all__ = [
    "BUILTIN_FUNCTIONS",
    "Aggregate",
    "AggregateFunction",
    "AggregateOverload",
    "AnyFunction",
    "FunctionRegistry",
    "Overload",
    "ScalarFunction",
    "TableFunction",
    "load_function",
    "sql_function",
    "udaf",
    "udf",
    "udtf",
]

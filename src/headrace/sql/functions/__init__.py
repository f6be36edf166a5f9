"""The functions of the language: what they take, what they do, and how to add more.

``registry`` holds them by name, ``signatures`` and ``resolution`` say which overload a call means, ``definitions`` is
what a function is made of; the other modules are families of functions.

| module | |
|---|---|
| ``registry``, ``definitions``, ``signatures``, ``resolution`` | functions by name, and overloads |
| ``builtin`` | all functions of the language |
| ``numbers``, ``trigonometry``, ``strings``, ``regexes``, ``urls``, ``dates`` | families by type |
| ``arrays``, ``maps``, ``tables``, ``json_text``, ``encodings``, ``masks``, ``conditionals`` | families by purpose |
| ``python``, ``type_hints``, ``user_values`` | functions written in Python |
| ``java_regex``, ``sizes`` | Java's regular expressions; size limits |
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

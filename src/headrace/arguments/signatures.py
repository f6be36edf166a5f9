"""Inspection of user functions: name, file and line, number of arguments, kind of result."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import CodeType, TracebackType
from typing import Any

from headrace.record import WithKey

_OURS = str(Path(__file__).parents[1])


def describe_function(function: Any) -> str:
    """Returns the name of a function, with file and line where it is written in Python.

    >>> describe_function(str.upper)
    'str.upper'
    >>> describe_function(lambda value: value)
    '<lambda> (<doctest headrace.arguments.signatures.describe_function[1]>:1)'
    """
    function = _unwrap(function)
    name = getattr(function, "__qualname__", None) or type(function).__qualname__
    code = _code(function)
    return str(name) if code is None else f"{name} ({code.co_filename}:{code.co_firstlineno})"


def takes(function: Any, count: int) -> bool:
    """Tells whether a function can be called with so many arguments; one that does not say it is believed to.

    >>> takes(lambda key, value: value, 1), takes(str.upper, 1), takes(max, 7)
    (False, True, True)
    """
    signature = _signature(function)
    if signature is None:
        return True
    try:
        signature.bind(*range(count))
    except TypeError:
        return False
    return True


def parameters_of(function: Any) -> str:
    """Returns the parameters of a function as they are written, without annotations.

    >>> parameters_of(lambda key, value=None, *rest: key)
    '(key, value=None, *rest)'
    """
    signature = _signature(function)
    if signature is None:
        return "(…)"
    bare = [each.replace(annotation=inspect.Parameter.empty) for each in signature.parameters.values()]
    return str(inspect.Signature(bare))


def deferred(function: Any, *, generators: bool = False) -> str | None:
    """Tells what keeps a function from giving its result when it is called; ``generators`` are fine for some.

    >>> async def fetch(value): ...
    >>> deferred(fetch)
    'an async function, which nobody would await'
    >>> deferred(str.upper) is None
    True
    """
    function = _unwrap(function)
    if isinstance(function, type):
        return None
    called = function if inspect.isroutine(function) else type(function).__call__
    if inspect.iscoroutinefunction(called) or inspect.isasyncgenfunction(called):
        return "an async function, which nobody would await"
    if inspect.isgeneratorfunction(called) and not generators:
        return "a generator function, which gives a generator instead of a value"
    return None


def count_of(call: str) -> int:
    """Returns how many arguments a call has, as messages write it.

    >>> count_of("(key, value) that gives a pair"), count_of("()")
    (2, 0)
    """
    inside = call[call.index("(") + 1 : call.index(")")]
    return inside.count(",") + 1 if inside else 0


def raised_in(error: BaseException) -> str | None:
    """Returns the function of the user in which an error arose, with file and line; None if there is none.

    It is the outermost one: what was given to the topology, at the line that called what failed.
    """
    trace: TracebackType | None = error.__traceback__
    while trace is not None:
        code = trace.tb_frame.f_code
        if not code.co_filename.startswith(_OURS):
            return f"{code.co_qualname} ({code.co_filename}:{trace.tb_lineno})"
        trace = trace.tb_next
    return None


def users(functions: Any) -> list[Any]:
    """Returns those of some functions that are not ours, the ones inside wrappers of ours included.

    >>> users([str.upper, WithKey(str.join), None, (repr, takes)]) == [str.upper, str.join, repr]
    True
    """
    found: list[Any] = []
    for function in functions:
        if isinstance(function, tuple):
            found += users(function)
        elif isinstance(function, WithKey):
            found += users([function.function])
        elif isinstance(function, partial) and _is_ours(function.func):
            found += users(function.args)
        elif callable(function) and not _is_ours(function):
            found.append(function)
    return found


def _is_ours(function: Any) -> bool:
    module = getattr(function, "__module__", None) or ""
    return module == "headrace" or module.startswith("headrace.")


def _unwrap(function: Any) -> Any:
    while isinstance(function, WithKey | partial):
        function = function.function if isinstance(function, WithKey) else function.func
    return function


def _code(function: Any) -> CodeType | None:
    owner: Any = function
    if isinstance(function, type):
        owner = vars(function).get("__init__")
    elif not hasattr(function, "__code__"):
        owner = type(function).__call__ if callable(function) else None
    code = getattr(owner, "__code__", None)
    return code if isinstance(code, CodeType) else None


def _signature(function: Callable[..., Any]) -> inspect.Signature | None:
    try:
        # A decorator may change the arguments: what counts is what is called, not what it wraps.
        return inspect.signature(function, follow_wrapped=False)
    except (ValueError, TypeError):
        return None

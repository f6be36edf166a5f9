"""Checks of mapper results: pairs of key and value, or iterables of them. A plain tuple costs nothing."""

from __future__ import annotations

from typing import Any

from headrace.arguments.signatures import describe_function
from headrace.errors import describe_value


def pair_of(result: Any) -> Any:
    """Returns what may stand for a pair: a tuple such as ``KeyValue``, or a list.

    A text of two characters or a dict of two keys could be unpacked as well, but nobody means that.

    >>> pair_of(["key", "value"])
    ['key', 'value']
    >>> pair_of("kv")
    Traceback (most recent call last):
    ...
    TypeError: not a pair
    """
    if isinstance(result, tuple | list):
        return result
    message = "not a pair"
    raise TypeError(message)


def not_a_pair(operation: str, function: Any, result: Any, *, each: bool = False) -> TypeError:
    """Returns the error for a result that is not a pair, or for one of several.

    >>> print(not_a_pair("map", len, 5))
    map needs a pair (key, value); len returned int 5; return a tuple of two
    """
    needs, gave = ("pairs (key, value)", "gave") if each else ("a pair (key, value)", "returned")
    message = (
        f"{operation} needs {needs}; {describe_function(function)} {gave} {describe_value(result)}; "
        f"{'give tuples' if each else 'return a tuple'} of two"
    )
    return TypeError(message)


def not_iterable(operation: str, function: Any, result: Any, error: Exception) -> Exception:
    """Returns the error for a result that cannot be iterated over, or what its own ``__iter__`` raised.

    >>> print(not_iterable("flat_map", max, None, TypeError()))
    flat_map needs an iterable; max returned None; return a list, which may be empty, or yield
    >>> print(not_iterable("flat_map_values", max, "abc", TypeError()))
    flat_map_values needs several results; max returned one str, whose characters would be the results; return ...
    """
    if isinstance(result, str | bytes):
        message = (
            f"{operation} needs several results; {describe_function(function)} returned one {type(result).__name__}, "
            "whose characters would be the results; return a list: [text], or text.split()"
        )
        return TypeError(message)
    if hasattr(type(result), "__iter__"):
        return error
    message = (
        f"{operation} needs an iterable; {describe_function(function)} returned {describe_value(result)}; "
        "return a list, which may be empty, or yield"
    )
    return TypeError(message)

"""Values that untyped JSON returns unchanged, and the search for the part of a value that it would not."""

from __future__ import annotations

from collections.abc import Iterable
from math import isfinite
from types import NoneType
from typing import Any

import msgspec

_SCALARS = frozenset({str, int, float, bool, NoneType})
# As deep as orjson goes; it refuses what is deeper or contains itself.
_DEPTH = 255


def roundtrips(value: Any) -> bool:
    """Tells whether a value and all its parts have types that JSON knows; a subclass would come back as its base.

    >>> roundtrips({"a": [1, None]}), roundtrips({"a": (1, 2)})
    (True, False)
    """
    kind = type(value)
    if kind in _SCALARS:
        return True
    if kind is dict:
        value = value.values()
    elif kind is not list:
        return False
    # Nearly all dicts and lists hold nothing but plain values, and then no Python code runs per item.
    return _SCALARS.issuperset(map(type, value)) or all(map(roundtrips, value))


def find_strange(value: Any) -> tuple[str, Any] | None:
    """Returns the first part of a value that would not come back as it was, and where it is; None if there is none.

    >>> find_strange({"a": [1, float("nan")], "b": ()}), find_strange({"a": 1})
    (('$.a[1]', nan), None)
    """
    return _find(value, (list,), "$", _DEPTH)


def find_no_number(value: Any) -> tuple[str, Any] | None:
    """Returns the first NaN or infinity in what msgspec writes, and where it is; None if there is none.

    >>> find_no_number((1.5, [float("inf")]))
    ('$[1][0]', inf)
    """
    # msgspec.Raw is the one thing that it writes and does not turn into plain values.
    return _find(msgspec.to_builtins(value, enc_hook=bytes), (list, tuple), "$", _DEPTH)


def _find(value: Any, sequences: tuple[type, ...], path: str, depth: int) -> tuple[str, Any] | None:
    kind = type(value)
    if kind is float and not isfinite(value):
        return path, value
    if kind in _SCALARS or depth == 0:
        return None
    parts: Iterable[tuple[str, Any]]
    if kind is dict:
        parts = ((f"{path}.{name}", part) for name, part in value.items())
    elif kind in sequences:
        parts = ((f"{path}[{index}]", part) for index, part in enumerate(value))
    else:
        return path, value
    found = (_find(part, sequences, where, depth - 1) for where, part in parts)
    return next(filter(None, found), None)

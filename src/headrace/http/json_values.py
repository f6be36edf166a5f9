"""Keys and values as JSON, whatever a serde has made of them."""

from __future__ import annotations

import json
import logging
import math
import re
from base64 import b64encode
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import fields, is_dataclass
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum
from typing import Any
from uuid import UUID

from headrace.windows import Windowed

logger = logging.getLogger(__name__)

Formatter = Callable[[Any], Any]
"""Returns what JSON has for a value, or ``NotImplemented``."""

_DEEPEST = 100
_ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+")
FORMATTERS: list[Formatter] = []
"""Of those who serve in this process; they are asked one after the other."""


@contextmanager
def formatting(formatter: Formatter | None) -> Iterator[None]:
    """Lets a formatter of the user show what JSON does not have, for as long as somebody serves with it."""
    if formatter is None:
        yield
        return
    FORMATTERS.append(formatter)
    try:
        yield
    finally:
        FORMATTERS.remove(formatter)


def named(value: object) -> str:
    """Returns an object as text, without where it lies in memory.

    >>> named(object())
    '<object object>'
    """
    return _ADDRESS.sub("", repr(value))


def to_json(value: Any) -> str:
    r"""Writes an answer; its text is ASCII, so that nothing in it depends on an encoding.

    >>> to_json({"total": 3, "at": None, "raw": b"\xff"})
    '{"total":3,"at":null,"raw":"/w=="}'
    >>> to_json({1.5: float("nan")})
    '{"1.5":"nan"}'
    """
    try:
        return _ENCODER.encode(value)
    except (TypeError, ValueError, RecursionError):
        # Something that JSON does not have: a number that is none, a key that is not text, a ring.
        return _ENCODER.encode(plain(value))


def plain(value: Any, depth: int = 0) -> Any:
    """Returns a value made of what JSON has; bytes become text, or base64 if they are not."""
    if value is None or (isinstance(value, str | bool | int) and not isinstance(value, Enum)):
        return value
    if depth > _DEEPEST:
        return named(value)[:200]
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if isinstance(value, Mapping):
        return {_name(key): plain(each, depth + 1) for key, each in value.items()}
    if isinstance(value, list | tuple | set | frozenset) and not hasattr(value, "_fields"):
        return [plain(each, depth + 1) for each in value]
    return plain(_foreign(value), depth + 1)


def _name(key: Any) -> str:
    return key if isinstance(key, str) else str(plain(key))


def _foreign(value: Any) -> Any:
    """Returns what stands for an object that JSON does not know."""
    if isinstance(value, bytes | bytearray | memoryview):
        data = bytes(value)
        try:
            return data.decode()
        except UnicodeDecodeError:
            return b64encode(data).decode()
    for formatter in FORMATTERS:
        shown = _apply_formatter(formatter, value)
        if shown is not NotImplemented and shown is not value:
            return shown
    if isinstance(value, Windowed):
        window = {"start_ms": value.window.start_ms, "end_ms": value.window.end_ms}
        return {"key": value.key, "window": window}
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, datetime | date | time):
        return value.isoformat()
    if isinstance(value, timedelta):
        return value.total_seconds()
    if isinstance(value, Decimal | UUID):
        return str(value)
    if isinstance(value, set | frozenset):
        return list(value)
    names = getattr(value, "__struct_fields__", None) or getattr(value, "_fields", None)
    if names is None and is_dataclass(value):
        names = [field.name for field in fields(value)]
    if names is not None:
        return {name: getattr(value, name) for name in names}
    if isinstance(value, Mapping):
        return dict(value)
    if getattr(type(value), "__repr__", None) is object.__repr__ and (attributes := getattr(value, "__dict__", None)):
        return {name: each for name, each in attributes.items() if not name.startswith("_")}
    return named(value)


def _apply_formatter(formatter: Formatter, value: Any) -> Any:
    try:
        return formatter(value)
    except Exception:
        # The answer has other values, too.
        logger.warning("http.formatter failed for a %s", type(value).__name__, exc_info=True)
        return NotImplemented


_ENCODER = json.JSONEncoder(separators=(",", ":"), allow_nan=False, default=_foreign)

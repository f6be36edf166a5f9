"""Query parameters and position headers of HTTP requests, parsed and checked."""

from __future__ import annotations

import json
from collections.abc import Iterable

from starlette.datastructures import QueryParams

from headrace.errors import did_you_mean
from headrace.http.errors import bad_request
from headrace.views.position import Position

_MAX_MS = (1 << 63) - 1


def check_names(parameters: QueryParams, known: Iterable[str]) -> None:
    """Refuses parameters that would be ignored."""
    names = set(known)
    for name in parameters:
        if name not in names:
            hint = did_you_mean(name, names)
            message = f"parameter '{name[:60]}' is unknown{hint}; known: {', '.join(sorted(names)) or 'none'}"
            raise bad_request(message, "unknown-parameter")


def number(
    parameters: QueryParams, name: str, default: int | None = None, *, low: int = 0, high: int = _MAX_MS
) -> int | None:
    """Returns a whole number between bounds, or the default."""
    text = parameters.get(name)
    if text is None or text == "":
        return default
    if not text.isascii() or not text.removeprefix("-").isdigit() or len(text) > 20:
        message = f"{name} must be a whole number, got '{text[:60]}'"
        raise bad_request(message, "bad-parameter")
    value = int(text)
    if not low <= value <= high:
        message = f"{name} must be from {low} to {high}, got {value}"
        raise bad_request(message, "bad-parameter")
    return value


def choice(parameters: QueryParams, name: str, choices: Iterable[str], default: str) -> str:
    """Returns one of several words."""
    text = parameters.get(name, default)
    known = list(choices)
    if text not in known:
        message = f"{name} must be one of {', '.join(known)}, got '{text[:60]}'"
        raise bad_request(message, "bad-parameter")
    return text


def flag(parameters: QueryParams, name: str, *, default: bool = False) -> bool:
    """Returns whether something is wished."""
    return choice(parameters, name, ("true", "false"), "true" if default else "false") == "true"


def position_of(header: str | None) -> Position:
    """Reads the header ``Headrace-Position``: JSON of offsets by topic and partition.

    >>> position_of('{"orders": {"0": 41}}')
    Position({'orders': {0: 41}})
    """
    if header is None or not header.strip():
        return Position()
    try:
        return Position.from_map(json.loads(header))
    except (ValueError, TypeError, AttributeError, RecursionError) as error:
        message = f'Headrace-Position must be JSON such as {{"orders": {{"0": 41}}}}: {error}'
        raise bad_request(message, "bad-position") from error


def position_text(position: Position) -> str:
    """Writes the header ``Headrace-Position``.

    >>> position_text(Position({("orders", 0): 41}))
    '{"orders":{"0":41}}'
    """
    return json.dumps(position.to_map(), separators=(",", ":"))

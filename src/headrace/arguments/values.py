"""Checks of arguments that every layer has: numbers, flags, texts, settings of topics and serdes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from headrace.errors import StreamsError, TopologyError, describe_value


def whole_number(
    value: Any, what: str, *, minimum: int | None = None, error: type[StreamsError] = TopologyError
) -> int:
    """Returns a number; ``what`` names it in the message.

    >>> whole_number(1.5, "SessionWindows: gap_ms")
    Traceback (most recent call last):
    ...
    headrace.errors.TopologyError: SessionWindows: gap_ms must be a whole number; found float 1.5
    """
    if isinstance(value, int) and not isinstance(value, bool) and (minimum is None or value >= minimum):
        return value
    required = "a whole number" if minimum is None else f"a whole number, at least {minimum}"
    message = f"{what} must be {required}; found {describe_value(value)}"
    raise error(message)


def not_negative(duration_ms: int, what: str) -> None:
    """Raises if a duration is below zero.

    >>> not_negative(-1, "SessionWindows: the grace period")
    Traceback (most recent call last):
    ...
    headrace.errors.TopologyError: SessionWindows: the grace period must not be negative, got -1 ms
    """
    if duration_ms < 0:
        message = f"{what} must not be negative, got {duration_ms} ms"
        raise TopologyError(message)


def flag(value: Any, what: str) -> bool:
    """Returns True or False, and takes nothing else for it.

    >>> flag("no", "Materialized: caching")
    Traceback (most recent call last):
    ...
    headrace.errors.TopologyError: Materialized: caching must be True or False; found str 'no'
    """
    if isinstance(value, bool):
        return value
    message = f"{what} must be True or False; found {describe_value(value)}"
    raise TopologyError(message)


def text(value: Any, what: str) -> str:
    """Returns a text that is not empty.

    >>> text("", "Printed: label")
    Traceback (most recent call last):
    ...
    headrace.errors.TopologyError: Printed: label must be a str that is not empty; found str ''
    """
    if isinstance(value, str) and value:
        return value
    message = f"{what} must be a str that is not empty; found {describe_value(value)}"
    raise TopologyError(message)


def topic_config(value: Any, what: str) -> Mapping[str, str]:
    """Returns settings of a topic.

    >>> topic_config({"a": None}, "Materialized: log_config")
    Traceback (most recent call last):
    ...
    headrace.errors.TopologyError: Materialized: log_config must be a mapping of str to str; found dict {'a': None}
    """
    if isinstance(value, Mapping) and all(
        isinstance(name, str) and isinstance(setting, str | int | float) for name, setting in value.items()
    ):
        return value
    message = f"{what} must be a mapping of str to str; found {describe_value(value)}"
    raise TopologyError(message)


def serde(value: Any, what: str, *, error: type[StreamsError] = TopologyError) -> None:
    """Raises unless the value is a serde or None, which stands for a default.

    >>> serde(str, "create_input_topic(): key_serde")
    Traceback (most recent call last):
    ...
    headrace.errors.TopologyError: create_input_topic(): key_serde must be a serde; found type <class 'str'>; \
use for example Serdes.string()
    """
    if value is None:
        return
    has_both = callable(getattr(value, "serializer", None)) and callable(getattr(value, "deserializer", None))
    if has_both and not isinstance(value, type):
        return
    hint = (
        "call it: Serdes.string()"
        if callable(value) and not isinstance(value, type)
        else "use for example Serdes.string()"
    )
    message = f"{what} must be a serde; found {describe_value(value)}; {hint}"
    raise error(message)

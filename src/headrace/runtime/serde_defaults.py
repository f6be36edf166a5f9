"""Serdes of a node, with the application's defaults, as functions for the record loop."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from headrace.config import StreamsConfig
from headrace.serdes import Serde
from headrace.serdes.base import resolved


def key_serde(serde: Serde[Any] | None, config: StreamsConfig) -> Serde[Any]:
    """Returns the serde for keys."""
    return resolved(serde, config.default_key_serde)


def value_serde(serde: Serde[Any] | None, config: StreamsConfig) -> Serde[Any]:
    """Returns the serde for values; what a foreign-key join sends has a key inside."""
    inner_is_key: bool = getattr(serde, "inner_is_key", False)
    return resolved(serde, config.default_key_serde if inner_is_key else config.default_value_serde)


def reader(serde: Serde[Any], topic: str, *, is_key: bool) -> Callable[[bytes], Any]:
    """Returns the fastest function that reads what the serde wrote; what it raises need not explain itself."""
    fast = getattr(serde, "fast_deserializer", None)
    found: Callable[[bytes], Any] | None = None if fast is None else fast(is_key=is_key)
    return serde.deserializer(topic, is_key=is_key) if found is None else found


def writer(serde: Serde[Any], topic: str, *, is_key: bool) -> Callable[[Any], bytes]:
    """Returns the fastest function that writes as the serde does; what it raises need not explain itself."""
    fast = getattr(serde, "fast_serializer", None)
    found: Callable[[Any], bytes] | None = None if fast is None else fast(is_key=is_key)
    return serde.serializer(topic, is_key=is_key) if found is None else found


def explained(error: Exception, careful: Callable[[Any], Any], data: Any) -> Exception:
    """Returns the error of the function that explains itself, for data on which the fast one failed."""
    try:
        careful(data)
    except Exception as better:
        return better
    return error

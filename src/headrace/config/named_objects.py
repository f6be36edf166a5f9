"""Serdes, handlers and functions that a setting names as text: ``module:Name``, or a class of Kafka."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any

from headrace.errors import ConfigError, did_you_mean
from headrace.handlers import (
    DefaultProductionExceptionHandler,
    LogAndContinueExceptionHandler,
    LogAndContinueProcessingExceptionHandler,
    LogAndFailExceptionHandler,
    LogAndFailProcessingExceptionHandler,
)
from headrace.serdes import Serdes
from headrace.timestamps import (
    FailOnInvalidTimestamp,
    LogAndSkipOnInvalidTimestamp,
    UsePartitionTimeOnInvalidTimestamp,
    WallclockTimestampExtractor,
)

_KAFKA = "org.apache.kafka."

_SERDES: Mapping[str, Callable[[], Any]] = {
    "boolean": Serdes.boolean,
    "bytes": Serdes.bytes,
    "double": Serdes.double,
    "float": Serdes.float,
    "integer": Serdes.integer,
    "json": Serdes.json,
    "long": Serdes.long,
    "short": Serdes.short,
    "string": Serdes.string,
    "uuid": Serdes.uuid,
    "void": Serdes.void,
}
_CLASSES: Mapping[str, Callable[[], Any]] = {
    "BooleanSerde": Serdes.boolean,
    "ByteArraySerde": Serdes.bytes,
    "ByteBufferSerde": Serdes.bytes,
    "BytesSerde": Serdes.bytes,
    "DoubleSerde": Serdes.double,
    "FloatSerde": Serdes.float,
    "IntegerSerde": Serdes.integer,
    "LongSerde": Serdes.long,
    "ShortSerde": Serdes.short,
    "StringSerde": Serdes.string,
    "UUIDSerde": Serdes.uuid,
    "VoidSerde": Serdes.void,
    **{
        each.__name__: each
        for each in (
            DefaultProductionExceptionHandler,
            FailOnInvalidTimestamp,
            LogAndContinueExceptionHandler,
            LogAndContinueProcessingExceptionHandler,
            LogAndFailExceptionHandler,
            LogAndFailProcessingExceptionHandler,
            LogAndSkipOnInvalidTimestamp,
            UsePartitionTimeOnInvalidTimestamp,
            WallclockTimestampExtractor,
        )
    },
}


def find_named(setting: str, text: str, *, is_serde: bool = False) -> Any:
    """Returns what a text names; ``setting`` is for messages.

    >>> find_named("default_key_serde", "org.apache.kafka.common.serialization.Serdes$LongSerde", is_serde=True)
    LongSerde()
    >>> find_named("default_value_serde", "json", is_serde=True)
    JsonSerde()
    >>> find_named("default_timestamp_extractor", "headrace.timestamps:WallclockTimestampExtractor")
    <class 'headrace.timestamps.WallclockTimestampExtractor'>
    >>> find_named("default_value_serde", "shop.OrderSerde", is_serde=True)
    Traceback (most recent call last):
    ...
    headrace.errors.ConfigError: default_value_serde: 'shop.OrderSerde' names nothing; write module:Name, such as \
shop:OrderSerde
    """
    name = text.strip()
    if ":" in name:
        return _import_named(setting, name)
    short = name.rpartition(".")[2].rpartition("$")[2] if name.startswith(_KAFKA) else name
    known = {**_CLASSES, **_SERDES} if is_serde else _CLASSES
    if short in known:
        return known[short]()
    module, dot, attribute = name.rpartition(".")
    if name.startswith(_KAFKA) or not dot:
        examples = ", ".join(_SERDES) if is_serde else ", ".join(each for each in _CLASSES if each.startswith("Log"))
        hint = did_you_mean(short, known)
        message = f"{setting}: '{name}' is not known here{hint or f'; write module:Name, or one of {examples}'}"
        raise ConfigError(message)
    message = f"{setting}: '{name}' names nothing; write module:Name, such as {module}:{attribute}"
    raise ConfigError(message)


def _import_named(setting: str, name: str) -> Any:
    place, _, path = name.partition(":")
    try:
        found: Any = import_module(place)
    except ImportError as error:
        message = (
            f"{setting}: '{name}' cannot be imported: {error}; write module:Name, with a module that Python finds from "
            "the current directory or among what is installed"
        )
        raise ConfigError(message) from error
    except ValueError as error:
        message = f"{setting}: '{name}' names no module; write module:Name"
        raise ConfigError(message) from error
    for part in path.split("."):
        if not hasattr(found, part):
            known = [each for each in vars(found) if not each.startswith("_")] if hasattr(found, "__dict__") else []
            message = f"{setting}: '{place}' has no '{path}'{did_you_mean(part, known)}"
            raise ConfigError(message)
        found = getattr(found, part)
    return found

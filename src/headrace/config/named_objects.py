"""Serdes, handlers, partitioners and functions that are named as text: ``module:Name``, or a class of Kafka."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from importlib import import_module
from typing import Any, TypeAlias

from headrace.arguments.signatures import takes
from headrace.errors import ConfigError, TopologyError, did_you_mean
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
_CLOSE = 0.75

FactoriesByName: TypeAlias = Mapping[str, Callable[[], Any]]
"""What makes an object, by the name of its class in Kafka."""


def _by_class_name(*kinds: type[Any]) -> FactoriesByName:
    return {kind.__name__: kind for kind in kinds}


EXTRACTORS = _by_class_name(
    FailOnInvalidTimestamp,
    LogAndSkipOnInvalidTimestamp,
    UsePartitionTimeOnInvalidTimestamp,
    WallclockTimestampExtractor,
)
DESERIALIZATION_HANDLERS = _by_class_name(LogAndContinueExceptionHandler, LogAndFailExceptionHandler)
PROCESSING_HANDLERS = _by_class_name(LogAndContinueProcessingExceptionHandler, LogAndFailProcessingExceptionHandler)
PRODUCTION_HANDLERS = _by_class_name(DefaultProductionExceptionHandler)

_SERDES: FactoriesByName = {
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
_CLASSES: FactoriesByName = {
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
    **EXTRACTORS,
    **DESERIALIZATION_HANDLERS,
    **PROCESSING_HANDLERS,
    **PRODUCTION_HANDLERS,
}

_PARTITIONERS: FactoriesByName = dict.fromkeys(
    ("DefaultPartitioner", "DefaultStreamPartitioner", "WindowedStreamPartitioner"), lambda: None
)
"""Kafka's own ones go by the key, which is what a sink without a partitioner does."""


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
    if is_serde:
        return _find(setting, text, {**_CLASSES, **_SERDES}, _SERDES)
    return _find(setting, text, _CLASSES, [each for each in _CLASSES if each.startswith("Log")])


def find_partitioner(where: str, text: str) -> Callable[..., Any] | None:
    """Returns the partitioner that a text names; None for those of Kafka that go by the key, as is usual.

    >>> find_partitioner("Produced: partitioner", "org.apache.kafka.clients.producer.internals.DefaultPartitioner")
    >>> find_partitioner("Produced: partitioner", "org.apache.kafka.clients.producer.RoundRobinPartitioner")
    Traceback (most recent call last):
    ...
    headrace.errors.TopologyError: Produced: partitioner: 'org.apache.kafka.clients.producer.RoundRobinPartitioner' \
is not known here; write module:Name, or one of DefaultPartitioner, DefaultStreamPartitioner, WindowedStreamPartitioner
    """
    try:
        found: Any = _find(where, text, _PARTITIONERS, _PARTITIONERS)
    except ConfigError as error:
        raise TopologyError(str(error)) from error
    made: Callable[..., Any] | None = found() if isinstance(found, type) and takes(found, 0) else found
    return made


def _find(setting: str, text: str, known: FactoriesByName, examples: Iterable[str]) -> Any:
    name = text.strip()
    if ":" in name:
        return _import_named(setting, name)
    short = name.rpartition(".")[2].rpartition("$")[2] if name.startswith(_KAFKA) else name
    if short in known:
        return known[short]()
    module, dot, attribute = name.rpartition(".")
    if name.startswith(_KAFKA) or not dot:
        remedy = did_you_mean(short, known, cutoff=_CLOSE) or f"; write module:Name, or one of {', '.join(examples)}"
        message = f"{setting}: '{name}' is not known here{remedy}"
    else:
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

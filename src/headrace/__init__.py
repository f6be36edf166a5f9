"""Headrace: Kafka Streams' programming model for Python, on Apache Spark.

A topology is written once. ``Streams`` runs it on Spark, exactly once, on a topic log that needs no server;
``TopologyTestDriver`` runs it in this process, for tests.

Where to start reading: ``dsl`` is what programs are written in (``StreamsBuilder``, ``KStream``, ``KTable``); it adds
nodes to a ``topology``; ``operators`` has one small function per node; ``runtime`` composes them into a task, which
takes a record or a clock tick and gives records. Two hosts feed tasks: ``testing`` in this process, ``spark`` in
micro-batches on a cluster or this machine; ``app`` has the handle of a running application. ``topics`` has the log,
``state`` the stores, ``processor`` the Processor API, and ``record``, ``serdes``, ``windows``, ``config``, ``errors``
the vocabulary.

Importing this package loads neither pyspark, nor a Kafka client, nor a web framework.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from headrace.config import StreamsConfig
from headrace.dsl import (
    Branched,
    BranchedKStream,
    BufferConfig,
    CogroupedKStream,
    Consumed,
    GlobalKTable,
    Grouped,
    Joined,
    KGroupedStream,
    KGroupedTable,
    KStream,
    KTable,
    Materialized,
    Named,
    Printed,
    Produced,
    Repartitioned,
    SessionWindowedCogroupedKStream,
    SessionWindowedKStream,
    StreamJoined,
    StreamsBuilder,
    Suppressed,
    TableJoined,
    TimeWindowedCogroupedKStream,
    TimeWindowedKStream,
)
from headrace.errors import (
    ConfigError,
    DeserializationError,
    InvalidStateStoreError,
    ProcessingError,
    ProcessorStateError,
    ProductionError,
    SerializationError,
    StreamsError,
    TopologyError,
    UnknownStateStoreError,
    UnsupportedOperationError,
    did_you_mean,
)
from headrace.handlers import (
    DeadLetter,
    DefaultProductionExceptionHandler,
    ErrorContext,
    FailedOutput,
    LateRecord,
    LogAndContinueExceptionHandler,
    LogAndContinueProcessingExceptionHandler,
    LogAndFailExceptionHandler,
    LogAndFailProcessingExceptionHandler,
    Response,
    StreamThreadExceptionResponse,
    dead_letter,
)
from headrace.processor import (
    Cancellable,
    FixedKeyProcessor,
    FixedKeyProcessorContext,
    ProcessingContext,
    Processor,
    ProcessorContext,
    ProcessorWrapper,
    PunctuationType,
    RecordContext,
    ValueTransformerContext,
    ValueTransformerWithKey,
)
from headrace.record import (
    Change,
    FixedKeyRecord,
    Headers,
    KeyValue,
    Record,
    RecordMetadata,
    ValueAndTimestamp,
    VersionedRecord,
    WithKey,
    has_value,
    with_key,
)
from headrace.serdes import Serde, Serdes
from headrace.state import (
    KeyValueStore,
    Migration,
    SessionStore,
    StateStore,
    StateStoreContext,
    StoreBuilder,
    Stores,
    TimestampedKeyValueStore,
    TimestampedWindowStore,
    VersionedKeyValueStore,
    WindowStore,
)
from headrace.testing import (
    MockProcessorContext,
    TestInputTopic,
    TestOutputTopic,
    TestRecord,
    TopologyTestDriver,
)
from headrace.timestamps import (
    ConsumedRecord,
    FailOnInvalidTimestamp,
    LogAndSkipOnInvalidTimestamp,
    UsePartitionTimeOnInvalidTimestamp,
    WallclockTimestampExtractor,
)
from headrace.topology import AutoOffsetReset, Topology, TopologyDescription
from headrace.windows import (
    EmitStrategy,
    JoinWindows,
    SessionWindow,
    SessionWindows,
    SlidingWindows,
    TimeWindow,
    TimeWindows,
    UnlimitedWindows,
    Window,
    Windowed,
    Windows,
)

if TYPE_CHECKING:
    from headrace.app import Streams, StreamsState
    from headrace.clients import Consumer, Producer
    from headrace.topics.embedded import EmbeddedLog

__version__ = "0.1.0"

# Loaded when they are asked for: what runs an application needs more packages than what describes it.
_LAZY = {
    "Consumer": "headrace.clients",
    "EmbeddedLog": "headrace.topics.embedded",
    "Producer": "headrace.clients",
    "Streams": "headrace.app",
    "StreamsState": "headrace.app",
}


def __getattr__(name: str) -> Any:
    home = _LAZY.get(name)
    if home is None:
        hint = did_you_mean(name.removeprefix("Kafka").replace("Exception", "Error"), __all__)
        message = f"module 'headrace' has no attribute '{name}'{hint}"
        raise AttributeError(message)
    return getattr(import_module(home), name)


__all__ = [
    "AutoOffsetReset",
    "Branched",
    "BranchedKStream",
    "BufferConfig",
    "Cancellable",
    "Change",
    "CogroupedKStream",
    "ConfigError",
    "Consumed",
    "ConsumedRecord",
    "Consumer",
    "DeadLetter",
    "DefaultProductionExceptionHandler",
    "DeserializationError",
    "EmbeddedLog",
    "EmitStrategy",
    "ErrorContext",
    "FailOnInvalidTimestamp",
    "FailedOutput",
    "FixedKeyProcessor",
    "FixedKeyProcessorContext",
    "FixedKeyRecord",
    "GlobalKTable",
    "Grouped",
    "Headers",
    "InvalidStateStoreError",
    "JoinWindows",
    "Joined",
    "KGroupedStream",
    "KGroupedTable",
    "KStream",
    "KTable",
    "KeyValue",
    "KeyValueStore",
    "LateRecord",
    "LogAndContinueExceptionHandler",
    "LogAndContinueProcessingExceptionHandler",
    "LogAndFailExceptionHandler",
    "LogAndFailProcessingExceptionHandler",
    "LogAndSkipOnInvalidTimestamp",
    "Materialized",
    "Migration",
    "MockProcessorContext",
    "Named",
    "Printed",
    "ProcessingContext",
    "ProcessingError",
    "Processor",
    "ProcessorContext",
    "ProcessorStateError",
    "ProcessorWrapper",
    "Produced",
    "Producer",
    "ProductionError",
    "PunctuationType",
    "Record",
    "RecordContext",
    "RecordMetadata",
    "Repartitioned",
    "Response",
    "Serde",
    "Serdes",
    "SerializationError",
    "SessionStore",
    "SessionWindow",
    "SessionWindowedCogroupedKStream",
    "SessionWindowedKStream",
    "SessionWindows",
    "SlidingWindows",
    "StateStore",
    "StateStoreContext",
    "StoreBuilder",
    "Stores",
    "StreamJoined",
    "StreamThreadExceptionResponse",
    "Streams",
    "StreamsBuilder",
    "StreamsConfig",
    "StreamsError",
    "StreamsState",
    "Suppressed",
    "TableJoined",
    "TestInputTopic",
    "TestOutputTopic",
    "TestRecord",
    "TimeWindow",
    "TimeWindowedCogroupedKStream",
    "TimeWindowedKStream",
    "TimeWindows",
    "TimestampedKeyValueStore",
    "TimestampedWindowStore",
    "Topology",
    "TopologyDescription",
    "TopologyError",
    "TopologyTestDriver",
    "UnknownStateStoreError",
    "UnlimitedWindows",
    "UnsupportedOperationError",
    "UsePartitionTimeOnInvalidTimestamp",
    "ValueAndTimestamp",
    "ValueTransformerContext",
    "ValueTransformerWithKey",
    "VersionedKeyValueStore",
    "VersionedRecord",
    "WallclockTimestampExtractor",
    "Window",
    "WindowStore",
    "Windowed",
    "Windows",
    "WithKey",
    "dead_letter",
    "has_value",
    "with_key",
]

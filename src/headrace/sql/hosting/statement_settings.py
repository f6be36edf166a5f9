"""Settings that a statement may give to the application that runs it; all others are the operator's."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from headrace.config.named_objects import (
    DESERIALIZATION_HANDLERS,
    EXTRACTORS,
    PROCESSING_HANDLERS,
    PRODUCTION_HANDLERS,
    FactoriesByName,
)

STREAMS_PREFIX = "ksql.streams."
"""Settings with this prefix are those of the applications that run queries."""

NAMED: Mapping[str, FactoriesByName] = {
    "default.timestamp.extractor": EXTRACTORS,
    "default.deserialization.exception.handler": DESERIALIZATION_HANDLERS,
    "deserialization.exception.handler": DESERIALIZATION_HANDLERS,
    "default.production.exception.handler": PRODUCTION_HANDLERS,
    "production.exception.handler": PRODUCTION_HANDLERS,
    "processing.exception.handler": PROCESSING_HANDLERS,
}
"""Settings whose values are objects: a statement chooses one of these by its name, with or without Kafka's package."""

OF_STATEMENTS = frozenset(
    {
        "__emit.interval.ms.kstreams.outer.join.spurious.results.fix__",
        "__emit.interval.ms.kstreams.windowed.aggregation__",
        "auto.offset.reset",
        "buffered.records.per.partition",
        "cache.max.bytes.buffering",
        "commit.interval.ms",
        "consumer.auto.offset.reset",
        "default.dsl.store",
        "emit.interval.ms",
        "main.consumer.auto.offset.reset",
        "max.batch.records",
        "max.task.idle.ms",
        "metrics.recording.level",
        "num.standby.replicas",
        "num.stream.threads",
        "on.offset.out.of.range",
        "poll.ms",
        "processing.guarantee",
        "replication.factor",
        "statestore.cache.max.bytes",
        "task.timeout.ms",
        "topology.optimization",
        "windowstore.changelog.additional.retention.ms",
        *NAMED,
    }
)
"""What a statement may set, with or without ``ksql.streams.`` before it: nothing that names a file, a directory, an
address, a program, a topic or a credential."""


# Any: what a setting may be.
def streams_value(name: str, value: Any) -> Any:
    """Returns the value of an application's setting: the object where a statement gives the name of one.

    >>> streams_value("default.timestamp.extractor", "org.apache.kafka.streams.processor.WallclockTimestampExtractor")
    WallclockTimestampExtractor()
    >>> streams_value("commit.interval.ms", "100")
    '100'
    """
    makers = NAMED.get(name)
    if makers is None or not isinstance(value, str):
        return value
    make = makers.get(value.rpartition(".")[2])
    return value if make is None else make()

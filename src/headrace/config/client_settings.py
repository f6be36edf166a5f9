"""Settings of Kafka's Java clients that a configuration of Kafka Streams names without a prefix.

Kafka Streams gives such a setting to every client that knows it. Here it gets the prefix of its client, so that there
is one place where clients look.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

from headrace.errors import ConfigError

logger = logging.getLogger(__name__)

_CONSUMER = frozenset(
    {
        "allow.auto.create.topics",
        "auto.offset.reset",
        "check.crcs",
        "client.rack",
        "default.api.timeout.ms",
        "exclude.internal.topics",
        "fetch.max.bytes",
        "fetch.max.wait.ms",
        "fetch.min.bytes",
        "isolation.level",
        "max.partition.fetch.bytes",
    }
)
_PRODUCER = frozenset(
    {
        "acks",
        "batch.size",
        "buffer.memory",
        "compression.gzip.level",
        "compression.lz4.level",
        "compression.type",
        "compression.zstd.level",
        "delivery.timeout.ms",
        "enable.idempotence",
        "linger.ms",
        "max.block.ms",
        "max.in.flight.requests.per.connection",
        "max.request.size",
        "metadata.max.idle.ms",
        "partitioner.adaptive.partitioning.enable",
        "partitioner.availability.timeout.ms",
        "partitioner.ignore.keys",
        "retries",
        "transaction.timeout.ms",
    }
)

_NO_GROUP = "tasks are placed by the host, not by a consumer group"
WITHOUT_EFFECT = {
    "auto.commit.interval.ms": "what was read is committed with the results; see commit.interval.ms",
    "enable.auto.commit": "what was read is committed with the results",
    "group.instance.id": _NO_GROUP,
    "group.remote.assignor": _NO_GROUP,
    "heartbeat.interval.ms": _NO_GROUP,
    "interceptor.classes": "clients of librdkafka have no interceptors",
    "max.poll.interval.ms": _NO_GROUP,
    "max.poll.records": "a micro-batch reads up to max.batch.records",
    "partition.assignment.strategy": _NO_GROUP,
    "session.timeout.ms": _NO_GROUP,
}
"""Settings of clients that mean nothing here: they are taken with a warning, and the reason."""

REPLACED = {
    "group.id": "the consumer group of an application has the name of the application; set application.id",
    "key.deserializer": "topologies read keys with serdes; set default.key.serde",
    "key.serializer": "topologies write keys with serdes; set default.key.serde",
    "partitioner.class": "a partitioner belongs to a topic that is written; pass it as Produced(partitioner=…)",
    "transactional.id": "every task has one of its own, which begins with application.id; set application.id",
    "value.deserializer": "topologies read values with serdes; set default.value.serde",
    "value.serializer": "topologies write values with serdes; set default.value.serde",
}
"""Settings of clients that are refused, and what to set instead."""


def client_prefix(name: str) -> str | None:
    """Returns the prefix of the client that a setting belongs to; None if it belongs to none of them.

    >>> client_prefix("auto.offset.reset"), client_prefix("acks"), client_prefix("poll.ms")
    ('consumer.', 'producer.', None)
    """
    if name in _CONSUMER:
        return "consumer."
    return "producer." if name in _PRODUCER else None


def is_client_setting(name: str) -> bool:
    """Tells whether a name without a prefix is one of Java's clients.

    >>> is_client_setting("max.poll.records"), is_client_setting("max.batch.records")
    (True, False)
    """
    return client_prefix(name) is not None or name in WITHOUT_EFFECT or name in REPLACED


def prefix_client_settings(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Returns settings with the prefix of the client that each belongs to. A name that has a prefix wins.

    >>> prefix_client_settings({"acks": "all", "auto.offset.reset": "latest", "consumer.auto.offset.reset": "earliest"})
    {'producer.acks': 'all', 'consumer.auto.offset.reset': 'earliest'}
    >>> prefix_client_settings({"group.id": "orders"})
    Traceback (most recent call last):
    ...
    headrace.errors.ConfigError: setting 'group.id' is none of an application: the consumer group of an application \
has the name of the application; set application.id
    """
    found: dict[str, Any] = {}
    for name, value in settings.items():
        prefix = client_prefix(name)
        if name in REPLACED:
            message = f"setting '{name}' is none of an application: {REPLACED[name]}"
            raise ConfigError(message)
        if name in WITHOUT_EFFECT:
            logger.warning("setting '%s' has no effect: %s", name, WITHOUT_EFFECT[name])
        elif prefix is None:
            found[name] = value
        elif f"{prefix}{name}" not in settings:
            found[f"{prefix}{name}"] = value
    return found

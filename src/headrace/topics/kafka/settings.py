"""The settings of Kafka's clients: what reading and writing exactly once needs, and what the user adds."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from headrace.config import StreamsConfig
from headrace.config.client_settings import WITHOUT_EFFECT
from headrace.config.settings import CLIENT_SETTINGS
from headrace.errors import ConfigError, describe_value

logger = logging.getLogger(__name__)

# As in Java: librdkafka waits ten times as long for a broker that was restarted.
_COMMON: Mapping[str, Any] = {"reconnect.backoff.max.ms": 1000}
# The default of a second makes the fetcher sleep whenever its queue is full, which costs nine tenths of the throughput.
# The end of a partition is only announced after a fetch that found nothing, so such a fetch must be short.
_CONSUMER: Mapping[str, Any] = {
    "isolation.level": "read_committed",
    "fetch.queue.backoff.ms": 2,
    "fetch.wait.max.ms": 10,
    "fetch.message.max.bytes": 4_000_000,
    "queued.min.messages": 100_000,
    "queued.max.messages.kbytes": 32_768,
}
_CONSUMER_FIXED: Mapping[str, Any] = {
    "enable.partition.eof": True,
    "enable.auto.commit": False,
    "enable.auto.offset.store": False,
    "auto.offset.reset": "error",
    "allow.auto.create.topics": False,
}
# Records of tasks, changelogs and inputs that were aborted would be taken for committed ones.
_EXACTLY_ONCE: Mapping[str, Any] = {"isolation.level": "read_committed"}
_PRODUCER: Mapping[str, Any] = {
    "linger.ms": 5,
    "batch.size": 1_000_000,
    "compression.type": "lz4",
    "queue.buffering.max.messages": 500_000,
    "queue.buffering.max.kbytes": 262_144,
}
_PRODUCER_FIXED: Mapping[str, Any] = {"enable.idempotence": True}
# A task opens its transaction when it has its results, so this is for writing them. It is also how long readers wait
# behind what a process has left open that was killed and never came back.
_TRANSACTION: Mapping[str, Any] = {"transaction.timeout.ms": 60_000}

_MESSAGE_BYTES = 1_000_000
"""Default limit of clients and brokers for one record, about."""

# Java's names for what librdkafka has under another one.
_RENAMED = {
    "max.request.size": "message.max.bytes",
    "receive.buffer.bytes": "socket.receive.buffer.bytes",
    "send.buffer.bytes": "socket.send.buffer.bytes",
    "fetch.max.wait.ms": "fetch.wait.max.ms",
}
# Settings of Java's clients that have no meaning here, or that belong to the engine.
_WITHOUT_EFFECT = WITHOUT_EFFECT.keys() | {
    "auto.offset.reset",  # the engine reads it where it plans
    "buffer.memory",
    "compression.gzip.level",
    "compression.lz4.level",
    "compression.zstd.level",
    "default.api.timeout.ms",
    "exclude.internal.topics",
    "key.deserializer",
    "key.serializer",
    "max.block.ms",
    "metadata.max.idle.ms",
    "partitioner.adaptive.partitioning.enable",
    "partitioner.availability.timeout.ms",
    "partitioner.class",
    "partitioner.ignore.keys",
    "security.providers",
    "socket.connection.setup.timeout.max.ms",
    "value.deserializer",
    "value.serializer",
}


@dataclass(frozen=True)
class ClientSettings:
    """Settings of clients; they pickle, and equal settings share their clients within a process."""

    bootstrap_servers: str
    consumer: Mapping[str, Any] = field(default_factory=dict)
    producer: Mapping[str, Any] = field(default_factory=dict)
    admin: Mapping[str, Any] = field(default_factory=dict)
    replication_factor: int = -1
    """Of topics that are created; -1 leaves it to the brokers."""
    exactly_once: bool = True
    """Whether tasks write in transactions."""
    task_timeout_s: float = 300.0
    """How long brokers are waited for that are away."""

    @classmethod
    def of(cls, config: StreamsConfig) -> ClientSettings:
        """Takes them from an application's configuration, with Kafka Streams' prefixes.

        >>> config = StreamsConfig(bootstrap_servers="b:9092", extras={"consumer.fetch.max.wait.ms": 50})
        >>> ClientSettings.of(config).consumer
        {'fetch.max.wait.ms': 50}
        """
        if config.bootstrap_servers is None:
            message = "bootstrap_servers is not set; name a broker, such as 'localhost:9092'"
            raise ConfigError(message)
        common = {
            name: value
            for name, value in config.extras.items()
            if name in CLIENT_SETTINGS or name.startswith(("sasl.", "ssl."))
        }
        producer = config.prefixed("producer.")
        if str(producer.get("acks", "all")).lower() not in ("all", "-1"):
            message = (
                f"producer.acks must be 'all': what tasks have written must outlive a broker; found "
                f"{describe_value(producer['acks'])}; leave it out"
            )
            raise ConfigError(message)
        return cls(
            config.bootstrap_servers,
            common | config.prefixed("consumer.", "main.consumer."),
            common | producer,
            common | config.prefixed("admin."),
            config.replication_factor,
            config.exactly_once,
            config.task_timeout.total_seconds(),
        )

    @property
    def identity(self) -> str:
        """Equal for settings that can share clients."""
        each = (sorted(given.items()) for given in (self.consumer, self.producer, self.admin))
        own = (self.replication_factor, self.exactly_once, self.task_timeout_s)
        return repr((self.bootstrap_servers, *each, *own))

    def for_consumer(self, group: str) -> dict[str, Any]:
        """Returns the settings of a consumer; it never joins the group."""
        return {
            **self._common(),
            **_CONSUMER,
            **_to_librdkafka(self.consumer),
            **_CONSUMER_FIXED,
            **(_EXACTLY_ONCE if self.exactly_once else {}),
            "group.id": group,
        }

    def for_producer(self, transactional_id: str | None = None) -> dict[str, Any]:
        own = {} if transactional_id is None else {**_TRANSACTION, **_chosen(self.producer, _TRANSACTION)}
        common = {key: value for key, value in _to_librdkafka(self.producer).items() if key not in _TRANSACTION}
        named = {} if transactional_id is None else {"transactional.id": transactional_id}
        return {**self._common(), **_PRODUCER, **common, **own, **_PRODUCER_FIXED, **named}

    @property
    def transaction_timeout_ms(self) -> int:
        return int(self.for_producer("")["transaction.timeout.ms"])

    @property
    def max_message_bytes(self) -> int:
        return int(self.for_producer().get("message.max.bytes", _MESSAGE_BYTES))

    def for_admin(self) -> dict[str, Any]:
        return {**self._common(), **_to_librdkafka(self.admin)}

    def _common(self) -> dict[str, Any]:
        return {**_COMMON, "bootstrap.servers": self.bootstrap_servers}


def _chosen(given: Mapping[str, Any], names: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in given.items() if key in names}


def _to_librdkafka(given: Mapping[str, Any]) -> dict[str, Any]:
    """Returns settings by librdkafka's names."""
    named = {}
    for key, value in given.items():
        if key in _WITHOUT_EFFECT:
            logger.debug("setting '%s' of Java's clients has no effect here", key)
        else:
            named[_RENAMED.get(key, key)] = value
    return named

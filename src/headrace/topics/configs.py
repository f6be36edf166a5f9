"""The settings of a topic: Kafka's names and values, checked before a log gets them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from headrace.errors import TopicError, describe_value, did_you_mean
from headrace.topics.log import Topic

_NAME = re.compile(r"[a-zA-Z0-9._-]{1,249}")
_POLICIES = ("delete", "compact", "compact,delete", "delete,compact")

# Accepted and kept, because programs for Kafka set them; the embedded log has no segments, replicas or compression.
_KEPT = frozenset(
    {
        "compression.type",
        "file.delete.delay.ms",
        "flush.messages",
        "flush.ms",
        "index.interval.bytes",
        "leader.replication.throttled.replicas",
        "follower.replication.throttled.replicas",
        "local.retention.bytes",
        "local.retention.ms",
        "max.compaction.lag.ms",
        "max.message.bytes",
        "message.timestamp.after.max.ms",
        "message.timestamp.before.max.ms",
        "message.timestamp.type",
        "min.insync.replicas",
        "preallocate",
        "remote.storage.enable",
        "segment.bytes",
        "segment.index.bytes",
        "segment.jitter.ms",
        "segment.ms",
        "unclean.leader.election.enable",
    }
)


@dataclass(frozen=True)
class Cleanup:
    """Cleanup policy of a topic, from its settings.

    Kafka forgets after seven days by default, by the records' own timestamps; here nothing goes unless it is asked for,
    because input with old timestamps would vanish before it is read.
    """

    delete: bool = True
    compact: bool = False
    retention_ms: int = -1
    retention_bytes: int = -1
    delete_retention_ms: int = 86_400_000
    """How long a tombstone stays after everything before it is gone."""
    min_compaction_lag_ms: int = 0
    min_dirty_ratio: float = 0.5

    @classmethod
    def of(cls, configs: Mapping[str, str]) -> Cleanup:
        """Reads checked settings.

        >>> Cleanup.of({"cleanup.policy": "compact,delete", "retention.ms": "1000"})
        Cleanup(delete=True, compact=True, retention_ms=1000, ...)
        """
        policy = configs.get("cleanup.policy", "delete")
        return cls(
            delete="delete" in policy,
            compact="compact" in policy,
            retention_ms=int(configs.get("retention.ms", -1)),
            retention_bytes=int(configs.get("retention.bytes", -1)),
            delete_retention_ms=int(configs.get("delete.retention.ms", cls.delete_retention_ms)),
            min_compaction_lag_ms=int(configs.get("min.compaction.lag.ms", 0)),
            min_dirty_ratio=float(configs.get("min.cleanable.dirty.ratio", cls.min_dirty_ratio)),
        )


_MINIMUMS = {
    "retention.ms": -1,
    "retention.bytes": -1,
    "delete.retention.ms": 0,
    "min.compaction.lag.ms": 0,
}
_KNOWN = frozenset({"cleanup.policy", "min.cleanable.dirty.ratio", *_MINIMUMS}) | _KEPT


def new_topic(name: object, partitions: object, configs: Mapping[str, object] | None) -> Topic:
    """Returns the topic as it will be created; raises if a setting is wrong.

    >>> new_topic("users", 2, {"cleanup.policy": "compact", "retention.ms": 1000}).configs
    {'cleanup.policy': 'compact', 'retention.ms': '1000'}
    >>> new_topic("users", 2, {"retention": 1000})
    Traceback (most recent call last):
    ...
    headrace.errors.TopicError: topic 'users': there is no setting 'retention'; did you mean 'retention.ms'?
    >>> new_topic("two words", 2, None)
    Traceback (most recent call last):
    ...
    headrace.errors.TopicError: a topic name has 1 to 249 letters, digits, dots, underscores, hyphens; found str \
'two words'; choose another name
    """
    if not (isinstance(name, str) and _NAME.fullmatch(name) and name not in (".", "..")):
        message = (
            "a topic name has 1 to 249 letters, digits, dots, underscores, hyphens; "
            f"found {describe_value(name)}; choose another name"
        )
        raise TopicError(message)
    if not isinstance(partitions, int) or isinstance(partitions, bool) or not 1 <= partitions <= 100_000:
        message = f"topic '{name}': partitions must be a number from 1 to 100000; found {describe_value(partitions)}"
        raise TopicError(message)
    return Topic(name, partitions, {key: _check_config(name, key, value) for key, value in (configs or {}).items()})


def check_growth(topic: Topic, partitions: int) -> None:
    """Complains about fewer partitions than a topic has.

    >>> check_growth(Topic("users", 4), 2)
    Traceback (most recent call last):
    ...
    headrace.errors.TopicError: topic 'users' has 4 partitions, and can never have fewer; 2 were asked for
    """
    if partitions < topic.partitions:
        message = (
            f"topic '{topic.name}' has {topic.partitions} partitions, and can never have fewer; {partitions} were "
            "asked for"
        )
        raise TopicError(message)


def _check_config(topic: str, key: str, value: object) -> str:
    if key not in _KNOWN:
        message = f"topic '{topic}': there is no setting '{key}'{did_you_mean(key, sorted(_KNOWN))}"
        raise TopicError(message)
    text = str(value).replace(" ", "")
    if key == "cleanup.policy":
        fits, required = text in _POLICIES, "'delete', 'compact' or 'compact,delete'"
    elif key == "min.cleanable.dirty.ratio":
        fits, required = _is_ratio(text), "a number from 0 to 1"
    elif key in _MINIMUMS:
        least = _MINIMUMS[key]
        fits, required = _is_whole(text, least), f"a whole number, at least {least}"
    else:
        return str(value)
    if not fits:
        message = f"topic '{topic}': {key} must be {required}; found {describe_value(value)}"
        raise TopicError(message)
    return text


def _is_whole(text: str, least: int) -> bool:
    return re.fullmatch(r"-?\d{1,18}", text) is not None and int(text) >= least


def _is_ratio(text: str) -> bool:
    return re.fullmatch(r"\d+(\.\d*)?|\.\d+", text) is not None and float(text) <= 1

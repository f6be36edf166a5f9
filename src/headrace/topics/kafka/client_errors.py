"""Errors of Kafka's client as ours, with the operation, the broker's reason and the remedy."""

from __future__ import annotations

from collections.abc import Iterable

from confluent_kafka import KafkaError, KafkaException

from headrace.errors import (
    ConfigError,
    LogError,
    OffsetOutOfRangeError,
    RetriableError,
    StreamsError,
    TaskMigratedError,
    TopicError,
    UnknownTopicError,
    did_you_mean,
)
from headrace.topics.log import TopicPartition

ABSENT = frozenset(
    {
        KafkaError._TRANSPORT,
        KafkaError._ALL_BROKERS_DOWN,
        KafkaError._RESOLVE,
        KafkaError._TIMED_OUT,
        KafkaError._MSG_TIMED_OUT,
    }
)
FENCED = frozenset({KafkaError._FENCED, KafkaError.PRODUCER_FENCED, KafkaError.INVALID_PRODUCER_EPOCH})
PURGED = frozenset({KafkaError._PURGE_QUEUE, KafkaError._PURGE_INFLIGHT})
"""Of records that the client throws away because their producer has failed: it was fenced while they waited."""
UNKNOWN = frozenset(
    {
        KafkaError.UNKNOWN_TOPIC_OR_PART,
        KafkaError.TOPIC_EXCEPTION,  # not even a name
        KafkaError._UNKNOWN_TOPIC,
        KafkaError._UNKNOWN_PARTITION,
        KafkaError._NOENT,
    }
)
_REFUSED = frozenset(
    {
        KafkaError._AUTHENTICATION,
        KafkaError.SASL_AUTHENTICATION_FAILED,
        KafkaError.TOPIC_AUTHORIZATION_FAILED,
        KafkaError.GROUP_AUTHORIZATION_FAILED,
        KafkaError.CLUSTER_AUTHORIZATION_FAILED,
        KafkaError.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
        KafkaError._SSL,
    }
)
_LARGE = frozenset({KafkaError.MSG_SIZE_TOO_LARGE, KafkaError.RECORD_LIST_TOO_LARGE})
_NOT_POSSIBLE = frozenset(
    {
        KafkaError.INVALID_REPLICATION_FACTOR,
        KafkaError.INVALID_PARTITIONS,
        KafkaError.INVALID_CONFIG,
        KafkaError.POLICY_VIOLATION,
    }
)


def is_refusal(error: KafkaError) -> bool:
    """Tells whether brokers do not let the user in."""
    return error.code() in _REFUSED


def error_of(exception: KafkaException) -> KafkaError:
    """Returns what an exception of the client carries."""
    found = exception.args[0]
    assert isinstance(found, KafkaError), "the client's exceptions carry its errors"
    return found


def explain(error: KafkaError, doing: str, servers: str) -> StreamsError:
    """Returns the error to raise."""
    code, said = error.code(), error.str()
    if code in (KafkaError._INVALID_ARG, KafkaError._CONFLICT) and "onfiguration" in said:
        return ConfigError(f"a setting of Kafka's client is not accepted: {said}; correct or remove it")
    if code in ABSENT:
        message = (
            f"Kafka at '{servers}' did not answer in time while {doing} ({said}); check that it runs and that "
            "bootstrap_servers is right"
        )
        return RetriableError(message)
    if code in FENCED:
        message = f"another process has taken over while {doing} ({said}); it goes on there"
        return TaskMigratedError(message)
    if code == KafkaError.INVALID_PRODUCER_ID_MAPPING:
        message = (
            f"brokers have forgotten the producer while {doing} ({said}), which had written nothing for longer than "
            "their 'transactional.id.expiration.ms': it is made anew"
        )
        return RetriableError(message)
    if code in _REFUSED:
        message = (
            f"Kafka at '{servers}' refused {doing}: {said}; check 'security.protocol', the 'sasl.' and 'ssl.' "
            "settings, and what the user may do"
        )
        return LogError(message)
    if code in _LARGE:
        message = (
            f"a record is too large ({said}) while {doing}; raise 'max.message.bytes' of the topic and "
            "'producer.max.request.size', or write smaller records"
        )
        return TopicError(message)
    if code in _NOT_POSSIBLE:
        message = f"Kafka at '{servers}' cannot do this while {doing}: {said}; ask for what its brokers allow"
        return TopicError(message)
    if code == KafkaError.INVALID_TIMESTAMP:
        message = (
            f"a record's time is too far ahead of the broker's clock while {doing}; raise "
            "'message.timestamp.after.max.ms' of the topic, or correct the record's time"
        )
        return TopicError(message)
    if error.retriable():
        return RetriableError(f"Kafka at '{servers}' could not go on with {doing}: {said}; try again")
    return LogError(f"Kafka at '{servers}' failed at {doing}: {said} ({error.name()})")


def exception_of(error: BaseException | None) -> KafkaException | None:
    """Returns the client's exception that an error is, or stands for.

    After a fatal error the client still reports deliveries, with that error set: the report stumbles over it, and what
    comes out is the interpreter's complaint about that.
    """
    if isinstance(error, SystemError):
        error = error.__cause__
    return error if isinstance(error, KafkaException) else None


# These are around every request, and as generators they would cost more than many of them.
class unwrapping:
    """Raises what the client meant to raise."""

    __slots__ = ()

    def __enter__(self) -> None:
        pass

    def __exit__(self, _kind: object, error: BaseException | None, _trace: object) -> None:
        exception = exception_of(error)
        if exception is not None and exception is not error:
            raise exception from None


class explaining:
    """Turns exceptions of the client into ours."""

    __slots__ = ("_doing", "_servers")

    def __init__(self, doing: str, servers: str) -> None:
        self._doing, self._servers = doing, servers

    def __enter__(self) -> None:
        pass

    def __exit__(self, _kind: object, error: BaseException | None, _trace: object) -> None:
        exception = exception_of(error)
        if exception is not None:
            raise explain(error_of(exception), self._doing, self._servers) from exception


def unknown_topic(name: str, known: Iterable[str]) -> UnknownTopicError:
    """Returns the error for a topic that is not there."""
    hint = did_you_mean(name, known) or f"; create it first: log.create_topic('{name}', partitions=…)"
    return UnknownTopicError(f"there is no topic '{name}' in the log{hint}", topic=name)


def out_of_range(target: TopicPartition, start: int, begin: int, end: int) -> OffsetOutOfRangeError:
    """Returns the error for an offset that a partition does not have."""
    topic, partition = target
    why = "what lay before was removed" if start < begin else "the topic was perhaps deleted and made anew"
    message = (
        f"partition {partition} of topic '{topic}' has offsets {begin} to {end}; offset {start} was asked for; {why}: "
        f"start from {begin} (for an application: on_offset_out_of_range), or reset the application"
    )
    return OffsetOutOfRangeError(message, begin=begin, end=end)

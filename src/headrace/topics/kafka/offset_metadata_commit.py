"""Commit of offsets with metadata that Java can read.

The Python client hands metadata to the C library together with the zero byte that ends a string in C, and so it lies in
the broker. Java does not take it for base64 then, and Kafka Streams goes on as if there were none. So these offsets are
committed by calls of the C library itself, which Python's client has loaded.
"""

from __future__ import annotations

import ctypes
import time
from collections.abc import Mapping
from functools import cache
from typing import Any

from confluent_kafka import KafkaError, KafkaException, cimpl

from headrace.topics.consumer_group import GroupOffset
from headrace.topics.kafka.clients import Clients
from headrace.topics.log import TopicPartition

_CONSUMER = 1
_TEXT_BYTES = 512
_PAUSE_S = 0.05
_NOT_READY = frozenset(
    {
        KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
        KafkaError.COORDINATOR_NOT_AVAILABLE,
        KafkaError.NOT_COORDINATOR,
        KafkaError._WAIT_COORD,
    }
)


class _Place(ctypes.Structure):
    """``rd_kafka_topic_partition_t``."""

    _fields_ = (
        ("topic", ctypes.c_char_p),
        ("partition", ctypes.c_int32),
        ("offset", ctypes.c_int64),
        ("metadata", ctypes.c_void_p),
        ("metadata_size", ctypes.c_size_t),
        ("opaque", ctypes.c_void_p),
        ("error", ctypes.c_int),
        ("private", ctypes.c_void_p),
    )


def commit_with_metadata(clients: Clients, group: str, offsets: Mapping[TopicPartition, GroupOffset]) -> None:
    """Commits offsets of a group that has no members; raises KafkaException."""
    library, handle = _library(), _open(clients, group)
    try:
        deadline = time.monotonic() + clients.patience_s
        while (code := _commit(library, handle, offsets)) != 0:
            if code not in _NOT_READY or time.monotonic() > deadline:
                raise KafkaException(KafkaError(code))
            time.sleep(_PAUSE_S)
    finally:
        library.rd_kafka_consumer_close(handle)
        library.rd_kafka_destroy(handle)


def _commit(library: Any, handle: int, offsets: Mapping[TopicPartition, GroupOffset]) -> int:
    """Returns 0, or the code of an error."""
    places = library.rd_kafka_topic_partition_list_new(len(offsets))
    added: list[Any] = []
    # The library reads these until they are taken back.
    buffers = [ctypes.create_string_buffer(each.metadata.encode()) for each in offsets.values()]
    try:
        for ((topic, partition), each), buffer in zip(offsets.items(), buffers, strict=True):
            place = library.rd_kafka_topic_partition_list_add(places, topic.encode(), partition).contents
            place.offset = each.offset
            place.metadata, place.metadata_size = ctypes.addressof(buffer), len(each.metadata.encode())
            added.append(place)
        code: int = library.rd_kafka_commit(handle, places, 0)
        return code or next((place.error for place in added if place.error), 0)
    finally:
        for place in added:
            place.metadata, place.metadata_size = None, 0
        library.rd_kafka_topic_partition_list_destroy(places)


def _open(clients: Clients, group: str) -> int:
    library, text = _library(), ctypes.create_string_buffer(_TEXT_BYTES)
    conf = library.rd_kafka_conf_new()
    for name, value in clients.settings.for_consumer(group).items():
        said = str(value).lower() if isinstance(value, bool) else str(value)
        if library.rd_kafka_conf_set(conf, name.encode(), said.encode(), text, _TEXT_BYTES) != 0:
            library.rd_kafka_conf_destroy(conf)
            raise KafkaException(KafkaError(KafkaError._INVALID_ARG, text.value.decode()))
    handle: int | None = library.rd_kafka_new(_CONSUMER, conf, text, _TEXT_BYTES)
    if handle is None:
        library.rd_kafka_conf_destroy(conf)
        raise KafkaException(KafkaError(KafkaError._FAIL, text.value.decode()))
    return handle


# Any: a library has whatever functions it is asked for.
@cache
def _library() -> Any:
    library = ctypes.CDLL(cimpl.__file__)
    pointer, text, size, number = ctypes.c_void_p, ctypes.c_char_p, ctypes.c_size_t, ctypes.c_int
    for name, result, arguments in (
        ("rd_kafka_conf_new", pointer, ()),
        ("rd_kafka_conf_set", number, (pointer, text, text, text, size)),
        ("rd_kafka_conf_destroy", None, (pointer,)),
        ("rd_kafka_new", pointer, (number, pointer, text, size)),
        ("rd_kafka_topic_partition_list_new", pointer, (number,)),
        ("rd_kafka_topic_partition_list_add", ctypes.POINTER(_Place), (pointer, text, ctypes.c_int32)),
        ("rd_kafka_topic_partition_list_destroy", None, (pointer,)),
        ("rd_kafka_commit", number, (pointer, pointer, number)),
        ("rd_kafka_consumer_close", number, (pointer,)),
        ("rd_kafka_destroy", None, (pointer,)),
    ):
        function = getattr(library, name)
        function.restype, function.argtypes = result, arguments
    return library

"""Offsets of a consumer group, and what Kafka Streams writes into their metadata.

Kafka Streams commits with each offset the largest timestamp that it has taken from the partition, and the times up to
which windows of the task were emitted that emit when they close. Both outlive a restart in no other place.
"""

from __future__ import annotations

import binascii
import re
import struct
from base64 import b64decode, b64encode
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

_VERSION = 2
_TIME_ONLY = 1
_BASE64 = re.compile(r"([A-Za-z0-9+/]{4})*([A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?")
_HEAD_LENGTH = 12
_HEAD, _COUNT, _VALUE = struct.Struct(">bq"), struct.Struct(">i"), struct.Struct(">q")


class GroupOffset(NamedTuple):
    """Offset of a partition that a consumer group has committed."""

    offset: int
    metadata: str = ""


class GroupMember(NamedTuple):
    """Member of a consumer group."""

    client_id: str
    host: str


@dataclass(frozen=True)
class OffsetMetadata:
    """The metadata of an offset that Kafka Streams has committed.

    >>> OffsetMetadata(1000, {"counts": 60000}).encode()
    'AgAAAAAAAAPoAAAAAQAAAAZjb3VudHMAAAAAAADqYA=='
    """

    time_ms: int = -1
    """Partition time: the largest timestamp that was taken from the partition; -1 if that is not known."""
    emitted_ms: Mapping[str, int] = field(default_factory=dict)
    """By store: the close time of the windows that were emitted last."""

    def encode(self) -> str:
        """Returns it as Kafka Streams 4.1 writes it."""
        data = _HEAD.pack(_VERSION, self.time_ms)
        if self.emitted_ms:
            data += _COUNT.pack(len(self.emitted_ms))
        for store, time_ms in self.emitted_ms.items():
            name = store.encode()
            data += _COUNT.pack(len(name)) + name + _VALUE.pack(time_ms)
        return b64encode(data).decode()

    @classmethod
    def decode(cls, text: str) -> OffsetMetadata | None:
        """Returns what Kafka Streams has written; None if it was somebody else, or a version that is not known.

        >>> OffsetMetadata.decode("AgAAAAAAAAPo")
        OffsetMetadata(time_ms=1000, emitted_ms={})
        >>> print(OffsetMetadata.decode(""))
        None
        """
        try:
            data = b64decode(text, validate=True)
            version, time_ms = _HEAD.unpack_from(data)
            if version == _TIME_ONLY:
                return cls(time_ms)
            if version != _VERSION:
                return None
            return cls(time_ms, _entries(data, _HEAD.size))
        except (binascii.Error, struct.error, ValueError):
            return None


def _entries(data: bytes, at: int) -> dict[str, int]:
    found, end = _read_entries(data, at) if at < len(data) else ({}, at)
    if end != len(data):
        message = f"{len(data) - end} bytes too many"
        raise ValueError(message)
    return found


def _read_entries(data: bytes, at: int) -> tuple[dict[str, int], int]:
    """Returns the entries at a place, and where they end."""
    (count,) = _COUNT.unpack_from(data, at)
    at += _COUNT.size
    found: dict[str, int] = {}
    for _ in range(count):
        (length,) = _COUNT.unpack_from(data, at)
        at += _COUNT.size
        name = data[at : at + length].decode()
        at += length
        (found[name],) = _VALUE.unpack_from(data, at)
        at += _VALUE.size
    return found, at


def cut_metadata(text: str) -> str:
    """Returns the metadata of Kafka Streams that a text begins with; a text without it as it is.

    Kafka's client hands out metadata without its end: whatever lies in memory behind it may follow.

    >>> cut_metadata("AgAAAAAAAAPo!1"), cut_metadata("AgAAAAAAAAPoAAAAAQAAAAZjb3VudHMAAAAAAADqYA==ABCD")
    ('AgAAAAAAAAPo', 'AgAAAAAAAAPoAAAAAQAAAAZjb3VudHMAAAAAAADqYA==')
    """
    found = _BASE64.match(text)
    data = b64decode(found[0]) if found is not None else b""
    if OffsetMetadata.decode(text[:_HEAD_LENGTH]) is None:
        return text
    try:
        entries, end = _read_entries(data, _HEAD.size)
    except (struct.error, UnicodeDecodeError):
        return text[:_HEAD_LENGTH]
    return text[: -(-end // 3) * 4] if entries else text[:_HEAD_LENGTH]


def left_by_kafka_streams(offsets: Mapping[tuple[str, int], GroupOffset]) -> bool:
    """Tells whether Kafka Streams has committed any of a group's offsets; Headrace commits them without metadata."""
    return any(OffsetMetadata.decode(each.metadata) is not None for each in offsets.values())

"""Bytes and partitions that Kafka's own classes gave, in ``kafka_vectors.json``: ours are the same.

A Java program wrote the file with the serializers of kafka-clients and kafka-streams 4.1.1, ``Utils.murmur2``,
``BuiltInPartitioner``, ``WindowedStreamPartitioner`` and ``WindowKeySchema``. Floats and UUIDs are in it as text, bytes
as hexadecimal digits.
"""

import json
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from headrace.serdes import Serdes
from headrace.topics.partitioner import default_partitioner, murmur2, partition_for
from headrace.windows import SessionWindow, TimeWindow, Windowed

VECTORS = json.loads(Path(__file__).with_name("kafka_vectors.json").read_text())
FROM_TEXT: dict[str, Any] = {"float": float, "double": float, "uuid": UUID, "bytes": bytes.fromhex}


def serde_and_value(name: str, value: Any) -> tuple[Any, Any]:
    inner = name.removeprefix("list_of ")
    convert = FROM_TEXT.get(inner, lambda plain: plain)
    serde = getattr(Serdes, inner)()
    if inner == name:
        return serde, convert(value)
    return Serdes.list_of(serde), [None if item is None else convert(item) for item in value]


@pytest.mark.parametrize(("name", "text", "digits"), VECTORS["serdes"])
def test_serdes_write_and_read_what_kafkas_do(name: str, text: Any, digits: str) -> None:
    serde, value = serde_and_value(name, text)
    data = bytes.fromhex(digits)
    assert serde.serialize(value) == data
    # Compared as bytes: NaN is not equal to itself, and a float of four bytes is read as the double next to it.
    assert serde.serialize(serde.deserialize(data)) == data


@pytest.mark.parametrize(
    ("key", "start_ms", "end_ms", "time", "changelog", "session", "n", "partition"), VECTORS["windowed_keys"]
)
def test_windowed_keys_are_written_and_placed_as_kafka_streams_does(
    key: str, start_ms: int, end_ms: int, time: str, changelog: str, session: str, n: int, partition: int
) -> None:
    size_ms = end_ms - start_ms
    in_window = Windowed(key, TimeWindow(start_ms, end_ms))
    in_session = Windowed(key, SessionWindow(start_ms, end_ms))
    cases: list[tuple[Any, Any, str]] = [
        (Serdes.time_windowed(Serdes.string(), size_ms), in_window, time),
        (Serdes.time_windowed(Serdes.string(), size_ms, changelog=True), in_window, changelog),
        (Serdes.session_windowed(Serdes.string()), in_session, session),
    ]
    for serde, windowed, digits in cases:
        assert serde.serialize(windowed) == bytes.fromhex(digits)
        assert serde.deserialize(bytes.fromhex(digits)) == windowed
        choose = default_partitioner(serde, "t")
        assert choose is not None
        assert choose("t", windowed, None, n) == partition


@pytest.mark.parametrize(("digits", "hashed", "n", "partition"), VECTORS["partitions"])
def test_keys_are_hashed_and_placed_as_kafkas_producer_does(digits: str, hashed: int, n: int, partition: int) -> None:
    key = bytes.fromhex(digits)
    assert murmur2(key) == hashed
    assert partition_for(key, n) == partition

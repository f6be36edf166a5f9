"""The bytes of internal topics: Kafka Streams' layouts, read back as they were written."""

from __future__ import annotations

import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace import Serdes
from headrace.errors import DeserializationError, SerializationError
from headrace.record import Change
from headrace.topology.murmur3 import murmur3_128
from headrace.topology.wire import (
    ChangeSerde,
    Instruction,
    Subscription,
    SubscriptionResponse,
    SubscriptionResponseSerde,
    SubscriptionSerde,
    response_partitioner,
)

STRING = Serdes.string()
texts = st.text(max_size=300)
hashes = st.none() | st.binary(min_size=16, max_size=16)


@given(st.none() | texts, st.none() | texts)
def test_change_comes_back(new: str | None, old: str | None) -> None:
    serde = ChangeSerde(STRING)
    write, read = serde.serializer("t", is_key=False), serde.deserializer("t", is_key=False)
    if new is None and old is None:
        with pytest.raises(SerializationError, match="both are None"):
            write(Change(None, None))
    else:
        assert read(write(Change(new, old))) == Change(new, old)


@pytest.mark.parametrize(
    ("data", "change"),
    [
        (b"old\x00", Change(None, "old")),
        (b"new\x01", Change("new", None)),
        (b"\x06newold\x02", Change("new", "old")),
        (b"old\x01\x03", Change(None, "old", latest=True)),
        (b"new\x00\x04", Change("new", None, latest=False)),
        (b"\x06newold\x00\x05", Change("new", "old", latest=False)),
    ],
)
def test_change_layouts_of_all_versions_can_be_read(data: bytes, change: Change) -> None:
    assert ChangeSerde(STRING).deserializer("t", is_key=False)(data) == change


def test_length_of_a_long_new_value_is_a_zigzag_varint() -> None:
    data = ChangeSerde(STRING).serializer("t", is_key=False)(Change("n" * 100, "o"))
    assert data == b"\xc8\x01" + b"n" * 100 + b"o\x02"


@pytest.mark.parametrize("data", [b"", b"x\x09"])
def test_bytes_that_are_no_change_are_refused(data: bytes) -> None:
    with pytest.raises(DeserializationError, match="not a change"):
        ChangeSerde(STRING).deserializer("t", is_key=False)(data)


@given(hashes, st.sampled_from(Instruction), texts, st.integers(0, 2**31 - 1))
def test_subscription_comes_back(digest: bytes | None, instruction: Instruction, key: str, partition: int) -> None:
    serde = SubscriptionSerde(STRING)
    write, read = serde.serializer("t", is_key=False), serde.deserializer("t", is_key=False)
    for subscription in (
        Subscription(digest, instruction, key, 1, partition),
        Subscription(digest, instruction, key, 0, None),
    ):
        assert read(write(subscription)) == subscription


def test_subscription_layout() -> None:
    write = SubscriptionSerde(STRING).serializer("t", is_key=False)
    subscription = Subscription(bytes(range(16)), Instruction.PROPAGATE_ONLY_IF_FK_VAL_AVAILABLE, "key", 1, 258)
    assert write(subscription) == b"\x01\x03" + bytes(range(16)) + b"key\x00\x00\x01\x02"


@given(hashes, st.none() | st.text(min_size=1, max_size=50))
def test_response_comes_back_without_its_partition(digest: bytes | None, value: str | None) -> None:
    serde = SubscriptionResponseSerde(STRING)
    data = serde.serializer("t", is_key=False)(SubscriptionResponse(digest, value, 3))
    assert serde.deserializer("t", is_key=False)(data) == SubscriptionResponse(digest, value)


@pytest.mark.parametrize("data", [b"", b"\x00short"])
def test_bytes_that_are_no_response_are_refused(data: bytes) -> None:
    with pytest.raises(DeserializationError, match="not an answer"):
        SubscriptionResponseSerde(STRING).deserializer("t", is_key=False)(data)


@pytest.mark.parametrize("serde", [ChangeSerde(), SubscriptionSerde(), SubscriptionResponseSerde()])
def test_serde_without_inner_takes_the_default(serde: ChangeSerde[str]) -> None:
    with pytest.raises(SerializationError, match="resolve"):
        serde.serializer("t", is_key=False)
    resolved = serde.resolve(STRING)
    assert resolved.resolve(Serdes.integer()) == resolved
    assert pickle.loads(pickle.dumps(resolved)) == resolved


def test_response_goes_back_to_the_partition_that_asked() -> None:
    assert response_partitioner("t", "k", SubscriptionResponse(None, "v", 2), 4) == 2
    assert response_partitioner("t", "k", SubscriptionResponse(None, "v"), 4) is None


# Computed with org.apache.kafka.streams.state.internals.Murmur3.hash128.
MURMUR = {
    b"": "9d2764a018e329428c3cf3b035938518",
    b"a": "3361634e7e0f5188e9c7dda24eae326b",
    b"value": "2e7425dec1f8bcdf51e014f04aa41568",
    b"fifteen bytes!!": "d615b59fb3c006d22d333a2423fa9a35",
    b"sixteen bytes!!!": "198a5158981e91bb07656cef55b9e983",
    b"seventeen bytes!!": "221c89a821c43bfde70ee8deb107bd0f",
    b"\xc3\xa9t\xc3\xa9 plus long que trente-deux octets": "07dc49e50078b8fdf17f82a02c805af0",
}


@pytest.mark.parametrize(("data", "digest"), MURMUR.items())
def test_hash_is_kafka_streams_own(data: bytes, digest: str) -> None:
    assert murmur3_128(data).hex() == digest

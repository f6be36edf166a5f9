"""The metadata that Kafka Streams commits with its offsets."""

from __future__ import annotations

from base64 import b64encode

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.topics.consumer_group import GroupOffset, OffsetMetadata, cut_metadata, left_by_kafka_streams

# As Kafka Streams 4.1.1 writes them.
VECTORS = {
    "Av//////////": OffsetMetadata(-1),
    "AgAAAAAAAAPo": OffsetMetadata(1000),
    "AgAAAAAAAAPoAAAAAQAAAAZjb3VudHMAAAAAAADqYA==": OffsetMetadata(1000, {"counts": 60000}),
}


@pytest.mark.parametrize("text", VECTORS)
def test_metadata_is_what_kafka_streams_writes(text: str) -> None:
    assert OffsetMetadata.decode(text) == VECTORS[text]
    assert VECTORS[text].encode() == text


@given(
    st.integers(-1, (1 << 63) - 1),
    st.dictionaries(st.text(max_size=8), st.integers(-(1 << 63), (1 << 63) - 1), max_size=4),
)
def test_metadata_comes_back(time_ms: int, emitted_ms: dict[str, int]) -> None:
    metadata = OffsetMetadata(time_ms, emitted_ms)
    assert OffsetMetadata.decode(metadata.encode()) == metadata


def test_the_first_version_has_only_the_time() -> None:
    assert OffsetMetadata.decode(b64encode(b"\1" + (77).to_bytes(8)).decode()) == OffsetMetadata(77)


@pytest.mark.parametrize(
    "text",
    ["", "headrace", "not base64!", "Aw==", b64encode(b"\3" + bytes(8)).decode(), "AgAAAAAAAAPoAAAAAQ=="],
)
def test_what_somebody_else_has_written_is_none(text: str) -> None:
    assert OffsetMetadata.decode(text) is None


@pytest.mark.parametrize("behind", ["", "!", "ABCDEFGH", "\xff\x01", "AAAAAQ=="])
@pytest.mark.parametrize("text", VECTORS)
def test_what_lies_behind_metadata_in_memory_is_cut_off(text: str, behind: str) -> None:
    assert cut_metadata(text + behind) == text


def test_offsets_of_kafka_streams_are_told_by_their_metadata() -> None:
    ours, theirs = GroupOffset(5), GroupOffset(5, OffsetMetadata(-1).encode())
    assert not left_by_kafka_streams({("in", 0): ours})
    assert left_by_kafka_streams({("in", 0): ours, ("in", 1): theirs})

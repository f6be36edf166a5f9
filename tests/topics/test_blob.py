from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.errors import LogError, TopicError
from headrace.topics.blob import info, pack, pack_all, pack_gaps, unpack
from headrace.topics.log import Output, Raw

DATA = st.none() | st.binary(max_size=20)
HEADERS = st.lists(st.tuples(st.text(max_size=3), DATA), max_size=2).map(tuple)
OUTPUTS = st.lists(st.tuples(st.none(), st.integers(-1, 1 << 62), DATA, DATA, HEADERS), min_size=1, max_size=30)


@given(OUTPUTS, st.integers(0, 1 << 50))
def test_records_come_back_with_successive_offsets(outputs: list[Output], base: int) -> None:
    blob = pack(outputs)
    assert unpack(blob, base) == [(base + n, *output[1:]) for n, output in enumerate(outputs)]
    head = info(blob)
    assert (head.records, head.span) == (len(outputs), len(outputs))
    assert head.min_timestamp_ms == min(output[1] for output in outputs)
    assert head.max_timestamp_ms == max(output[1] for output in outputs)


@given(OUTPUTS, st.data())
def test_records_with_gaps_keep_their_offsets(outputs: list[Output], data: st.DataObject) -> None:
    steps = data.draw(st.lists(st.integers(1, 1 << 20), min_size=len(outputs), max_size=len(outputs)))
    records: list[Raw] = []
    offset = 100
    for step, output in zip(steps, outputs, strict=True):
        records.append((offset, *output[1:]))
        offset += step
    blob = pack_gaps(records, 90, offset - 90)
    assert unpack(blob, 90) == records
    assert info(blob).span == offset - 90


@given(st.lists(st.integers(0, 5000), min_size=1, max_size=40))
def test_many_records_become_blobs_of_about_the_limit(sizes: list[int]) -> None:
    outputs: list[Output] = [(None, 0, b"k", b"x" * size, ()) for size in sizes]
    blobs = list(pack_all(outputs, limit=2000))
    assert [record[3] for blob in blobs for record in unpack(blob)] == [output[3] for output in outputs]
    assert all(len(blob) <= 4200 or info(blob).records == 1 for blob in blobs)


@pytest.mark.parametrize(
    ("key", "value", "headers", "said"),
    [
        ("text", b"v", (), "the key of a record must be bytes or None; found str 'text'"),
        (b"k", 5, (), "the value of a record must be bytes or None; found int 5"),
        (b"k", b"v", ((None, b"x"),), "a header of a record must be a str and bytes or None; found None and"),
        (b"k", b"v", (("h", "x"),), "a header of a record must be a str and bytes or None; found str 'h' and str 'x'"),
    ],
)
def test_what_could_not_be_read_again_is_not_packed(key: Any, value: Any, headers: Any, said: str) -> None:
    """A topic with such a blob would be taken for damaged, for good."""
    with pytest.raises(TopicError, match=said):
        pack([(None, 1, b"k", b"v", ()), (None, 1, key, value, headers)])


def test_other_kinds_of_bytes_are_packed() -> None:
    [found] = unpack(pack([(None, 1, bytearray(b"k"), memoryview(b"v"), ())]))  # type: ignore[list-item]  # lax users
    assert found == (0, 1, b"k", b"v", ())


def test_no_records_make_no_blob() -> None:
    assert list(pack_all([])) == []


@given(st.integers(0, 200), st.integers(1, 255))
def test_damage_is_noticed(at: int, change: int) -> None:
    blob = bytearray(pack([(None, n, b"key", b"value" * 4, ()) for n in range(10)]))
    at %= len(blob) - 32
    blob[32 + at] ^= change
    with pytest.raises(LogError, match="damaged"):
        unpack(bytes(blob))


@pytest.mark.parametrize("data", [b"", b"\x01", b"\xff" * 100])
def test_other_bytes_are_not_taken_for_a_blob(data: bytes) -> None:
    with pytest.raises(LogError, match="are not a blob"):
        unpack(data)

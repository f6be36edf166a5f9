"""Keys go to the partitions that Kafka's own clients choose."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.serdes import Serdes
from headrace.topics.partitioner import default_partitioner, murmur2, partition_for
from headrace.windows import SessionWindow, TimeWindow, Windowed


# The vectors of Kafka's own UtilsTest.
@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"21", -973932308),
        (b"foobar", -790332482),
        (b"a-little-bit-long-string", -985981536),
        (b"a-little-bit-longer-string", -1486304829),
        (b"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8", -58897971),
        (b"abc", 479470107),
    ],
)
def test_murmur2_is_kafkas(data: bytes, expected: int) -> None:
    assert murmur2(data) == expected


@given(st.binary(), st.integers(1, 1000))
def test_partition_is_in_range_and_follows_the_positive_hash(key: bytes, n: int) -> None:
    assert partition_for(key, n) == (murmur2(key) & 0x7FFFFFFF) % n
    assert 0 <= partition_for(key, n) < n


@given(st.text(), st.integers(0, 1000), st.integers(1, 20))
def test_windowed_keys_go_where_their_plain_keys_go(key: str, start_ms: int, n: int) -> None:
    expected = partition_for(key.encode(), n)
    time = default_partitioner(Serdes.time_windowed(Serdes.string(), 10), "t")
    session = default_partitioner(Serdes.session_windowed(Serdes.string()), "t")
    assert time is not None
    assert session is not None
    assert time("t", Windowed(key, TimeWindow(start_ms, start_ms + 10)), None, n) == expected
    assert session("t", Windowed(key, SessionWindow(start_ms, start_ms)), None, n) == expected


def test_plain_keys_need_no_partitioner() -> None:
    assert default_partitioner(Serdes.string(), "t") is None


def test_record_without_a_windowed_key_is_left_to_the_log() -> None:
    choose = default_partitioner(Serdes.session_windowed(Serdes.string()), "t")
    assert choose is not None
    assert choose("t", None, "v", 4) is None

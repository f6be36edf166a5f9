"""Columns of keys go where Kafka's producers send each of them."""

from __future__ import annotations

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from headrace.spark.bounded.key_partitions import key_partitions
from headrace.topics.partitioner import partition_for


@given(keys=st.lists(st.binary(max_size=21)), partitions=st.integers(1, 300), skipped=st.integers(0, 3))
def test_a_column_goes_where_each_key_goes(keys: list[bytes], partitions: int, skipped: int) -> None:
    column = pa.array(keys, pa.binary())[skipped:]
    assert key_partitions(column, partitions).tolist() == [partition_for(key, partitions) for key in keys[skipped:]]

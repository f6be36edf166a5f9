"""Checks of what a test hands to its driver, so that a slip in the test is not taken for one of the topology."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from headrace.errors import TopologyError, describe_value
from headrace.record import Headers


def check_raw(topic: str, record: Any, partitions: int) -> None:
    """Raises unless ``record`` is a record as bytes, for a partition that the topic has.

    >>> check_raw("in", (None, 0, b"k", "v", ()), 1)
    Traceback (most recent call last):
    ...
    headrace.errors.TopologyError: topic 'in': a record is (partition or None, timestamp_ms, key bytes, value bytes, \
headers); found tuple (None, 0, b'k', 'v', ())
    """
    if isinstance(record, tuple) and len(record) == 5:
        partition, timestamp_ms, key, value, headers = record
        if (
            isinstance(timestamp_ms, int)
            and isinstance(key, bytes | None)
            and isinstance(value, bytes | None)
            and isinstance(headers, tuple)
        ):
            if partition is None or (isinstance(partition, int) and 0 <= partition < partitions):
                if headers:
                    checked_headers(headers)
                return
            message = (
                f"the topic '{topic}' has {partitions} partitions; found a record for partition {partition!r}; "
                "leave it out, or make the driver with partitions=…"
            )
            raise TopologyError(message)
    message = (
        f"topic '{topic}': a record is (partition or None, timestamp_ms, key bytes, value bytes, headers); "
        f"found {describe_value(record)}"
    )
    raise TopologyError(message)


def checked_headers(headers: Any) -> Headers:
    """Returns headers, frozen.

    >>> checked_headers([("trace", "1")])
    Traceback (most recent call last):
    ...
    headrace.errors.TopologyError: a header is a pair of str and bytes (or None); found tuple ('trace', '1')
    """
    if not isinstance(headers, Iterable) or isinstance(headers, str | bytes):
        message = f"headers are pairs of str and bytes (or None); found {describe_value(headers)}"
        raise TopologyError(message)
    pairs = tuple(headers)
    for pair in pairs:
        if (
            not isinstance(pair, tuple)
            or len(pair) != 2
            or not isinstance(pair[0], str)
            or not isinstance(pair[1], bytes | None)
        ):
            message = f"a header is a pair of str and bytes (or None); found {describe_value(pair)}"
            raise TopologyError(message)
    return Headers(pairs)


def checked_several(values: Any, what: str) -> Iterable[Any]:
    """Returns what a test wants to pipe one by one.

    >>> checked_several(5, "input topic 'in': values")
    Traceback (most recent call last):
    ...
    headrace.errors.TopologyError: input topic 'in': values must be an iterable; found int 5; pass for example a list
    """
    if isinstance(values, Iterable) and not isinstance(values, str | bytes):
        return values
    message = f"{what} must be an iterable; found {describe_value(values)}; pass for example a list"
    raise TopologyError(message)

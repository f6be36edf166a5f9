"""Records, headers and the small values that travel with them."""

import pickle
from typing import Any

import pytest

from headrace.errors import InvalidTimestampError, TopologyError
from headrace.record import (
    EMPTY_HEADERS,
    Change,
    FixedKeyRecord,
    Headers,
    KeyValue,
    Record,
    RecordMetadata,
    ValueAndTimestamp,
    VersionedRecord,
    WithKey,
    with_key,
)


def test_headers_keep_order_and_repeated_names() -> None:
    headers = Headers().add("a", b"1").add("b", None).add("a", b"2")
    assert list(headers) == [("a", b"1"), ("b", None), ("a", b"2")]
    assert headers.all("a") == (b"1", b"2")
    assert headers.last("a") == b"2"
    assert headers.all("missing") == ()


def test_headers_do_not_change_in_place() -> None:
    headers = Headers([("a", b"1")])
    assert headers.add("b", b"2") is not headers
    assert headers.remove("a") == EMPTY_HEADERS
    assert headers == (("a", b"1"),)


@pytest.mark.parametrize(("name", "value"), [(b"a", b"1"), ("a", "1"), (None, None)])
def test_headers_refuse_what_is_no_header(name: Any, value: Any) -> None:
    with pytest.raises(TypeError, match="a header is a str and bytes or None"):
        Headers().add(name, value)


@pytest.mark.parametrize("kind", [Record, FixedKeyRecord])
def test_record_copies_change_one_field(kind: Any) -> None:
    record = kind("a", 1, 10, Headers([("h", b"1")]))
    assert record.with_value(2) == kind("a", 2, 10, Headers([("h", b"1")]))
    assert record.with_timestamp(11) == kind("a", 1, 11, Headers([("h", b"1")]))
    assert record.with_headers(()) == kind("a", 1, 10)
    assert record == kind("a", 1, 10, (("h", b"1"),))


def test_only_a_free_record_can_change_its_key() -> None:
    assert Record("a", 1, 10).with_key("b") == Record("b", 1, 10)
    assert not hasattr(FixedKeyRecord("a", 1, 10), "with_key")


@pytest.mark.parametrize("kind", [Record, FixedKeyRecord])
def test_record_refuses_a_negative_timestamp(kind: Any) -> None:
    with pytest.raises(InvalidTimestampError, match="must not be negative, got -1"):
        kind("a", 1, -1)
    with pytest.raises(InvalidTimestampError):
        kind("a", 1, 0).with_timestamp(-5)


@pytest.mark.parametrize("timestamp", [1.5, 2.0, True, None, "10"])
@pytest.mark.parametrize("kind", [Record, FixedKeyRecord])
def test_record_refuses_a_timestamp_that_is_no_int(kind: Any, timestamp: Any) -> None:
    message = r"must be an int, in milliseconds, got .* \(key 'a'\); write for example int\(time.time\(\) \* 1000\)"
    with pytest.raises(InvalidTimestampError, match=message):
        kind("a", 1, timestamp)
    with pytest.raises(InvalidTimestampError, match=message):
        kind("a", 1, 0).with_timestamp(timestamp)


def test_record_takes_a_subclass_of_int_as_its_timestamp() -> None:
    class Moment(int):
        pass

    assert Record("a", 1, Moment(5)).timestamp_ms == 5


@pytest.mark.parametrize("headers", [[("h", b"1")], (("h", b"1"),), Headers([("h", b"1")])])
def test_record_takes_any_pairs_as_headers(headers: Any) -> None:
    assert type(Record("a", 1, 10, headers).headers) is Headers
    assert Record("a", 1, 10, headers).headers.last("h") == b"1"


def test_records_without_headers_share_them() -> None:
    nothing: Any = ()
    assert Record("a", 1, 10, nothing).headers is EMPTY_HEADERS


@pytest.mark.parametrize(
    "value",
    [
        Headers([("a", b"1")]),
        Record("a", 1, 10, Headers([("a", b"1")])),
        FixedKeyRecord("a", 1, 10),
        RecordMetadata("t", 0, 1),
        KeyValue("a", 1),
        ValueAndTimestamp(1, 10),
        VersionedRecord(1, 10, 20),
        Change(1, None),
        WithKey(len),
    ],
    ids=lambda value: type(value).__name__,
)
def test_values_pickle(value: Any) -> None:
    copy = pickle.loads(pickle.dumps(value))
    assert copy == value
    assert type(copy) is type(value)


def test_with_key_wraps_a_function_only() -> None:
    assert with_key(max).function(1, 2) == 2
    nonsense: Any = "not a function"
    with pytest.raises(TopologyError, match="with_key needs a function, got str 'not a function'"):
        with_key(nonsense)

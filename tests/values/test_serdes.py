"""Serdes: round trips, Kafka's bytes, and clear errors for what is not theirs."""

import math
import pickle
import struct
import sys
from collections import Counter
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from enum import Enum
from http import HTTPStatus
from pathlib import Path
from typing import Any, Literal, NamedTuple, NewType, TypedDict
from uuid import UUID

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace import Materialized, StreamsBuilder, TimeWindows, TopologyTestDriver
from headrace.errors import ConfigError, DeserializationError, ProductionError, SerializationError
from headrace.serdes import BaseSerde, Serdes, TimeWindowedSerde
from headrace.windows import SessionWindow, TimeWindow, UnlimitedWindow, Windowed

TEXT = st.text()
SHORT = st.integers(-(2**15), 2**15 - 1)
INTEGER = st.integers(-(2**31), 2**31 - 1)
LONG = st.integers(-(2**63), 2**63 - 1)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.floats(allow_nan=False, allow_infinity=False) | TEXT,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXT, inner, max_size=4),
    max_leaves=10,
)

ROUND_TRIPS: list[tuple[Any, st.SearchStrategy[Any]]] = [
    (Serdes.string(), TEXT),
    (Serdes.string("utf-16"), TEXT),
    (Serdes.bytes(), st.binary()),
    (Serdes.short(), SHORT),
    (Serdes.integer(), INTEGER),
    (Serdes.long(), LONG),
    (Serdes.float(), st.floats(width=32, allow_nan=False)),
    (Serdes.double(), st.floats(allow_nan=False)),
    (Serdes.boolean(), st.booleans()),
    (Serdes.uuid(), st.uuids()),
    (Serdes.json(), JSON),
    (Serdes.list_of(Serdes.string()), st.lists(TEXT | st.none())),
    (Serdes.list_of(Serdes.long()), st.lists(LONG | st.none())),
    (Serdes.list_of(Serdes.uuid()), st.lists(st.uuids() | st.none())),
    (Serdes.list_of(Serdes.boolean()), st.lists(st.booleans() | st.none())),
    (Serdes.list_of(Serdes.list_of(Serdes.short())), st.lists(st.lists(SHORT) | st.none())),
    (Serdes.json(dict[str, list[int]]), st.dictionaries(TEXT, st.lists(LONG))),
]
SERDES = [serde for serde, _ in ROUND_TRIPS]


@pytest.mark.parametrize(("serde", "values"), ROUND_TRIPS, ids=[str(serde) for serde in SERDES])
@given(data=st.data())
def test_values_come_back_as_they_were(serde: Any, values: st.SearchStrategy[Any], data: st.DataObject) -> None:
    value = data.draw(values)
    written = serde.serializer("t", is_key=False)(value)
    assert type(written) is bytes
    assert serde.deserializer("t", is_key=False)(written) == value


@pytest.mark.parametrize("serde", SERDES, ids=str)
def test_serdes_are_values(serde: Any) -> None:
    copy = pickle.loads(pickle.dumps(serde))
    assert copy == serde
    assert hash(copy) == hash(serde)
    assert (copy.identity, copy.immutable) == (serde.identity, serde.immutable)


@pytest.mark.parametrize("serde", SERDES, ids=str)
def test_none_stays_none(serde: Any) -> None:
    assert serde.serialize(None) is None
    assert serde.deserialize(None) is None


@pytest.mark.parametrize(
    ("serde", "value", "data"),
    [
        (Serdes.string(), "aé", b"a\xc3\xa9"),
        (Serdes.short(), -2, b"\xff\xfe"),
        (Serdes.integer(), 258, b"\x00\x00\x01\x02"),
        (Serdes.long(), -1, b"\xff" * 8),
        (Serdes.float(), 1.5, b"\x3f\xc0\x00\x00"),
        (Serdes.double(), 1.5, b"\x3f\xf8\x00\x00\x00\x00\x00\x00"),
        (Serdes.boolean(), True, b"\x01"),
        (Serdes.boolean(), False, b"\x00"),
        (Serdes.uuid(), UUID(int=255), b"00000000-0000-0000-0000-0000000000ff"),
        (Serdes.list_of(Serdes.integer()), [], b"\x00" + bytes(4) + bytes(4)),
        (
            Serdes.list_of(Serdes.integer()),
            [7, None, 9],
            b"\x00" + struct.pack(">ii", 1, 1) + struct.pack(">iii", 3, 7, 9),
        ),
        (
            Serdes.list_of(Serdes.string()),
            ["ab", None, ""],
            b"\x01" + struct.pack(">i", 3) + struct.pack(">i", 2) + b"ab" + struct.pack(">ii", -1, 0),
        ),
        (Serdes.list_of(Serdes.boolean()), [True], b"\x01" + struct.pack(">ii", 1, 1) + b"\x01"),
        (
            Serdes.time_windowed(Serdes.string(), 10),
            Windowed("a", TimeWindow(256, 266)),
            b"a\x00\x00\x00\x00\x00\x00\x01\x00",
        ),
        (
            Serdes.session_windowed(Serdes.string()),
            Windowed("a", SessionWindow(1, 2)),
            b"a" + struct.pack(">qq", 2, 1),
        ),
    ],
)
def test_bytes_are_kafkas(serde: Any, value: Any, data: bytes) -> None:
    assert serde.serialize(value) == data
    assert serde.deserialize(data) == value


@pytest.mark.parametrize(
    ("serde", "value", "message"),
    [
        (Serdes.string(), 5, "the string serde needs str, got int 5"),
        (Serdes.string(), b"a", "got bytes b'a'"),
        (Serdes.string(), "\ud800", "cannot write"),
        (Serdes.bytes(), bytearray(b"a"), "the bytes serde needs bytes, got bytearray"),
        (Serdes.bytes(), "a", "got str 'a'"),
        (Serdes.integer(), True, "the integer serde needs int, got bool True"),
        (Serdes.integer(), 1.0, "got float 1.0"),
        (Serdes.integer(), 2**31, "does not fit into the 4 bytes of the integer serde; use a wider serde"),
        (Serdes.long(), -(2**63) - 1, "does not fit into the 8 bytes"),
        (Serdes.short(), 2**15, "does not fit into the 2 bytes"),
        (Serdes.double(), 1, "the double serde needs float, got int 1"),
        (Serdes.float(), 1e300, "does not fit into the 4 bytes of the float serde"),
        (Serdes.boolean(), 1, "the boolean serde needs bool, got int 1"),
        (Serdes.uuid(), "00000000-0000-0000-0000-000000000001", "needs uuid.UUID, got str"),
        (Serdes.void(), 1, "the void serde needs None, got int 1"),
        (Serdes.json(), {1, 2}, "the json serde cannot write set"),
        (Serdes.json(), {1: "a"}, "dicts with string keys"),
        (Serdes.json(int), "1", "the json serde needs int, got str '1'"),
        (Serdes.json(int), True, "the json serde needs int, got bool True"),
        (Serdes.json(list[int]), (1,), "needs list"),
        (Serdes.list_of(Serdes.long()), (1,), "the list serde needs list, got tuple"),
        (Serdes.list_of(Serdes.long()), ["a"], "the long serde needs int, got str 'a'"),
        (Serdes.time_windowed(Serdes.string(), 10), "a", "the time_windowed serde needs Windowed, got str 'a'"),
        (Serdes.session_windowed(Serdes.string()), "a", "needs Windowed"),
        (Serdes.session_windowed(Serdes.string()), Windowed(1, SessionWindow(0, 0)), "needs str, got int 1"),
    ],
)
def test_values_of_another_type_are_refused(serde: Any, value: Any, message: str) -> None:
    with pytest.raises(SerializationError, match=message) as caught:
        serde.serializer("orders", is_key=True)(value)
    assert str(caught.value).startswith("key of topic 'orders': ")


@pytest.mark.parametrize(
    ("serde", "data", "message"),
    [
        (Serdes.string(), b"\xff", "the string serde reads utf-8 text, got bytes b'\\\\xff'"),
        (Serdes.integer(), b"123", "the integer serde reads 4 bytes, got bytes b'123'"),
        (Serdes.long(), b"1234", "reads 8 bytes"),
        (Serdes.double(), b"", "reads 8 bytes"),
        (Serdes.boolean(), b"\x02", "one byte, 0 or 1"),
        (Serdes.uuid(), b"not-a-uuid", "a UUID as text"),
        (Serdes.void(), b"x", "reads nothing"),
        (Serdes.json(), b"{", "the json serde cannot read bytes b'{'"),
        (Serdes.json(int), b'"a"', r"the json\(int\) serde cannot read .*Expected `int`, got `str`"),
        (Serdes.json(int), b"{", "cannot read"),
        (Serdes.json(str), b'"\xff"', "cannot read"),
        (Serdes.list_of(Serdes.long()), b"", "reads a list"),
        (Serdes.list_of(Serdes.long()), b"\x00", "reads a whole list"),
        (Serdes.list_of(Serdes.string()), b"\x00" + bytes(8), "reads a list of the inner"),
        (Serdes.list_of(Serdes.string()), b"\x01" + struct.pack(">ii", 1, 9) + b"abc", "reads a whole list"),
        (Serdes.time_windowed(Serdes.string(), 10), b"1234567", "a key and 8 bytes of window start"),
        (Serdes.time_windowed(Serdes.string(), 10), b"\xff" * 8, "a key and 8 bytes of window start"),
        (Serdes.session_windowed(Serdes.string()), b"1234567", "a key and 16 bytes of session"),
        (Serdes.session_windowed(Serdes.string()), struct.pack(">qq", 1, 2), "a key and 16 bytes of session"),
    ],
)
def test_bytes_of_another_serde_are_refused(serde: Any, data: bytes, message: str) -> None:
    with pytest.raises(DeserializationError, match=message) as caught:
        serde.deserializer("orders", is_key=False)(data)
    assert str(caught.value).startswith("value of topic 'orders': ")


@pytest.mark.parametrize("serde", SERDES, ids=str)
@given(data=st.binary(max_size=40))
def test_arbitrary_bytes_are_read_or_refused(serde: Any, data: bytes) -> None:
    try:
        serde.deserialize(data)
    except DeserializationError as error:
        assert "value: the " in str(error)  # noqa: PT017 - either outcome is right


@pytest.mark.parametrize("serde", [serde for serde in SERDES if serde.identity], ids=str)
@given(data=st.data())
def test_identity_means_that_equal_objects_have_equal_bytes(serde: Any, data: st.DataObject) -> None:
    values = dict(zip(map(str, SERDES), (values for _, values in ROUND_TRIPS), strict=True))[str(serde)]
    one, other = data.draw(values), data.draw(values)
    assert (one == other) == (serde.serialize(one) == serde.serialize(other))
    hash(one)


def test_floats_have_no_identity_because_zeros_differ() -> None:
    assert Serdes.double().serialize(0.0) != Serdes.double().serialize(-0.0)
    assert not Serdes.double().identity
    assert Serdes.double().immutable
    nan = Serdes.double().deserialize(Serdes.double().serialize(math.nan))
    assert nan is not None
    assert math.isnan(nan)


def test_short_floats_cannot_be_kept_because_they_are_rounded() -> None:
    assert Serdes.float().deserialize(Serdes.float().serialize(0.1)) != 0.1
    assert not Serdes.float().immutable


@given(TEXT, st.integers(0, 2**62), st.integers(1, 2**61))
def test_windowed_keys_come_back(key: str, start_ms: int, size_ms: int) -> None:
    time = Serdes.time_windowed(Serdes.string(), size_ms)
    windowed = Windowed(key, TimeWindow(start_ms, start_ms + size_ms))
    assert time.deserialize(time.serialize(windowed)) == windowed
    session = Serdes.session_windowed(Serdes.string())
    sessioned = Windowed(key, SessionWindow(start_ms, start_ms + size_ms))
    assert session.deserialize(session.serialize(sessioned)) == sessioned


def test_window_that_ends_beyond_time_is_cut_at_the_end_of_time() -> None:
    serde: TimeWindowedSerde[str] = TimeWindowedSerde(Serdes.string())
    data = serde.serialize(Windowed("a", UnlimitedWindow(5)))
    assert serde.deserialize(data) == Windowed("a", TimeWindow(5, 2**63 - 1))


@pytest.mark.parametrize("size", [0, -1, 1.5, None, True])
def test_window_size_must_be_positive(size: Any) -> None:
    with pytest.raises(ConfigError, match=r"window_size_ms (must be a whole number of milliseconds|is missing)"):
        Serdes.time_windowed(Serdes.string(), size)


def test_window_size_that_is_a_duration_is_told_in_milliseconds() -> None:
    size: Any = timedelta(minutes=1)
    with pytest.raises(ConfigError, match=r"at least 1, got timedelta .*; write 60000$"):
        Serdes.time_windowed(Serdes.string(), size)


def test_keys_of_a_window_stores_changelog_have_a_number_behind_the_start() -> None:
    serde = Serdes.time_windowed(Serdes.string(), 10, changelog=True)
    windowed = Windowed("a", TimeWindow(20, 30))
    assert serde.serialize(windowed) == b"a" + struct.pack(">qi", 20, 0)
    assert serde.deserialize(b"a" + struct.pack(">qi", 20, 7)) == windowed
    assert not serde.identity
    with pytest.raises(DeserializationError, match="a key and 12 bytes of window start"):
        serde.deserialize(b"a" + struct.pack(">q", 20))


def test_changelog_of_a_window_store_is_readable() -> None:
    builder = StreamsBuilder()
    windows = TimeWindows.of_size_with_no_grace(timedelta(milliseconds=10))
    builder.stream("in").group_by_key().windowed_by(windows).count(materialized=Materialized("counts"))
    with TopologyTestDriver(builder.build()) as driver:
        driver.create_input_topic("in").pipe_input("a", 1, timestamp_ms=25)
        keys = Serdes.time_windowed(Serdes.string(), windows.size_ms, changelog=True)
        topic = driver.create_output_topic("headrace-counts-changelog", keys, Serdes.long())
        assert topic.read_key_values() == [(Windowed("a", TimeWindow(20, 30)), 1)]


def test_time_windowed_serde_must_know_where_windows_end() -> None:
    with pytest.raises(ConfigError, match="window_size_ms is missing; give it, or windows"):
        Serdes.time_windowed(Serdes.string())


def test_windowed_serde_can_leave_its_keys_to_the_default() -> None:
    open_serde: TimeWindowedSerde[str] = TimeWindowedSerde(None, 10)
    assert (open_serde.identity, open_serde.immutable) == (False, False)
    with pytest.raises(ConfigError, match="has no serde for its plain keys"):
        open_serde.serializer("t", is_key=True)
    resolved = open_serde.resolve(Serdes.string())
    assert resolved == Serdes.time_windowed(Serdes.string(), 10)
    assert (resolved.identity, resolved.immutable) == (True, True)
    assert resolved.resolve(Serdes.long()) is resolved


@dataclass(frozen=True)
class Order:
    user: str
    amount: float
    tags: tuple[str, ...] = ()


@dataclass
class MutableOrder:
    user: str


@dataclass(frozen=True)
class OrderWithList:
    user: str
    items: list[int] = field(default_factory=list)


class Point(msgspec.Struct, frozen=True):
    x: int
    y: int | None = None


class MutablePoint(msgspec.Struct):
    x: int


class Line(msgspec.Struct, frozen=True):
    start: Point
    end: MutablePoint


class Tree(msgspec.Struct, frozen=True):
    label: str
    children: tuple["Tree", ...] = ()


class Pair(NamedTuple):
    left: int
    right: str


class Row(TypedDict):
    name: str


class Color(Enum):
    RED = "red"


UserId = NewType("UserId", int)


@pytest.mark.parametrize(
    ("type_", "value", "immutable"),
    [
        (Order, Order("alice", 9.5, ("new",)), True),
        (MutableOrder, MutableOrder("alice"), False),
        (OrderWithList, OrderWithList("alice", [1]), False),
        (Point, Point(1), True),
        (MutablePoint, MutablePoint(1), False),
        (Line, Line(Point(1, 2), MutablePoint(3)), False),
        (Tree, Tree("root", (Tree("leaf"),)), True),
        (Pair, Pair(1, "a"), True),
        (Row, {"name": "a"}, False),
        (Color, Color.RED, True),
        (UserId, 5, True),
        (Literal["a", "b"], "a", True),
        (int | None, 5, True),
        (Point | int, Point(1), True),
        (tuple[int, ...], (1, 2), True),
        (tuple[list[int], ...], ([1],), False),
        (list[Order], [Order("alice", 1.0)], False),
        (frozenset[int], frozenset({1}), True),
        (str, "a", True),
        (dict, {"a": 1}, False),
        (Any, True, False),
    ],
    ids=str,
)
def test_typed_json_comes_back_as_its_type(type_: Any, value: Any, immutable: bool) -> None:  # noqa: FBT001 - a table
    serde: Any = Serdes.json(type_)
    assert serde.deserialize(serde.serialize(value)) == value
    assert serde.immutable is immutable
    assert pickle.loads(pickle.dumps(serde)) == serde


@pytest.mark.parametrize(
    ("type_", "value"),
    [(Order, MutableOrder("a")), (Order, {"user": "a"}), (Point, (1, 2)), (Row, [1]), (UserId, "5"), (int | None, "5")],
    ids=str,
)
def test_typed_json_refuses_other_types(type_: Any, value: Any) -> None:
    serde: Any = Serdes.json(type_)
    with pytest.raises(SerializationError, match="the json serde needs"):
        serde.serialize(value)


class Plain:
    """No fields that msgspec could know."""


@dataclass
class HoldsPlain:
    inside: dict[str, Plain | None]


def test_typed_json_refuses_types_that_it_cannot_read() -> None:
    with pytest.raises(ConfigError, match="msgspec cannot read"):
        Serdes.json(dict[tuple[int, list[int]], set[list[int]]] | list[int] | set[str])


@pytest.mark.parametrize("type_", [Plain, list[Plain], HoldsPlain, Plain | None], ids=str)
def test_typed_json_refuses_classes_without_fields_at_the_call(type_: Any) -> None:
    with pytest.raises(ConfigError, match="it does not know the fields of Plain; use a dataclass"):
        Serdes.json(type_)


STRANGE: list[tuple[Any, str]] = [
    (
        Order("alice", 1.0),
        "Order at \\$ would not .* or name Serdes.json\\(Order\\) in Produced",
    ),
    (Point(1), "Point at"),
    (datetime(2024, 1, 1, tzinfo=UTC), "datetime at"),
    (date(2024, 1, 1), "date at"),
    (UUID(int=1), "UUID at"),
    (Color.RED, "Color at"),
    ((1, 2), "tuple at"),
    (Pair(1, "a"), "Pair at"),
    ({1}, "set at"),
    (Counter("a"), "Counter at"),
    (HTTPStatus.OK, "HTTPStatus at"),
    (math.nan, "nan at .* is no number of JSON; write None in its place"),
    (-math.inf, "-inf at .* is no number of JSON"),
]


@pytest.mark.parametrize(("value", "message"), STRANGE, ids=str)
def test_untyped_json_refuses_what_it_cannot_give_back(value: Any, message: str) -> None:
    for is_key in (True, False):
        write = Serdes.json().serializer("t", is_key=is_key)
        with pytest.raises(SerializationError, match=message) as caught:
            write(value)
        assert caught.value.__cause__ is None
        path = r"\$\.a\[1\]\.b"
        with pytest.raises(SerializationError, match=f" at {path} "):
            write({"a": [None, {"b": value}]})


@pytest.mark.parametrize(("value", "message"), STRANGE, ids=str)
def test_topics_refuse_what_untyped_json_cannot_give_back(value: Any, message: str) -> None:
    builder = StreamsBuilder()
    builder.stream("in").map_values(lambda _: value).to("out")
    with TopologyTestDriver(builder.build()) as driver:
        topic = driver.create_input_topic("in")
        with pytest.raises(ProductionError, match=message):
            topic.pipe_input("k", 1)


@pytest.mark.parametrize("value", [math.nan, math.inf, Order("alice", 1.0), date(2024, 1, 1), Counter("a")], ids=str)
def test_topics_refuse_it_inside_dicts_too(value: Any) -> None:
    write: Any = Serdes.json().fast_serializer(is_key=False)
    with pytest.raises(TypeError):
        write({"a": {"b": [1, value]}})


@pytest.mark.parametrize("value", [(1, 2), UUID(int=1), Color.RED], ids=str)
def test_tuples_uuids_and_enums_inside_a_dict_are_written_to_topics(value: Any) -> None:
    write: Any = Serdes.json().fast_serializer(is_key=False)
    assert write({"a": value}) == msgspec.json.encode({"a": value})


@given(JSON)
def test_fast_json_writes_what_the_careful_one_writes(value: Any) -> None:
    write: Any = Serdes.json().fast_serializer(is_key=False)
    assert write(value) == Serdes.json().serializer("t", is_key=False)(value)


@pytest.mark.parametrize("value", [None, "null", {"null": None}, ["nullus", {"a": [None, 1.5]}]], ids=str)
def test_null_itself_is_fine(value: Any) -> None:
    write = Serdes.json().serializer("t", is_key=False)
    assert msgspec.json.decode(write(value)) == value
    fast: Any = Serdes.json().fast_serializer(is_key=False)
    assert fast(value) == write(value)


def test_json_that_contains_itself_is_refused() -> None:
    endless: list[Any] = []
    endless.append(endless)
    with pytest.raises(SerializationError, match="Recursion limit reached"):
        Serdes.json().serialize(endless)


@pytest.mark.parametrize(
    ("type_", "value", "path"),
    [
        (Order, Order("alice", math.nan), r"nan at \$.amount"),
        (float, math.inf, r"inf at \$"),
        (dict[str, list[float]], {"a": [1.0, -math.inf]}, r"-inf at \$.a\[1\]"),
        (tuple[float | None, ...], (None, math.nan), r"nan at \$\[1\]"),
        (Any, {"a": math.nan}, r"nan at \$.a"),
    ],
    ids=str,
)
def test_typed_json_refuses_numbers_that_json_has_not(type_: Any, value: Any, path: str) -> None:
    serde: Any = Serdes.json(type_)
    with pytest.raises(SerializationError, match=f"{path} is no number of JSON"):
        serde.serialize(value)


def test_typed_json_writes_none_beside_numbers() -> None:
    serde: Any = Serdes.json(tuple[float | None, ...])
    assert serde.serialize((None, 1.5)) == b"[null,1.5]"
    raw: Any = Serdes.json(list[msgspec.Raw | float])
    assert raw.serialize([msgspec.Raw(b"null")]) == b"[null]"


def test_typed_json_checks_fields_when_it_reads_not_when_it_writes() -> None:
    wrong: Any = Point("not an int")  # type: ignore[arg-type]  # the point of the test
    data = Serdes.json(Point).serialize(wrong)
    with pytest.raises(DeserializationError, match=r"Expected `int \| null`|Expected `int`, got `str` - at `\$.x`"):
        Serdes.json(Point).deserialize(data)


@pytest.mark.parametrize("serde", [Serdes.json(), Serdes.json(Point)], ids=str)
def test_errors_of_json_have_no_cause_that_says_nothing(serde: Any) -> None:
    with pytest.raises(DeserializationError) as caught:
        serde.deserialize(b"{")
    assert caught.value.__cause__ is None
    assert caught.value.__suppress_context__


@pytest.mark.parametrize(
    ("write", "read", "message"),
    [
        (str.encode, None, r"deserialize must be a function \(data\); found None"),
        (None, bytes.decode, r"serialize must be a function \(value\); found None"),
        (lambda: b"", bytes.decode, r"serialize must be a function \(value\); found .*<lambda>"),
    ],
)
def test_custom_serde_needs_two_functions(write: Any, read: Any, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        Serdes.of(write, read)


def test_json_keys_do_not_depend_on_the_order_of_names() -> None:
    write = Serdes.json().serializer("t", is_key=True)
    assert write({"b": 1, "a": {"d": 1, "c": 2}}) == write({"a": {"c": 2, "d": 1}, "b": 1})
    typed = Serdes.json(dict[str, int]).serializer("t", is_key=True)
    assert typed({"b": 1, "a": 2}) == typed({"a": 2, "b": 1})


def test_custom_serde_reports_what_its_functions_raise() -> None:
    serde: Any = Serdes.of(lambda value: value.encode(), lambda data: int(data))
    assert serde.serialize("5") == b"5"
    assert serde.deserialize(b"5") == 5
    with pytest.raises(SerializationError, match=r"serializer .*<lambda> raised AttributeError.* for int 5"):
        serde.serialize(5)
    with pytest.raises(DeserializationError, match=r"deserializer .*<lambda> raised ValueError.* for bytes b'x'"):
        serde.deserialize(b"x")


def test_custom_serde_must_write_bytes() -> None:
    with pytest.raises(SerializationError, match="must return bytes, got str '5'"):
        Serdes.of(str, int).serialize(5)


def test_custom_serde_is_a_value_with_its_flags() -> None:
    serde = Serdes.of(str.encode, bytes.decode, identity=True, immutable=True)
    assert pickle.loads(pickle.dumps(serde)) == serde
    assert (serde.identity, serde.immutable) == (True, True)
    assert (Serdes.of(str, int).identity, Serdes.of(str, int).immutable) == (False, False)


def test_own_serde_class_needs_only_two_methods() -> None:
    @dataclass(frozen=True)
    class Upper(BaseSerde[str]):
        def serializer(self, topic: str, *, is_key: bool) -> Any:
            return lambda value: f"{topic}:{value.upper()}".encode()

        def deserializer(self, topic: str, *, is_key: bool) -> Any:
            return lambda data: data.decode()

    assert Upper().serialize("a", "t") == b"t:A"
    assert (Upper().identity, Upper().immutable, Upper().exact_type) == (False, False, None)
    assert Serdes.list_of(Upper()).deserialize(Serdes.list_of(Upper()).serialize(["a"])) == [":A"]


@pytest.mark.parametrize(
    ("type_", "serde"),
    [
        (str, Serdes.string()),
        (bytes, Serdes.bytes()),
        (int, Serdes.long()),
        (float, Serdes.double()),
        (bool, Serdes.boolean()),
        (UUID, Serdes.uuid()),
        (type(None), Serdes.void()),
    ],
)
def test_plain_types_have_a_serde(type_: Any, serde: Any) -> None:
    assert Serdes.serde_from(type_) == serde


def test_other_types_have_none() -> None:
    with pytest.raises(ConfigError, match="has no serde of its own; use Serdes"):
        Serdes.serde_from(Order)


def test_unknown_encoding_is_refused() -> None:
    with pytest.raises(ConfigError, match="encoding 'utf-9' is unknown"):
        Serdes.string("utf-9")


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="memory is found in /proc")
@pytest.mark.parametrize("is_fast", [False, True])
def test_json_that_is_kept_takes_the_memory_it_needs(*, is_fast: bool) -> None:
    serde = Serdes.json()
    write = serde.fast_serializer(is_key=False) if is_fast else serde.serializer("t", is_key=False)
    assert write is not None
    before = _own_memory()
    kept = [write({"id": number, "region": number % 7}) for number in range(100_000)]
    # A hundred bytes each; pieces of the encoder's buffers would be kilobytes.
    assert (_own_memory() - before) / len(kept) < 1_000


def _own_memory() -> int:
    lines = Path("/proc/self/status").read_text().splitlines()
    return 1024 * next(int(line.split()[1]) for line in lines if line.startswith("RssAnon:"))

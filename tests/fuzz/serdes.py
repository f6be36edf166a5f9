"""Records of every serde and of every SQL format: written and read, and read after they were damaged."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from decimal import Decimal
from itertools import count
from pathlib import Path
from random import Random
from typing import Any

from google.rpc.http_pb2 import HttpHeader

from headrace.errors import DeserializationError, SerializationError
from headrace.serdes import Serdes
from headrace.serdes.registry import AvroSerde, JsonSchemaSerde, ProtobufSerde, SchemaRegistry
from headrace.sql.formats import FORMATS, FormatOptions, format_named
from headrace.sql.types import (
    ARRAY,
    BIGINT,
    BOOLEAN,
    BYTES,
    DATE,
    DECIMAL,
    DOUBLE,
    INTEGER,
    MAP,
    STRING,
    STRUCT,
    TIME,
    TIMESTAMP,
    SqlType,
    StructField,
)
from headrace.sql.types.schema import Column
from headrace.windows import SessionWindow, TimeWindow, Windowed
from tests.fuzz.mutation import damaged_bytes

_NUMBERS = count()
_AVRO = """{"type": "record", "name": "Order", "fields": [
    {"name": "user", "type": "string"}, {"name": "amount", "type": "double"}]}"""
_JSON = """{"title": "Order", "type": "object", "required": ["user", "amount"],
    "properties": {"user": {"type": "string"}, "amount": {"type": "number"}}}"""
_SCALARS: tuple[SqlType, ...] = (INTEGER, BIGINT, DOUBLE, BOOLEAN, STRING, DECIMAL(6, 2))
_RICHER: tuple[SqlType, ...] = (
    *(*_SCALARS, BYTES, DATE, TIME, TIMESTAMP, ARRAY(INTEGER), MAP(STRING, BIGINT)),
    *(STRUCT((StructField("A", INTEGER), StructField("B", STRING))), ARRAY(STRUCT((StructField("X", DOUBLE),)))),
)


@dataclass(frozen=True)
class _Case:
    """A serde, and a way to make values for it."""

    name: str
    # Any: each serde has a type of its own.
    serde: Any
    make: Callable[[Random], Any]


@contextmanager
def opened(_directory: Path) -> Iterator[Callable[[Random], str]]:
    cases = [*_plain(), *_registered(), *_formats()]

    def trial(random: Random) -> str:
        return _trial(random.choice(cases), random)

    yield trial


def _trial(case: _Case, random: Random) -> str:
    write, read = case.serde.serializer("topic", is_key=False), case.serde.deserializer("topic", is_key=False)
    value = case.make(random)
    data = write(value)
    found = read(data)
    assert _same(found, value), f"{case.name}: {value!r} was written as {data!r} and read as {found!r}"
    damaged = random.randbytes(random.randint(0, 40)) if random.random() < 0.2 else damaged_bytes(data, random)
    try:
        other = read(damaged)
    except DeserializationError:
        return "refused"
    if other is not None:
        # What could be read is a value like any other, and can be written, or is refused as such.
        try:
            write(other)
        except SerializationError:
            return "read, and not written"
    return "read"


def _same(found: Any, value: Any) -> bool:
    return bool(found == value) or repr(found) == repr(value)


def _text(random: Random) -> str:
    return "".join(random.choice("abc ,;'\"\\\n\t{}äé😀\u2028\x00\x7f") for _ in range(random.randint(0, 12)))


def _float(random: Random) -> float:
    return random.choice((0.0, -0.0, 1.5, -1e300, 5e-324, random.random(), random.uniform(-1e9, 1e9)))


def _json(random: Random, depth: int = 0) -> Any:
    kinds = 5 if depth > 3 else 7
    match random.randrange(kinds):
        case 0:
            return None
        case 1:
            return random.random() < 0.5
        case 2:
            return random.randint(-(2**53), 2**53)
        case 3:
            return _float(random)
        case 4:
            return _text(random)
        case 5:
            return [_json(random, depth + 1) for _ in range(random.randint(0, 3))]
        case _:
            return {_text(random): _json(random, depth + 1) for _ in range(random.randint(0, 3))}


def _plain() -> list[_Case]:
    string, long = Serdes.string(), Serdes.long()

    def time_window(random: Random) -> Any:
        start = random.randint(0, 1 << 40)
        return Windowed(_text(random), TimeWindow(start, start + 1000))

    def session_window(random: Random) -> Any:
        start = random.randint(0, 1 << 40)
        return Windowed(_text(random), SessionWindow(start, start + random.randint(0, 1000)))

    def some(make: Callable[[Random], Any]) -> Callable[[Random], list[Any]]:
        return lambda random: [None if random.random() < 0.1 else make(random) for _ in range(random.randint(0, 4))]

    def integer(bits: int) -> Callable[[Random], int]:
        return lambda random: random.randint(-(1 << bits - 1), (1 << bits - 1) - 1)

    return [
        _Case("string", string, _text),
        _Case("bytes", Serdes.bytes(), lambda random: random.randbytes(random.randint(0, 20))),
        _Case("short", Serdes.short(), integer(16)),
        _Case("integer", Serdes.integer(), integer(32)),
        _Case("long", long, integer(64)),
        _Case("float", Serdes.float(), lambda random: random.choice((0.0, 1.5, -2.25))),
        _Case("double", Serdes.double(), _float),
        _Case("boolean", Serdes.boolean(), lambda random: random.random() < 0.5),
        _Case("uuid", Serdes.uuid(), lambda random: uuid.UUID(int=random.getrandbits(128))),
        _Case("list of strings", Serdes.list_of(string), some(_text)),
        _Case("list of longs", Serdes.list_of(long), some(integer(64))),
        _Case("list of lists", Serdes.list_of(Serdes.list_of(string)), some(some(_text))),
        _Case("json", Serdes.json(), lambda random: [_json(random)]),
        _Case("typed json", Serdes.json(dict[str, list[int]]), lambda random: {_text(random): [random.randint(0, 9)]}),
        _Case("time windowed", Serdes.time_windowed(string, 1000), time_window),
        _Case("session windowed", Serdes.session_windowed(string), session_window),
    ]


def _registered() -> list[_Case]:
    registry = SchemaRegistry(f"mock://fuzz-{next(_NUMBERS)}")

    def order(random: Random) -> dict[str, Any]:
        return {"user": _text(random), "amount": _float(random)}

    def header(random: Random) -> HttpHeader:
        return HttpHeader(key=_text(random), value=_text(random))

    return [
        _Case("avro", AvroSerde(registry, _AVRO), order),
        _Case("json schema", JsonSchemaSerde(SchemaRegistry(f"mock://fuzz-{next(_NUMBERS)}"), _JSON), order),
        _Case("protobuf", ProtobufSerde(SchemaRegistry(f"mock://fuzz-{next(_NUMBERS)}"), HttpHeader), header),
    ]


def _formats() -> list[_Case]:
    cases = []
    for name in FORMATS:
        if name == "NONE":
            continue
        types = {"KAFKA": (STRING,), "DELIMITED": _SCALARS}.get(name, _RICHER)
        columns = tuple(Column(f"C{index}", type) for index, type in enumerate(types))
        options = FormatOptions(registry=SchemaRegistry(f"mock://fuzz-{next(_NUMBERS)}"))
        cases.append(_Case(f"format {name}", format_named(name).serde(columns, options), _rows(name, columns)))
    return cases


def _rows(format: str, columns: tuple[Column, ...]) -> Callable[[Random], list[Any]]:
    # NULL is an empty text in a delimited record, and zero in Protobuf.
    nulls = 0.1 if format in ("JSON", "JSON_SR", "AVRO") else 0.0

    def row(random: Random) -> list[Any]:
        return [None if random.random() < nulls else _value(column.type, random, format) for column in columns]

    return row


def _value(type: SqlType, random: Random, format: str) -> Any:
    made: dict[SqlType, Callable[[], Any]] = {
        INTEGER: lambda: random.randint(-(2**31), 2**31 - 1),
        BIGINT: lambda: random.randint(-(2**63), 2**63 - 1),
        DOUBLE: lambda: _float(random),
        BOOLEAN: lambda: random.random() < 0.5,
        STRING: lambda: f"x{_text(random)}" if format == "DELIMITED" else _text(random),
        DECIMAL(6, 2): lambda: Decimal(random.randint(-999999, 999999)).scaleb(-2),
        BYTES: lambda: random.randbytes(random.randint(0, 8)),
        DATE: lambda: random.randint(0, 20000),
        TIME: lambda: random.randint(0, 86_399_999),
        TIMESTAMP: lambda: random.randint(0, 2**41),
        ARRAY(INTEGER): lambda: [random.randint(0, 9) for _ in range(random.randint(0, 3))],
        MAP(STRING, BIGINT): lambda: {f"k{each}": each for each in range(random.randint(0, 3))},
    }
    if type in made:
        return made[type]()
    if type == _RICHER[-2]:
        return {"A": random.randint(0, 9), "B": _text(random)}
    return [{"X": _float(random)} for _ in range(random.randint(0, 3))]

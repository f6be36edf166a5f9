"""Columns of keys and values: which type of Spark a serde has, and the way between its bytes and Arrow."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from typing import Any, TypedDict
from uuid import UUID

from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    ByteType,
    DataType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    MapType,
    ShortType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from headrace.arguments.durations import MAX_LONG
from headrace.errors import ConfigError, DeserializationError, did_you_mean
from headrace.serdes import Serde, Serdes
from headrace.windows import Windowed

JSON = "json"
_TIME_WINDOWED, _SESSION_WINDOWED = "windowed-", "session-"

HEADERS_TYPE = ArrayType(StructType([StructField("key", StringType()), StructField("value", BinaryType())]))
WINDOW_COLUMNS = (StructField("window_start", TimestampType()), StructField("window_end", TimestampType()))

# Any: what a serde reads, or what Arrow takes.
Convert = Callable[[Any], Any]
Types = tuple[type[DataType], ...]

_PLAIN: Mapping[str, tuple[Serde[Any], DataType, Types]] = {
    "string": (Serdes.string(), StringType(), (StringType,)),
    "bytes": (Serdes.bytes(), BinaryType(), (BinaryType,)),
    "short": (Serdes.short(), ShortType(), (ByteType, ShortType)),
    "integer": (Serdes.integer(), IntegerType(), (ByteType, ShortType, IntegerType)),
    "long": (Serdes.long(), LongType(), (ByteType, ShortType, IntegerType, LongType)),
    "float": (Serdes.float(), FloatType(), (FloatType,)),
    "double": (Serdes.double(), DoubleType(), (FloatType, DoubleType)),
    "boolean": (Serdes.boolean(), BooleanType(), (BooleanType,)),
    "uuid": (Serdes.uuid(), StringType(), (StringType,)),
}
"""By name: the serde, the type in which it is read, the types from which it is written."""
_PYTHON: Mapping[type[DataType], type] = {
    StringType: str,
    BinaryType: bytes,
    ByteType: int,
    ShortType: int,
    IntegerType: int,
    LongType: int,
    FloatType: float,
    DoubleType: float,
    BooleanType: bool,
    DecimalType: Decimal,
    TimestampType: datetime,
    DateType: date,
}


@dataclass(frozen=True)
class ColumnReader:
    """Reads the bytes of a column."""

    exact: Convert
    """Explains why bytes cannot be read."""
    fast: Convert
    """Reads the same values, and may fail with any exception."""

    def read(self, data: Sequence[bytes | None], where: Callable[[int], str]) -> list[Any]:
        """Returns keys or values; of bytes that cannot be read it says where they are, by their number."""
        fast = self.fast
        try:
            return [None if each is None else fast(each) for each in data]
        except Exception:
            return [None if each is None else self._explained(each, number, where) for number, each in enumerate(data)]

    def _explained(self, data: bytes, number: int, where: Callable[[int], str]) -> Any:
        try:
            return self.exact(data)
        except DeserializationError as error:
            message = f"{error}; it is in {where(number)}; name another format, or read 'bytes'"
            raise DeserializationError(message) from error


@dataclass(frozen=True)
class ColumnFormat:
    """A serde by its name, with the type of its column."""

    name: str
    serde: Serde[Any]
    type: DataType
    accepts: Types = ()
    """Types of columns that can be written; none if it is only read."""
    to_arrow: Convert | None = None
    """From what the serde reads to what Arrow takes; None: it is the same."""
    from_arrow: Convert | None = None

    def reader(self, topic: str, *, is_key: bool) -> ColumnReader:
        """Returns what reads keys or values of a topic."""
        read, convert = self.serde.deserializer(topic, is_key=is_key), self.to_arrow
        # Only serdes that come with Headrace have it.
        fast = getattr(self.serde, "fast_deserializer", lambda **_: None)(is_key=is_key) or read
        if convert is None:
            return ColumnReader(read, fast)
        return ColumnReader(lambda data: convert(read(data)), lambda data: convert(fast(data)))

    def writer(self, topic: str, *, is_key: bool) -> Convert:
        """Returns the function that writes what Arrow has given."""
        write, convert = self.serde.serializer(topic, is_key=is_key), self.from_arrow
        return write if convert is None else lambda value: write(convert(value))

    def key_bytes(self, topic: str) -> Convert | None:
        """Returns the function that writes keys, if equal keys have equal bytes; else None."""
        plain = self.serde.identity and self.from_arrow is None
        return self.writer(topic, is_key=True) if plain else None


def is_format(name: str) -> bool:
    """Returns whether a format without windows has this name.

    >>> is_format("long"), is_format("list")
    (True, False)
    """
    return name == JSON or name in _PLAIN


def column_format(name: str, type: DataType | None = None, window_size: int | None = None) -> ColumnFormat:
    """Returns the format that an option names; ``type`` is the one that the column is to have, where one can choose.

    JSON is text, or of any type; everything else has a type of its own.

    >>> column_format("long").type, column_format("json").type
    (LongType(), StringType())
    >>> order = StructType().add("user", "string").add("amount", "decimal(10,2)")
    >>> reader = column_format("json", order).reader("orders", is_key=False)
    >>> reader.read([b'{"user": "alice", "amount": 9.5, "note": "?"}', None], str)
    [{'user': 'alice', 'amount': Decimal('9.50')}, None]
    >>> column_format("lnog")
    Traceback (most recent call last):
    ...
    headrace.errors.ConfigError: data source headrace: there is no format 'lnog'; did you mean 'long'?; ...
    """
    if name == JSON:
        return _json_text() if type is None or isinstance(type, StringType) else _typed_json(type)
    if name == "uuid":
        return ColumnFormat(name, *_PLAIN[name], to_arrow=str, from_arrow=UUID)
    if name in _PLAIN:
        return ColumnFormat(name, *_PLAIN[name])
    for prefix in (_TIME_WINDOWED, _SESSION_WINDOWED):
        if name.removeprefix(prefix) in _PLAIN and name.startswith(prefix):
            return _windowed(name, column_format(name.removeprefix(prefix)), window_size)
    known = (JSON, *_PLAIN)
    message = (
        f"data source headrace: there is no format '{name}'{did_you_mean(name, known)}; formats are "
        f"{', '.join(known)}, and for keys within windows {_TIME_WINDOWED}string, {_SESSION_WINDOWED}string and so on"
    )
    raise ConfigError(message)


def _typed_json(type: DataType) -> ColumnFormat:
    serde = Serdes.json(_python_type(type))
    return ColumnFormat(JSON, serde, type, (type.__class__,), _converter(type), _arrow_to_spark(type))


def _json_text() -> ColumnFormat:
    read = Serdes.json().deserializer("", is_key=False)

    def checked(data: bytes) -> str:
        read(data)
        return data.decode()

    def unchecked(text: str) -> bytes:
        data = text.encode()
        read(data)
        return data

    serde: Serde[Any] = Serdes.of(unchecked, checked)
    return ColumnFormat(JSON, serde, StringType(), (StringType,))


def _windowed(name: str, inner: ColumnFormat, window_size: int | None) -> ColumnFormat:
    if name.startswith(_SESSION_WINDOWED):
        serde: Serde[Any] = Serdes.session_windowed(inner.serde)
    else:
        serde = Serdes.time_windowed(inner.serde, window_size or MAX_LONG)
    type = StructType([StructField("key", inner.type), *WINDOW_COLUMNS])
    convert = inner.to_arrow

    def to_arrow(key: Windowed[Any]) -> dict[str, Any]:
        start, end = key.window.start_ms, key.window.end_ms
        plain = key.key if convert is None else convert(key.key)
        # The topic does not say where a window ends, if nobody tells the size.
        return {"key": plain, "window_start": start * 1000, "window_end": None if end == MAX_LONG else end * 1000}

    return ColumnFormat(name, serde, type, (), to_arrow)


# Any: a type as msgspec takes it.
def _python_type(type: DataType) -> Any:
    """Returns the type of objects as which JSON is read, so that each value is checked."""
    match type:
        case StructType():
            fields = {each.name: _python_type(each.dataType) | None for each in type.fields}
            return TypedDict("Row", fields, total=False)  # type: ignore[operator]  # made of a schema
        case ArrayType():
            return list[_python_type(type.elementType) | None]  # type: ignore[misc]  # made of a schema
        case MapType():
            return dict[_python_type(type.keyType), _python_type(type.valueType) | None]  # type: ignore[misc]  # the same
    found = _PYTHON.get(type.__class__)
    if found is None:
        message = (
            f"data source headrace: JSON has no {type.simpleString()}; use string, numbers, boolean, date, "
            "timestamp, binary (base64), array, map and struct"
        )
        raise ConfigError(message)
    return found


def _converter(type: DataType) -> Convert | None:
    """Returns the function that makes Arrow's objects of JSON's, None where they are the same."""
    return _nested(type, _arrow_leaf, lambda pairs: list(pairs.items()), dict.items)


def _arrow_to_spark(type: DataType) -> Convert | None:
    return _nested(type, lambda _: None, dict, iter)


def _arrow_leaf(type: DataType) -> Convert | None:
    if isinstance(type, DecimalType):
        unit = Decimal(1).scaleb(-type.scale)
        return lambda number: number.quantize(unit)
    return None


def _nested(type: DataType, leaf: Convert, make_map: Convert, pairs_of: Convert) -> Convert | None:
    match type:
        case StructType():
            found = ((each.name, _nested(each.dataType, leaf, make_map, pairs_of)) for each in type.fields)
            changed = [(name, convert) for name, convert in found if convert is not None]
            if not changed:
                return None

            def of_struct(row: dict[str, Any]) -> dict[str, Any]:
                for name, convert in changed:
                    if row.get(name) is not None:
                        row[name] = convert(row[name])
                return row

            return of_struct
        case ArrayType():
            item = _nested(type.elementType, leaf, make_map, pairs_of)
            if item is None:
                return None
            return lambda items: [None if each is None else item(each) for each in items]
        case MapType():
            value = _nested(type.valueType, leaf, make_map, pairs_of)
            if value is None:
                return make_map
            return lambda found: make_map({key: None if each is None else value(each) for key, each in pairs_of(found)})
    result: Convert | None = leaf(type)
    return result

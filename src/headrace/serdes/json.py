"""JSON serdes: plain values by orjson, typed ones by msgspec."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any, TypeVar

import msgspec
import orjson

from headrace.errors import ConfigError, DeserializationError, SerializationError, describe_value
from headrace.serdes.base import BaseSerde, Place, place, wrong_type
from headrace.serdes.json_roundtrip import find_no_number, find_strange, roundtrips
from headrace.serdes.type_inspection import accepted_types, is_immutable, may_hold_floats, unknown_class

T = TypeVar("T")

_OPTIONS = orjson.OPT_PASSTHROUGH_DATACLASS | orjson.OPT_PASSTHROUGH_DATETIME | orjson.OPT_PASSTHROUGH_SUBCLASS
_dumps = orjson.dumps
# What orjson returns is cut from a piece of a kilobyte. If many are kept, the allocator looks through the leftovers of
# all of them for each next piece: 1.8 µs a value. A copy that is no larger than it must be costs 0.1 µs.
_copy = b"".join
_NOTHING = b""
# NaN and infinity are written as null. Two of its letters are looked for first: finding one byte is much cheaper.
_L, _U = b"lu"


@dataclass(frozen=True)
class JsonSerde(BaseSerde[Any]):
    """JSON of dicts, lists, strings, finite numbers and booleans: what comes back as it was.

    Anything else is refused. Objects, times, UUIDs, enums, tuples and sets have ``Serdes.json(T)``; NaN and infinity
    are no numbers of JSON. For speed there is one exception: inside a dict that is written to a topic nobody looks for
    tuples, UUIDs and enums, and the topic's reader finds lists and strings. As a key, a dict is written with its names
    sorted, so that equal keys meet in one partition.

    >>> JsonSerde().serialize({"b": 1, "a": [True, None]})
    b'{"b":1,"a":[true,null]}'
    >>> JsonSerde().deserialize(b'{"a": 1.5}')
    {'a': 1.5}
    >>> JsonSerde().serialize({"a": (1, 2)})
    Traceback (most recent call last):
    ...
    headrace.errors.SerializationError: value: the json serde cannot write dict {'a': (1, 2)}: tuple at $.a would not \
come back as it was; ...
    """

    def serializer(self, topic: str, *, is_key: bool) -> Callable[[Any], bytes]:
        where, dumps = place(topic, is_key=is_key), orjson.dumps
        options = _OPTIONS | orjson.OPT_SORT_KEYS if is_key else _OPTIONS

        def serialize(value: Any) -> bytes:
            try:
                data = _copy((dumps(value, None, options), _NOTHING))
            except TypeError as error:
                raise _unwritable(where, value, str(error)) from None
            may_hide_nan = _L in data and _U in data and data.find(b"null") >= 0
            if not roundtrips(value) or (may_hide_nan and find_strange(value) is not None):
                raise _unwritable(where, value)
            return data

        return serialize

    def deserializer(self, topic: str, *, is_key: bool) -> Callable[[bytes], Any]:
        where, loads = place(topic, is_key=is_key), orjson.loads

        def deserialize(data: bytes) -> Any:
            try:
                return loads(data)
            except ValueError as error:
                raise _unreadable(where, "json", error, data) from None

        return deserialize

    def fast_serializer(self, *, is_key: bool) -> Callable[[Any], bytes] | None:
        return None if is_key else _write

    def fast_deserializer(self, *, is_key: bool) -> Callable[[bytes], Any] | None:
        return orjson.loads


@dataclass(frozen=True)
class TypedJsonSerde(BaseSerde[T]):
    """JSON of one type, checked when it is read: a dataclass, ``msgspec.Struct``, or what else msgspec knows.

    Writing checks the type of the value, not of its fields, and that there is no NaN or infinity, which JSON has not.
    Make the type frozen, with immutable fields: stores then keep its objects, instead of writing and reading them.

    >>> from dataclasses import dataclass
    >>> @dataclass(frozen=True)
    ... class Order:
    ...     user: str
    ...     amount: float
    >>> serde = TypedJsonSerde(Order)
    >>> serde.serialize(Order("alice", 9.5))
    b'{"user":"alice","amount":9.5}'
    >>> serde.deserialize(_)
    Order(user='alice', amount=9.5)
    >>> serde.immutable
    True
    """

    # Any: typing has no name for "a type or a generic alias of T"; Serdes.json carries T.
    type: Any
    """The type; a generic one such as ``list[int]`` or a union is fine too."""

    def __post_init__(self) -> None:
        try:
            _decoder(self.type)
            unknown = unknown_class(self.type)
        except (TypeError, RecursionError, NameError) as error:
            raise _no_json_type(self.type, str(error)) from error
        if unknown is not None:
            raise _no_json_type(self.type, f"it does not know the fields of {unknown.__name__}")

    @property
    def identity(self) -> bool:
        """Only for strings: the fields of an object may hold 1, 1.0 and True, which are equal and not written alike."""
        return self.type is str

    @property
    def immutable(self) -> bool:
        """Whether the type is frozen, and so are the types of its fields."""
        return is_immutable(self.type)

    def serializer(self, topic: str, *, is_key: bool) -> Callable[[T], bytes]:
        where, accepted = place(topic, is_key=is_key), accepted_types(self.type)
        encode, required, floats = _encoder(is_key).encode, _name(self.type), may_hold_floats(self.type)

        def serialize(value: T) -> bytes:
            if type(value) not in accepted and not _is_one_of(value, accepted):
                raise wrong_type(where, "json", required, value)
            try:
                data = encode(value)
            except (TypeError, ValueError, OverflowError) as error:
                message = f"{where}: the json serde cannot write {describe_value(value)}: {error}"
                raise SerializationError(message) from error
            if floats and _L in data and _U in data and data.find(b"null") >= 0:
                _check_numbers(where, value)
            return data

        return serialize

    def deserializer(self, topic: str, *, is_key: bool) -> Callable[[bytes], T]:
        where, decode, name = place(topic, is_key=is_key), _decoder(self.type).decode, f"json({_name(self.type)})"

        def deserialize(data: bytes) -> T:
            try:
                value: T = decode(data)
            except (ValueError, TypeError) as error:
                raise _unreadable(where, name, error, data) from None
            return value

        return deserialize

    def fast_deserializer(self, *, is_key: bool) -> Callable[[bytes], T] | None:
        return _decoder(self.type).decode


# Coders do not pickle, and making one costs as much as hundreds of records: serdes hold the type, a process the coder.
@cache
def _decoder(type: Any) -> msgspec.json.Decoder[Any]:
    return msgspec.json.Decoder(type)


@cache
def _encoder(is_key: bool) -> msgspec.json.Encoder:  # noqa: FBT001 - cached by position
    return msgspec.json.Encoder(order="deterministic" if is_key else None)


def _write(value: Any) -> bytes:
    data = _copy((_dumps(value, None, _OPTIONS), _NOTHING))
    if (_L in data and _U in data and data.find(b"null") >= 0) or type(value) is not dict:
        strange = find_strange(value)
        if strange is not None:
            raise TypeError(strange)
    return data


def _check_numbers(where: Place, value: Any) -> None:
    found = find_no_number(value)
    if found is not None:
        message = f"{where}: the json serde cannot write {describe_value(value)}: {_no_number(*found)}"
        raise SerializationError(message)


def _is_one_of(value: object, accepted: tuple[type, ...]) -> bool:
    # For Python True is an int, for JSON it is not.
    return isinstance(value, accepted) and (type(value) is not bool or object in accepted)


def _name(type: Any) -> str:
    return getattr(type, "__name__", None) or repr(type)


def _no_json_type(type: Any, reason: str) -> ConfigError:
    found = describe_value(type)
    message = f"json serde: msgspec cannot read {found}: {reason}; use a dataclass or msgspec.Struct"
    return ConfigError(message)


def _unwritable(where: Place, value: Any, reason: str = "") -> SerializationError:
    what = f"{where}: the json serde cannot write {describe_value(value)}"
    convert = "convert it to dicts with string keys, lists and plain values"
    strange = find_strange(value)
    if strange is None:
        return SerializationError(f"{what}: {reason}; {convert}")
    path, part = strange
    if type(part) is float:
        return SerializationError(f"{what}: {_no_number(path, part)}")
    option = where.option or " in Produced, Grouped or Materialized"
    message = f"{what}: {type(part).__name__} at {path} would not come back as it was; {convert}"
    typed = _serde_for(path, part)
    return SerializationError(f"{message}, or name {typed}{option}" if typed else message)


def _no_number(path: str, number: float) -> str:
    return f"{number!r} at {path} is no number of JSON; write None in its place, or name a serde that is not JSON"


def _serde_for(path: str, part: object) -> str:
    try:
        TypedJsonSerde(type(part))
    except ConfigError:
        return ""
    return f"Serdes.json({type(part).__name__})" if path == "$" else "Serdes.json(T) for its type T"


def _unreadable(where: Place, serde: str, error: Exception, data: bytes) -> DeserializationError:
    message = f"{where}: the {serde} serde cannot read {describe_value(data)}: {error}"
    return DeserializationError(message)

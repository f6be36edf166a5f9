"""Rows to messages of Protobuf and back."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date, timedelta
from decimal import Context, Decimal
from typing import Any

from google.protobuf.descriptor import Descriptor, FieldDescriptor

from headrace.sql.formats.proto_columns import WRAPPERS, choices_of, is_map, plain_fields
from headrace.sql.types import SqlArray, SqlDecimal, SqlMap, SqlStruct, SqlType
from headrace.sql.types.schema import Column

# Any: messages have the fields that their schema gives them.
Fill = Callable[[Any, Any], None]
Plain = Callable[[Any], Any]
_EPOCH = date(1970, 1, 1)
# The usual context would round to 28 digits.
_EXACT = Context(prec=1000)


def row_filler(columns: tuple[Column, ...], message: Descriptor) -> Fill:
    """Returns the function that fills a message with the values of a row."""
    return _filler([(column.name, index, column.type) for index, column in enumerate(columns)], message)


def _filler(parts: list[tuple[str, Any, SqlType]], message: Descriptor) -> Fill:
    upper = {field.name.upper(): field for field in message.fields}
    choices = {name.upper() for name, _, _ in choices_of(message)}
    fillers: list[tuple[Any, Fill]] = []
    for name, place, type in parts:
        field = message.fields_by_name.get(name) or upper.get(name.upper())
        if field is None and name.upper() in choices and isinstance(type, SqlStruct):
            # The fields of a oneof are fields of the message itself.
            fillers.append((place, _filler([(part.name, part.name, part.type) for part in type.fields], message)))
            continue
        if field is None:
            text = f"message '{message.full_name}' has no field for column {name}"
            raise ValueError(text)
        fillers.append((place, _field_filler(type, field)))

    def fill(made: Any, values: Any) -> None:
        for place, fill_field in fillers:
            value = values[place]
            if value is not None:
                fill_field(made, value)

    return fill


def _field_filler(type: SqlType, field: FieldDescriptor) -> Fill:
    name = field.name
    if isinstance(type, SqlMap) and is_map(field):
        return _map_filler(type, field)
    if isinstance(type, SqlArray) and field.is_repeated:
        return _array_filler(type, field)
    if field.message_type is not None:
        fill_part = _message_filler(type, field.message_type)

        def fill_message(made: Any, value: Any) -> None:
            part = getattr(made, name)
            part.SetInParent()
            fill_part(part, value)

        return fill_message
    convert = _scalar(field)

    def fill_scalar(made: Any, value: Any) -> None:
        setattr(made, name, convert(value))

    return fill_scalar


def _array_filler(type: SqlArray, field: FieldDescriptor) -> Fill:
    name = field.name
    if field.message_type is None:
        convert, empty = _scalar(field), _zero(field)

        def fill_scalars(made: Any, value: Any) -> None:
            getattr(made, name).extend([empty if item is None else convert(item) for item in value])

        return fill_scalars
    fill_part = _message_filler(type.item, field.message_type)

    def fill_messages(made: Any, value: Any) -> None:
        parts = getattr(made, name)
        for item in value:
            part = parts.add()
            if item is not None:
                fill_part(part, item)

    return fill_messages


def _map_filler(type: SqlMap, field: FieldDescriptor) -> Fill:
    name, entry = field.name, field.message_type.fields_by_name["value"]
    key_value = _key_value(field.message_type.fields_by_name["key"])
    if entry.message_type is None:
        convert, empty = _scalar(entry), _zero(entry)

        def fill_scalars(made: Any, value: Any) -> None:
            parts = getattr(made, name)
            for key, item in value.items():
                parts[key_value(key)] = empty if item is None else convert(item)

        return fill_scalars
    fill_part = _message_filler(type.value, entry.message_type)

    def fill_messages(made: Any, value: Any) -> None:
        parts = getattr(made, name)
        for key, item in value.items():
            part = parts[key_value(key)]
            if item is not None:
                fill_part(part, item)

    return fill_messages


def _message_filler(type: SqlType, message: Descriptor) -> Fill:
    name = message.full_name
    if name in WRAPPERS:
        return _fill_wrapper
    if name in _FILLERS and not isinstance(type, SqlStruct):
        return _decimal_filler(type) if isinstance(type, SqlDecimal) else _FILLERS[name]
    if isinstance(type, SqlStruct):
        return _filler([(field.name, field.name, field.type) for field in type.fields], message)
    text = f"message '{name}' cannot hold {type}"
    raise ValueError(text)


def _fill_wrapper(made: Any, value: Any) -> None:
    made.value = value


def _fill_date(made: Any, value: int) -> None:
    day = _EPOCH + timedelta(days=value)
    made.year, made.month, made.day = day.year, day.month, day.day


def _fill_time(made: Any, value: int) -> None:
    seconds, milliseconds = divmod(value, 1000)
    made.hours, made.minutes, made.seconds = seconds // 3600, seconds // 60 % 60, seconds % 60
    made.nanos = milliseconds * 1_000_000


def _fill_timestamp(made: Any, value: int) -> None:
    made.seconds, milliseconds = divmod(value, 1000)
    made.nanos = milliseconds * 1_000_000


def _decimal_filler(type: SqlDecimal) -> Fill:
    def fill(made: Any, value: Decimal) -> None:
        unscaled = int(value.scaleb(type.scale, _EXACT))
        made.value = unscaled.to_bytes((unscaled.bit_length() + 8) // 8, "big", signed=True)
        made.precision, made.scale = type.precision, type.scale

    return fill


def _no_decimal(made: Any, value: Any) -> None:
    text = f"a decimal cannot hold {value!r}"
    raise ValueError(text)


_FILLERS: dict[str, Fill] = {
    "google.type.Date": _fill_date,
    "google.type.TimeOfDay": _fill_time,
    "google.protobuf.Timestamp": _fill_timestamp,
    "confluent.type.Decimal": _no_decimal,
}


_ZEROS = {
    FieldDescriptor.CPPTYPE_BOOL: False,
    FieldDescriptor.CPPTYPE_DOUBLE: 0.0,
    FieldDescriptor.CPPTYPE_FLOAT: 0.0,
}


def _scalar(field: FieldDescriptor) -> Plain:
    if field.enum_type is None:
        return _same
    numbers = {value.name: value.number for value in field.enum_type.values}
    return lambda value: numbers[value]


def _zero(field: FieldDescriptor) -> Any:
    # A repeated field has an empty list as its default, which is not what its items have.
    if field.enum_type is not None:
        return 0
    if field.cpp_type == FieldDescriptor.CPPTYPE_STRING:
        return b"" if field.type == FieldDescriptor.TYPE_BYTES else ""
    return _ZEROS.get(field.cpp_type, 0)


def _same(value: Any) -> Any:
    return value


def plain_reader(message: Descriptor) -> Plain:
    """Returns the function that makes a dict of a message: what is absent is None, or 0 where Protobuf cannot tell."""
    readers = [(field.name, _field_reader(field)) for field in plain_fields(message)]
    readers += [(name, _choice_reader(oneof, fields)) for name, oneof, fields in choices_of(message)]
    return lambda made: {name: read(made) for name, read in readers}


def _choice_reader(oneof: str, fields: list[FieldDescriptor]) -> Plain:
    readers = [(field.name, _field_reader(field)) for field in fields]

    def read(made: Any) -> Any:
        if made.WhichOneof(oneof) is None:
            return None
        return {name: read_field(made) for name, read_field in readers}

    return read


def _field_reader(field: FieldDescriptor) -> Plain:
    name = field.name
    if is_map(field):
        convert = _value_reader(field.message_type.fields_by_name["value"])
        return lambda made: {_key_text(key): convert(item) for key, item in sorted(getattr(made, name).items())}
    convert = _value_reader(field)
    if field.is_repeated:
        return lambda made: [convert(item) for item in getattr(made, name)]
    if field.has_presence:
        return lambda made: convert(getattr(made, name)) if made.HasField(name) else None
    return lambda made: convert(getattr(made, name))


def _key_text(key: Any) -> str:
    """Returns the key of a map as text, which is all that keys of maps can be in SQL."""
    if isinstance(key, str):
        return key
    return str(key).lower() if isinstance(key, bool) else str(key)


def _key_value(field: FieldDescriptor) -> Plain:
    """Returns what makes a key of a map out of text."""
    if field.cpp_type == FieldDescriptor.CPPTYPE_STRING:
        return _same
    if field.cpp_type == FieldDescriptor.CPPTYPE_BOOL:
        return lambda text: text == "true"
    return int


def _value_reader(field: FieldDescriptor) -> Plain:
    if field.message_type is None:
        if field.enum_type is None:
            return _same
        names = {value.number: value.name for value in field.enum_type.values}
        return lambda value: names.get(value, str(value))
    name = field.message_type.full_name
    if name in WRAPPERS:
        return lambda made: made.value
    if name in _READERS:
        return _READERS[name]
    return _lazy_reader(field.message_type)


def _lazy_reader(message: Descriptor) -> Plain:
    # Made when first needed: a message may contain itself.
    made: list[Plain] = []

    def read(value: Any) -> Any:
        if not made:
            made.append(plain_reader(message))
        return made[0](value)

    return read


def _read_date(made: Any) -> int:
    return (date(made.year, made.month, made.day) - _EPOCH).days


def _read_time(made: Any) -> int:
    return int(((made.hours * 60 + made.minutes) * 60 + made.seconds) * 1000 + made.nanos // 1_000_000)


def _read_timestamp(made: Any) -> int:
    return int(made.seconds * 1000 + made.nanos // 1_000_000)


def _read_decimal(made: Any) -> Decimal:
    return Decimal(int.from_bytes(made.value, "big", signed=True)).scaleb(-made.scale, _EXACT)


_READERS: dict[str, Plain] = {
    "google.type.Date": _read_date,
    "google.type.TimeOfDay": _read_time,
    "google.protobuf.Timestamp": _read_timestamp,
    "confluent.type.Decimal": _read_decimal,
}

"""The grammar of types."""

from __future__ import annotations

from collections.abc import Mapping

from headrace.sql.errors import SqlParseError
from headrace.sql.syntax.dialect import Kind, tokenize
from headrace.sql.syntax.nodes import TypeName
from headrace.sql.syntax.token_reader import Reader
from headrace.sql.types import ARRAY, DECIMAL, MAP, PLAIN_TYPES, STRUCT, SqlType, StructField


class _Unresolved(Exception):
    """A name that is no type of the language: perhaps one of the catalogue."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.name = name


def read_type(reader: Reader) -> TypeName:
    """Reads a type, complete or with names that only the catalogue knows."""
    start, position = reader.start, reader.position
    found = _read(reader, None)
    return TypeName(reader.text[start : reader.last_end], found, position=position)


def resolve_type(name: TypeName, types: Mapping[str, SqlType]) -> SqlType:
    """Returns the type that is meant, with the names made by ``CREATE TYPE``."""
    if name.type is not None:
        return name.type
    try:
        found = _read(Reader(name.text, tokenize(name.text)), types)
    except _Unresolved as missing:
        message = f"Failed to prepare statement: Cannot resolve unknown type: {missing.name}"
        raise SqlParseError(message, position=name.position) from None
    assert found is not None  # with types given, a name is found or raises
    return found


def _read(reader: Reader, types: Mapping[str, SqlType] | None) -> SqlType | None:
    """Reads a type; None if it has names in it that are still to be resolved."""
    found = _simple(reader, types)
    while reader.at("ARRAY"):
        reader.advance()
        found = ARRAY(found) if found is not None else None
    return found


def _simple(reader: Reader, types: Mapping[str, SqlType] | None) -> SqlType | None:
    if reader.at("ARRAY", "<"):
        reader.expect("ARRAY", "<")
        item = _read(reader, types)
        _close(reader)
        return ARRAY(item) if item is not None else None
    if reader.at("MAP", "<"):
        reader.expect("MAP", "<")
        key = _read(reader, types)
        reader.expect(",")
        value = _read(reader, types)
        _close(reader)
        return MAP(key, value) if key is not None and value is not None else None
    if reader.at("STRUCT", "<"):
        return _struct(reader, types)
    if reader.at("STRUCT") and reader.peek().text == "<>":
        reader.advance()
        reader.advance()
        return STRUCT(())
    if reader.at("DECIMAL"):
        return _decimal(reader)
    quoted = reader.token.kind is Kind.QUOTED
    name = reader.name()
    if reader.accept("("):
        reader.listed(lambda: _parameter(reader), close=")")
    plain = None if quoted else PLAIN_TYPES.get(name)
    if plain is not None:
        return plain
    if types is None:
        return None
    if name not in types:
        raise _Unresolved(name)
    return types[name]


def _struct(reader: Reader, types: Mapping[str, SqlType] | None) -> SqlType | None:
    reader.expect("STRUCT", "<")
    names: list[str] = []
    found: list[SqlType | None] = []
    while not reader.at(">"):
        if names:
            reader.expect(",")
        names.append(reader.name())
        found.append(_read(reader, types))
    _close(reader)
    fields = tuple(StructField(name, kind) for name, kind in zip(names, found, strict=True) if kind is not None)
    _check_names(fields)
    return STRUCT(fields) if len(fields) == len(names) else None


def _check_names(fields: tuple[StructField, ...]) -> None:
    known: dict[str, StructField] = {}
    for field in fields:
        other = known.setdefault(field.name, field)
        if other is not field:
            message = (
                "Failed to prepare statement: Duplicate field names found in STRUCT: "
                f"'`{other.name}` {other.type}' and '`{field.name}` {field.type}'"
            )
            raise SqlParseError(message)


def _decimal(reader: Reader) -> SqlType:
    position = reader.position
    reader.expect("DECIMAL", "(")
    precision = reader.integer()
    reader.expect(",")
    scale = reader.integer()
    reader.expect(")")
    if precision < 1:
        message = f"Failed to prepare statement: DECIMAL precision must be >= 1: DECIMAL({precision},{scale})"
        raise SqlParseError(message, position=position)
    if precision < scale:
        message = f"Failed to prepare statement: DECIMAL precision must be >= scale: DECIMAL({precision},{scale})"
        raise SqlParseError(message, position=position)
    return DECIMAL(precision, scale)


def _parameter(reader: Reader) -> None:
    if reader.token.kind is not Kind.NUMBER and not reader.at("STRING"):
        reader.fail_expecting("STRING", "INTEGER_VALUE")
    reader.advance()


def _close(reader: Reader) -> None:
    reader.expect(">")

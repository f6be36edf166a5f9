"""Protobuf schemas of columns."""

from __future__ import annotations

from collections.abc import Sequence

from headrace.sql.errors import SqlStatementError
from headrace.sql.types import (
    STRING,
    SqlArray,
    SqlBaseType,
    SqlDecimal,
    SqlMap,
    SqlStruct,
    SqlType,
)
from headrace.sql.types.schema import Column

DECIMAL_FILE = "confluent/type/decimal.proto"
META_FILE = "confluent/meta.proto"
_WRAPPERS_FILE = "google/protobuf/wrappers.proto"
_SCALARS = {
    SqlBaseType.BOOLEAN: "bool",
    SqlBaseType.INTEGER: "int32",
    SqlBaseType.BIGINT: "int64",
    SqlBaseType.DOUBLE: "double",
    SqlBaseType.STRING: "string",
    SqlBaseType.BYTES: "bytes",
}
_MESSAGES = {
    SqlBaseType.DATE: ("google.type.Date", "google/type/date.proto"),
    SqlBaseType.TIME: ("google.type.TimeOfDay", "google/type/timeofday.proto"),
    SqlBaseType.TIMESTAMP: ("google.protobuf.Timestamp", "google/protobuf/timestamp.proto"),
    SqlBaseType.DECIMAL: ("confluent.type.Decimal", DECIMAL_FILE),
}


def schema_text(
    columns: tuple[Column, ...], name: str | None, nullable: str | None, *, map_entries: bool = False
) -> str:
    """Returns the schema of a message with these columns; with ``map_entries`` maps are written as what they stand for.

    >>> from headrace.sql.types import ARRAY, INTEGER, STRING
    >>> print(schema_text((Column("A", INTEGER), Column("B", ARRAY(STRING))), None, None))
    syntax = "proto3";
    <BLANKLINE>
    message ConnectDefault1 {
      int32 A = 1;
      repeated string B = 2;
    }
    <BLANKLINE>
    """
    return _Writing(nullable, map_entries=map_entries).file(
        [(column.name, column.type) for column in columns], name or "ConnectDefault1"
    )


class _Writing:
    def __init__(self, nullable: str | None, *, map_entries: bool) -> None:
        self._nullable = (nullable or "").upper()
        self._map_entries = map_entries
        self._imports: list[str] = []
        self._messages = 1

    def file(self, fields: Sequence[tuple[str, SqlType]], name: str) -> str:
        package, _, short = name.rpartition(".")
        body = self._message(fields, short, "")
        parts = ['syntax = "proto3";', *([f"package {package};"] if package else [])]
        head = "\n".join(parts)
        imports = "".join(f'import "{file}";\n' for file in self._imports)
        return f"{head}\n\n{imports}{chr(10) if imports else ''}{body}"

    def _message(self, fields: Sequence[tuple[str, SqlType]], name: str, indent: str) -> str:
        inner = indent + "  "
        nested: list[str] = []
        lines = [
            f"{inner}{self._field(type, field, number, inner, nested)}"
            for number, (field, type) in enumerate(fields, start=1)
        ]
        gap = "\n" if nested else ""
        return f"{indent}message {name} {{\n" + "\n".join(lines) + f"\n{gap}{gap.join(nested)}{indent}}}\n"

    def _field(self, type: SqlType, name: str, number: int, indent: str, nested: list[str]) -> str:
        options = ""
        decimal = type.item if isinstance(type, SqlArray) else type.value if isinstance(type, SqlMap) else type
        if isinstance(decimal, SqlDecimal):
            pairs = (("precision", decimal.precision), ("scale", decimal.scale))
            params = ",\n".join(
                f'{indent}    {{\n{indent}      value: "{value}",\n{indent}      key: "{key}"\n{indent}    }}'
                for key, value in pairs
            )
            meta = f"{{\n{indent}  params: [\n{params}\n{indent}  ]\n{indent}}}"
            options = f" [(confluent.field_meta) = {meta}]"
        if isinstance(type, SqlArray):
            text = f"repeated {self._element(type.item, indent, nested, 'an array')}"
        elif isinstance(type, SqlMap) and self._map_entries:
            self._messages += 1
            entry = f"ConnectDefault{self._messages}Entry"
            nested.append(self._message([("key", STRING), ("value", type.value)], entry, indent))
            text = f"repeated {entry}"
        elif isinstance(type, SqlMap):
            text = f"map<string, {self._element(type.value, indent, nested, 'a map')}>"
        else:
            text = self._single(type, indent, nested)
        return f"{text} {name} = {number}{options};"

    def _single(self, type: SqlType, indent: str, nested: list[str]) -> str:
        scalar = _SCALARS.get(type.base)
        if scalar is not None and self._nullable == "WRAPPER":
            self._import(_WRAPPERS_FILE)
            return f"google.protobuf.{scalar.title()}Value"
        if scalar is not None and self._nullable == "OPTIONAL":
            return f"optional {scalar}"
        return self._element(type, indent, nested, "")

    def _element(self, type: SqlType, indent: str, nested: list[str], inside: str) -> str:
        if isinstance(type, SqlStruct):
            self._messages += 1
            name = f"ConnectDefault{self._messages}"
            nested.append(self._message([(field.name, field.type) for field in type.fields], name, indent))
            return name
        if isinstance(type, SqlArray | SqlMap):
            message = f"The 'PROTOBUF' format does not support type '{type.base.value}' inside of {inside}"
            raise SqlStatementError(message)
        if type.base in _MESSAGES:
            message_name, file = _MESSAGES[type.base]
            if type.base is SqlBaseType.DECIMAL:
                self._import(META_FILE)
            self._import(file)
            return message_name
        return _SCALARS[type.base]

    def _import(self, file: str) -> None:
        if file not in self._imports:
            self._imports.append(file)

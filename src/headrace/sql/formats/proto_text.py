"""The text of a .proto file to a descriptor: as much of the language as schemas of a registry use."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from google.protobuf.descriptor_pb2 import (
    DescriptorProto,
    EnumDescriptorProto,
    FieldDescriptorProto,
    FileDescriptorProto,
)

_TOKEN = re.compile(
    r"""\s+|//[^\n]*|/\*.*?\*/|(?P<token>"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*'|[A-Za-z_.][\w.]*|[-+]?[0-9][\w.]*|\S)""",
    re.DOTALL,
)
_SCALARS = {
    name: getattr(FieldDescriptorProto, f"TYPE_{name.upper()}")
    for name in (
        *("double", "float", "int32", "int64", "uint32", "uint64", "sint32", "sint64"),
        *("fixed32", "fixed64", "sfixed32", "sfixed64", "bool", "string", "bytes"),
    )
}
_END = "the end of the text"
_LABELS = {
    "optional": FieldDescriptorProto.LABEL_OPTIONAL,
    "required": FieldDescriptorProto.LABEL_REQUIRED,
    "repeated": FieldDescriptorProto.LABEL_REPEATED,
}


@dataclass
class ProtoFile:
    """A parsed file."""

    descriptor: FileDescriptorProto
    parameters: dict[tuple[str, str], dict[str, str]] = field(default_factory=dict)
    """What the options of a field say as keys and values, by the names of the message and the field."""


def parse_proto(text: str, name: str) -> ProtoFile:
    """Returns the descriptor of a file.

    >>> parse_proto('syntax = "proto3"; message M { int32 a = 1; }', "m.proto").descriptor.message_type[0].name
    'M'
    """
    return _Parser(text, name).file()


class _Parser:
    def __init__(self, text: str, name: str) -> None:
        found = ((match.group("token"), match.start()) for match in _TOKEN.finditer(text))
        self._tokens = [(token, start) for token, start in found if token is not None]
        self._text = text
        self._next = 0
        self._made = ProtoFile(FileDescriptorProto(name=name, syntax="proto2"))

    def file(self) -> ProtoFile:
        made = self._made.descriptor
        while self._next < len(self._tokens):
            match self._take():
                case "syntax":
                    self._expect("=")
                    made.syntax = self._string()
                    self._expect(";")
                case "package":
                    made.package = self._take()
                    self._expect(";")
                case "import":
                    self._import()
                case "message":
                    self._message(made.message_type.add(), made.package)
                case "enum":
                    self._enum(made.enum_type.add())
                case "service" | "extend":
                    self._skip_block()
                case "option":
                    self._skip_statement()
                case ";":
                    pass
                case other:
                    raise self._unexpected_error(other, "a declaration")
        return self._made

    def _import(self) -> None:
        if self._peek() in ("public", "weak"):
            self._take()
        self._made.descriptor.dependency.append(self._string())
        self._expect(";")

    def _message(self, made: DescriptorProto, scope: str) -> None:
        made.name = self._take()
        full_name = f"{scope}.{made.name}" if scope else made.name
        self._expect("{")
        while (token := self._take()) != "}":
            match token:
                case "message":
                    self._message(made.nested_type.add(), full_name)
                case "enum":
                    self._enum(made.enum_type.add())
                case "oneof":
                    self._oneof(made, full_name)
                case "extend":
                    self._skip_block()
                case "option" | "reserved" | "extensions":
                    self._skip_statement()
                case ";":
                    pass
                case "map" if self._peek() == "<":
                    self._map(made, full_name)
                case _:
                    self._field(made, full_name, token)

    def _field(self, made: DescriptorProto, full_name: str, token: str) -> FieldDescriptorProto:
        added = made.field.add(label=FieldDescriptorProto.LABEL_OPTIONAL)
        if token in _LABELS:
            added.label = _LABELS[token]
            kind = self._take()
        else:
            kind = token
        _set_type(added, kind)
        self._name_and_number(added, full_name)
        if token == "optional" and self._made.descriptor.syntax == "proto3":
            # The only way a descriptor can say that a field of proto3 may be absent.
            added.proto3_optional = True
            added.oneof_index = len(made.oneof_decl)
            made.oneof_decl.add(name=f"_{added.name}")
        return added

    def _oneof(self, made: DescriptorProto, full_name: str) -> None:
        index = len(made.oneof_decl)
        made.oneof_decl.add(name=self._take())
        self._expect("{")
        while (token := self._take()) != "}":
            if token == "option":
                self._skip_statement()
            elif token != ";":
                self._field(made, full_name, token).oneof_index = index

    def _map(self, made: DescriptorProto, full_name: str) -> None:
        self._expect("<")
        key = self._take()
        self._expect(",")
        value = self._take()
        self._expect(">")
        added = made.field.add(label=FieldDescriptorProto.LABEL_REPEATED)
        self._name_and_number(added, full_name)
        entry = made.nested_type.add(name=f"{_camel(added.name)}Entry")
        entry.options.map_entry = True
        for number, (name, kind) in enumerate((("key", key), ("value", value)), start=1):
            part = entry.field.add(name=name, number=number, label=FieldDescriptorProto.LABEL_OPTIONAL)
            _set_type(part, kind)
        added.type_name = f".{full_name}.{entry.name}"

    def _name_and_number(self, added: FieldDescriptorProto, full_name: str) -> None:
        # Messages are never JSON here, and the names that they would have there can be the same: A_B and AB.
        added.name = added.json_name = self._take()
        self._expect("=")
        number = self._take()
        if not number.isdigit():
            raise self._unexpected_error(number, "the number of a field")
        added.number = int(number)
        if self._peek() == "[":
            found = self._parameters()
            if found:
                self._made.parameters[full_name, added.name] = found
        self._expect(";")

    def _parameters(self) -> dict[str, str]:
        # Of all options only those matter that hold pairs of a key and a value, as Connect's do.
        found: dict[str, str] = {}
        pair: dict[str, str] = {}
        depth = 0
        while True:
            token = self._take()
            if token in "[{":
                depth += 1
            elif token in "]}":
                depth -= 1
                if {"key", "value"} <= pair.keys():
                    found[pair["key"]] = pair["value"]
                    pair = {}
                if depth == 0:
                    return found
            elif token in ("key", "value"):
                self._expect(":")
                pair[token] = self._string()

    def _enum(self, made: EnumDescriptorProto) -> None:
        made.name = self._take()
        self._expect("{")
        while (token := self._take()) != "}":
            if token in ("option", "reserved"):
                if token == "option" and "allow_alias" in (self._peek(),):
                    made.options.allow_alias = True
                self._skip_statement()
            elif token != ";":
                self._expect("=")
                made.value.add(name=token, number=int(self._take(), 0))
                if self._peek() == "[":
                    self._parameters()
                self._expect(";")

    def _skip_statement(self) -> None:
        depth = 0
        while True:
            token = self._take()
            depth += (token in "{[") - (token in "}]")
            if token == ";" and depth == 0:
                return

    def _skip_block(self) -> None:
        depth = 0
        while True:
            token = self._take()
            depth += (token == "{") - (token == "}")
            if token == "}" and depth == 0:
                return

    def _peek(self) -> str:
        return self._tokens[self._next][0] if self._next < len(self._tokens) else ""

    def _take(self) -> str:
        token = self._peek()
        if not token:
            raise self._unexpected_error(_END, "more")
        self._next += 1
        return token

    def _expect(self, wanted: str) -> None:
        token = self._take()
        if token != wanted:
            raise self._unexpected_error(token, f"'{wanted}'")

    def _string(self) -> str:
        token = self._take()
        if token[0] not in "\"'":
            raise self._unexpected_error(token, "a text in quotes")
        return token[1:-1]

    def _unexpected_error(self, found: str, wanted: str) -> ValueError:
        start = self._tokens[min(self._next, len(self._tokens)) - 1][1] if self._tokens else 0
        line = self._text.count("\n", 0, start) + 1
        return ValueError(f"Protobuf schema, line {line}: expected {wanted}, got {found}")


def _set_type(field: FieldDescriptorProto, kind: str) -> None:
    if kind in _SCALARS:
        field.type = _SCALARS[kind]
    else:
        field.type_name = kind


def _camel(name: str) -> str:
    return "".join(part[:1].upper() + part[1:] for part in name.split("_"))

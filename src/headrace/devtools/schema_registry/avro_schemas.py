"""Avro schemas: their named types, and whether what one of them has written can be read with another one.

The rules are those of schema resolution in Avro's specification.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

PRIMITIVES = frozenset({"null", "boolean", "int", "long", "float", "double", "bytes", "string"})
_PROMOTED = {
    "int": ("long", "float", "double"),
    "long": ("float", "double"),
    "float": ("double",),
    "string": ("bytes",),
    "bytes": ("string",),
}
_NAMED = ("record", "error", "enum", "fixed")

# Any: schemas are JSON.
Node: TypeAlias = dict[str, Any]
"""A type whose inner types are nodes as well; a type that is named again is the same object."""
Names: TypeAlias = dict[str, Node]


def resolve_avro(schema: Any, names: Names) -> Node:
    """Returns a schema with its names resolved, and adds the types that it names; raises ``ValueError`` if it is none.

    >>> resolve_avro({"type": "array", "items": "int"}, {})
    {'type': 'array', 'items': {'type': 'int'}}
    >>> resolve_avro("Order", {})
    Traceback (most recent call last):
    ...
    ValueError: 'Order' is no type of Avro, and none that is named before
    """
    return _resolve(schema, "", names)


def _resolve(schema: Any, namespace: str, names: Names) -> Node:
    if isinstance(schema, str):
        return _named(schema, namespace, names)
    if isinstance(schema, list):
        return {"type": "union", "branches": [_resolve(each, namespace, names) for each in schema]}
    if not isinstance(schema, dict) or "type" not in schema:
        message = f"a type of Avro is a name, a list or an object with 'type', got {schema!r}"
        raise ValueError(message)
    kind = schema["type"]
    if not isinstance(kind, str):
        return _resolve(kind, namespace, names)
    if kind == "array":
        return {"type": "array", "items": _resolve(_part(schema, "items"), namespace, names)}
    if kind == "map":
        return {"type": "map", "values": _resolve(_part(schema, "values"), namespace, names)}
    return _define(schema, kind, namespace, names) if kind in _NAMED else _named(kind, namespace, names)


def _named(name: str, namespace: str, names: Names) -> Node:
    if name in PRIMITIVES:
        return {"type": name}
    for full in (_full_name(name, namespace), name):
        if full in names:
            return names[full]
    message = f"'{name}' is no type of Avro, and none that is named before"
    raise ValueError(message)


def _define(schema: Node, kind: str, namespace: str, names: Names) -> Node:
    name = _full_name(str(_part(schema, "name")), str(schema.get("namespace", namespace)))
    inner = name.rpartition(".")[0]
    if name in names:
        message = f"the type '{name}' is defined twice"
        raise ValueError(message)
    aliases = [_full_name(str(alias), inner) for alias in schema.get("aliases") or ()]
    made = names[name] = {"type": kind, "name": name, "aliases": aliases}
    if kind == "enum":
        made |= {"symbols": list(_part(schema, "symbols")), "default": schema.get("default")}
    elif kind == "fixed":
        made["size"] = _part(schema, "size")
    else:
        made["fields"] = [
            {**field, "type": _resolve(_part(field, "type"), inner, names), "name": _part(field, "name")}
            for field in _part(schema, "fields")
        ]
    return made


def _part(schema: Any, name: str) -> Any:
    if not isinstance(schema, dict) or name not in schema:
        message = f"a type of Avro lacks '{name}': {schema!r}"
        raise ValueError(message)
    return schema[name]


def _full_name(name: str, namespace: str) -> str:
    return name if "." in name or not namespace else f"{namespace}.{name}"


def unreadable_parts(reader: Node, writer: Node) -> list[str]:
    """Returns why what is written with a schema cannot be read with another one; nothing if it can.

    >>> old, new = ({"type": kind} for kind in ("int", "long"))
    >>> unreadable_parts(new, old), unreadable_parts(old, new)
    ([], ['reader type: int not compatible with writer type: long, at /'])
    """
    return _Resolution().differences(reader, writer, "/")


class _Resolution:
    def __init__(self, seen: frozenset[tuple[int, int]] = frozenset()) -> None:
        self._seen = set(seen)

    def differences(self, reader: Node, writer: Node, place: str) -> list[str]:
        pair = id(reader), id(writer)
        if pair in self._seen:
            # A type that contains itself.
            return []
        self._seen.add(pair)
        if writer["type"] == "union":
            return [each for branch in writer["branches"] for each in self.differences(reader, branch, place)]
        if reader["type"] == "union":
            seen = frozenset(self._seen)
            if any(not _Resolution(seen).differences(branch, writer, place) for branch in reader["branches"]):
                return []
            return [f"reader union lacks writer type: {_label(writer)}, at {place}"]
        if reader["type"] != writer["type"]:
            if reader["type"] in _PROMOTED.get(writer["type"], ()):
                return []
            return [f"reader type: {_label(reader)} not compatible with writer type: {_label(writer)}, at {place}"]
        return self._same_kind(reader, writer, place)

    def _same_kind(self, reader: Node, writer: Node, place: str) -> list[str]:
        kind = reader["type"]
        if kind == "array":
            return self.differences(reader["items"], writer["items"], f"{place}items/")
        if kind == "map":
            return self.differences(reader["values"], writer["values"], f"{place}values/")
        if kind in _NAMED and not _same_name(reader, writer):
            return [f"expected the name: {writer['name']}, found: {reader['name']}, at {place}"]
        if kind == "fixed" and reader["size"] != writer["size"]:
            return [f"expected the size: {writer['size']}, found: {reader['size']}, at {place}"]
        if kind == "enum" and reader["default"] is None:
            missing = [symbol for symbol in writer["symbols"] if symbol not in reader["symbols"]]
            return [f"missing enum symbols: [{', '.join(missing)}], at {place}"] if missing else []
        return self._fields(reader, writer, place) if kind in ("record", "error") else []

    def _fields(self, reader: Node, writer: Node, place: str) -> list[str]:
        written: Mapping[str, Node] = {field["name"]: field for field in writer["fields"]}
        found: list[str] = []
        for field in reader["fields"]:
            inside = f"{place}fields/{field['name']}/"
            known = [name for name in (field["name"], *(field.get("aliases") or ())) if name in written]
            if known:
                found += self.differences(field["type"], written[known[0]]["type"], inside)
            elif "default" not in field:
                found.append(f"reader field '{field['name']}' has no default and is missing in the writer, at {inside}")
        return found


def _same_name(reader: Node, writer: Node) -> bool:
    simple = writer["name"].rpartition(".")[2]
    return reader["name"].rpartition(".")[2] == simple or writer["name"] in reader["aliases"]


def _label(node: Node) -> str:
    return str(node.get("name", node["type"]))

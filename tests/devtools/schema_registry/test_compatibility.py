"""Compatibility of Avro schemas, by the rules of Avro's specification."""

from __future__ import annotations

import json
from typing import Any

import pytest

from headrace.devtools.schema_registry.compatibility import incompatibilities
from headrace.serdes.registry import Schema


def record(*fields: object, name: str = "R") -> dict[str, object]:
    return {"type": "record", "name": name, "fields": list(fields)}


A = {"name": "a", "type": "int"}
B = {"name": "b", "type": "string"}
B_WITH_DEFAULT = {**B, "default": "none"}
ENUM = {"type": "enum", "name": "E", "symbols": ["X", "Y"]}
LIST = {"name": "next", "type": ["null", "R"], "default": None}

# (reader, writer): whether what is written with the second can be read with the first.
READABLE: list[tuple[Any, Any]] = [
    ("int", "int"),
    ("long", "int"),
    ("double", "long"),
    ("bytes", "string"),
    ("string", {"type": "string"}),
    (["null", "int"], "int"),
    (["null", "long"], "int"),
    ("long", ["int", "long"]),
    ({"type": "array", "items": "long"}, {"type": "array", "items": "int"}),
    ({"type": "map", "values": ["null", "int"]}, {"type": "map", "values": "int"}),
    (record(A), record(A, B)),
    (record(A, B_WITH_DEFAULT), record(A)),
    (record({"name": "c", "aliases": ["a"], "type": "long"}), record(A)),
    (record(A, LIST), record(A, LIST)),
    ({**ENUM, "symbols": ["X", "Y", "Z"]}, ENUM),
    ({**ENUM, "symbols": ["X"], "default": "X"}, ENUM),
    ({"type": "fixed", "name": "F", "size": 4}, {"type": "fixed", "name": "F", "size": 4}),
    ({**record(A), "namespace": "here"}, {**record(A), "namespace": "there"}),
    (record(A, name="New") | {"aliases": ["R"]}, record(A)),
]
UNREADABLE: list[tuple[Any, Any]] = [
    ("int", "long"),
    ("float", "double"),
    ("string", "int"),
    ("boolean", "int"),
    ("int", ["null", "int"]),
    (["null", "string"], "int"),
    ({"type": "array", "items": "int"}, {"type": "map", "values": "int"}),
    ({"type": "array", "items": "int"}, {"type": "array", "items": "string"}),
    (record(A, B), record(A)),
    (record({**A, "type": "string"}), record(A)),
    (record(A, name="Other"), record(A)),
    (ENUM, {**ENUM, "symbols": ["X", "Y", "Z"]}),
    ({"type": "fixed", "name": "F", "size": 4}, {"type": "fixed", "name": "F", "size": 8}),
]


def follows(new: Any, old: Any, level: str) -> bool:
    texts = (Schema(json.dumps(each)) for each in (new, old))
    new_schema, old_schema = texts
    return not incompatibilities((new_schema, {}), [(old_schema, {})], level)


@pytest.mark.parametrize(("reader", "writer"), READABLE)
def test_readable_schemas_may_follow(reader: Any, writer: Any) -> None:
    assert follows(reader, writer, "BACKWARD")
    assert follows(writer, reader, "FORWARD")


@pytest.mark.parametrize(("reader", "writer"), UNREADABLE)
def test_unreadable_schemas_must_not_follow(reader: Any, writer: Any) -> None:
    assert not follows(reader, writer, "BACKWARD")
    assert not follows(writer, reader, "FORWARD")
    assert not follows(reader, writer, "FULL")
    assert follows(reader, writer, "NONE")


def test_full_asks_for_both_directions() -> None:
    assert follows(record(A, B_WITH_DEFAULT), record(A), "FULL")
    assert not follows(record(A, B), record(A), "FULL")
    assert not follows("long", "int", "FULL")


@pytest.mark.parametrize(("level", "expected"), [("BACKWARD", True), ("BACKWARD_TRANSITIVE", False)])
def test_transitive_levels_look_at_all_versions(level: str, *, expected: bool) -> None:
    # The field b went away for one version, and comes back without default.
    versions = [record(A), record(A, B_WITH_DEFAULT), record(A, B)]
    first, second, third = (Schema(json.dumps(each)) for each in versions)
    found = incompatibilities((third, {}), [(first, {}), (second, {})], level)
    assert (not found) is expected


def test_message_names_the_place() -> None:
    new, old = (
        record({"name": "inner", "type": record(A, B, name="I")}),
        record({"name": "inner", "type": record(A, name="I")}),
    )
    [found] = incompatibilities((Schema(json.dumps(new)), {}), [(Schema(json.dumps(old)), {})], "BACKWARD")
    assert found == (
        "older records cannot be read: reader field 'b' has no default and is missing in the writer, "
        "at /fields/inner/fields/b/"
    )


def test_other_kinds_have_no_rules_but_must_not_change() -> None:
    json_schemas = [Schema(f'{{"type": "{each}"}}', "JSON") for each in ("string", "integer")]
    assert incompatibilities((json_schemas[1], {}), [(json_schemas[0], {})], "FULL") == []
    [found] = incompatibilities((json_schemas[0], {}), [(Schema('"int"'), {})], "BACKWARD")
    assert found == "the kind of schema changes from AVRO to JSON"

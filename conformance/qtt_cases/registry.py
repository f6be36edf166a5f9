"""The schema registry of a case: the schemas of its topics, registered before its statements run."""

from __future__ import annotations

import json
from itertools import count
from typing import Any

from headrace.serdes.registry.registry import Schema, SchemaReference, SchemaRegistry, subject_of
from headrace.sql.catalog import SourceDefinition
from headrace.sql.catalog.source_definitions import chosen_formats, declared_columns
from headrace.sql.catalog.with_properties import source_properties, with_key_name
from headrace.sql.errors import SqlError
from headrace.sql.formats import FormatOptions, format_named
from headrace.sql.syntax.parser import parse_statement
from headrace.sql.syntax.statements import CreateSource
from headrace.sql.types.schema import Column, Namespace
from qtt_cases.case import Case

_KINDS = {"AVRO": "AVRO", "PROTOBUF": "PROTOBUF", "PROTOBUF_NOSR": "PROTOBUF", "JSON": "JSON", "JSON_SR": "JSON"}
_NUMBERS = count()


class RegistryForCase:
    """A registry with the schemas that a case gives to its topics, and those of the columns that it declares."""

    def __init__(self, case: Case) -> None:
        self.registry = SchemaRegistry(f"mock://qtt-{next(_NUMBERS)}")
        described = {topic["name"] for topic in case["topics"]}
        for statement in case["statements"]:
            self._register_columns(statement, described, case["properties"])
        for topic in case["topics"]:
            for side in ("key", "value"):
                self._register_described(topic, side)

    def _register_columns(self, text: str, described: set[str], settings: dict[str, Any]) -> None:
        try:
            statement = parse_statement(text)
            if not isinstance(statement, CreateSource) or not statement.elements:
                return
            given = source_properties(statement.properties)
            formats = chosen_formats(given, settings)
            columns = declared_columns(statement, {})
        except SqlError:
            return
        assert given.kafka_topic is not None
        if given.kafka_topic in described:
            return
        for namespace, name in zip((Namespace.KEY, Namespace.VALUE), formats, strict=True):
            own = tuple(column for column in columns if column.namespace is namespace)
            options = given.key_options() if namespace is Namespace.KEY else given.value_options()
            wrapped = given.wrap_single_value is not False and namespace is Namespace.VALUE
            if namespace is Namespace.KEY:
                options = with_key_name(options, name, statement.name)
            self._register(given.kafka_topic, namespace, name, own, options, wrapped=wrapped)

    def _register(
        self,
        topic: str,
        namespace: Namespace,
        name: str,
        columns: tuple[Column, ...],
        options: FormatOptions,
        *,
        wrapped: bool,
    ) -> None:
        format = format_named(name)
        if not columns or not format.infers_schemas:
            return
        made = FormatOptions(wrapped, schema_full_name=options.schema_full_name, registry=self.registry)
        try:
            schema = format.schema_of(columns, made, namespace)
        except SqlError:
            return
        if schema is not None:
            self.registry.register(subject_of(topic, is_key=namespace is Namespace.KEY), schema)

    def _register_described(self, topic: dict[str, Any], side: str) -> None:
        described = topic.get(f"{side}Schema", topic.get("schema") if side == "value" else None)
        if described is None:
            return
        kind = _KINDS.get(str(topic.get(f"{side}Format") or topic.get("format") or "AVRO").upper(), "AVRO")
        if kind == "AVRO" and isinstance(described, str) and described.lstrip().startswith("syntax"):
            kind = "PROTOBUF"
        text = described if kind == "PROTOBUF" else json.dumps(described, default=float)
        subject = subject_of(topic["name"], is_key=side == "key")
        imported = topic.get(f"{side}SchemaReferences") or ()
        references = tuple(SchemaReference(one["name"], one["name"], 1) for one in imported)
        self._add(subject, Schema(text, kind, references), topic.get(f"{side}SchemaId"))
        # After the schema that imports them: cases know that one by its number.
        for one in imported:
            its_text = one["schema"] if isinstance(one["schema"], str) else json.dumps(one["schema"], default=float)
            self.registry.register(one["name"], Schema(its_text, _KINDS[str(one["format"]).upper()]))

    def _add(self, subject: str, schema: Schema, number: int | None) -> None:
        if number is None:
            self.registry.register(subject, schema)
            return
        # The registry in memory has no way to ask for a number: it gets the one after the last that it gave.
        store = self.registry.client._store  # type: ignore[attr-defined]  # the mock's own
        store.max_id = max(store.max_id, number - 1) if hasattr(store, "max_id") else number - 1
        self.registry.register(subject, schema)

    def compare(self, source: SourceDefinition, side: str, schema: Any) -> str | None:
        """Returns how the registered schema of a topic differs from the expected one."""
        found = self.registry.latest(subject_of(source.topic, is_key=side == "key"))
        if found is None:
            return f"no {side} schema is registered"
        if found.schema.kind == "PROTOBUF":
            wanted, actual = _words(str(schema)), _words(found.schema.text)
        else:
            wanted, actual = json.dumps(schema, sort_keys=True, default=float), _sorted(found.schema.text)
        return None if wanted == actual else f"{side} schema {actual} instead of {wanted}"


def _sorted(text: str) -> str:
    return json.dumps(json.loads(text), sort_keys=True)


def _words(text: str) -> str:
    return " ".join(text.split())

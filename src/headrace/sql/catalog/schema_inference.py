"""Columns that a statement does not list, from the registered schemas of its topic; and schemas for columns."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from headrace.serdes.registry.registry import Schema, SchemaRegistry, subject_of
from headrace.sql.catalog import SourceDefinition
from headrace.sql.catalog.with_properties import WithProperties
from headrace.sql.errors import SqlStatementError
from headrace.sql.formats import Format, FormatOptions, format_named
from headrace.sql.types.schema import Column, Namespace

REGISTRY_URL = "ksql.schema.registry.url"
"""The setting that says where the schema registry is."""
_SIDES = {Namespace.KEY: "key", Namespace.VALUE: "value"}
_KINDS = {"JSON_SR": "JSON"}
"""What the registry calls the schemas of a format, where that is not the name of the format."""


@dataclass
class SchemaChoice:
    """The schema of a subject that columns are inferred from: the newest one, or the one that was chosen before.

    Whoever carries out a statement again must come to the same columns, whatever was registered since.
    """

    before: Mapping[str, int] | None = None
    """The numbers of the schemas that were chosen when the statement was accepted, by subject; None for a new one."""
    made: dict[str, int] = field(default_factory=dict)
    """Those that are chosen now."""

    @property
    def is_accepted(self) -> bool:
        """Whether the statement was accepted before, and is carried out again: it is no longer refused."""
        return self.before is not None

    def schema(self, subject: str, registry: SchemaRegistry) -> Schema | None:
        """Returns the schema of a subject; None if there is none."""
        if self.before is not None and subject in self.before:
            self.made[subject] = self.before[subject]
            return registry.find(self.before[subject])
        found = registry.latest(subject)
        if found is None:
            return None
        self.made[subject] = found.id
        return found.schema


def inferred_columns(
    given: WithProperties,
    columns: tuple[Column, ...],
    formats: tuple[str, str],
    options: tuple[FormatOptions, FormatOptions],
    choice: SchemaChoice,
) -> tuple[Column, ...]:
    """Returns the columns with those of the registered schemas where the statement lists none."""
    topic = given.kafka_topic or ""
    key_ids = (given.key_schema_id, given.value_schema_id)
    result = columns
    for namespace, format, side_options, schema_id in zip(_SIDES, formats, options, key_ids, strict=True):
        declared = tuple(column for column in columns if column.namespace is namespace)
        if schema_id is not None:
            _check_schema_id(namespace, format, declared)
        if declared or not format_named(format).infers_schemas:
            continue
        # Neither the table's PRIMARY KEY nor the stream's KEY has to be there: a topic may have no key at all.
        found = _registered(topic, namespace, format, side_options, schema_id, choice)
        place = _place(topic, schema_id)
        inferred = _columns_of(found, place, format, _infer_options(given, side_options, namespace), namespace)
        if namespace is Namespace.KEY and len(inferred) > 1:
            message = (
                f"The key schema for {place} contains multiple columns, which is not supported by "
                f"ksqlDB at this time.\nSchema:{found.text}"
            )
            raise SqlStatementError(message)
        if side_options.schema_full_name is None:
            _check_definitions(format_named(format).names_in(found, side_options), namespace)
        result = (*inferred, *result) if namespace is Namespace.KEY else (*result, *inferred)
    return result


def _columns_of(
    found: Schema, place: str, format: str, options: FormatOptions, namespace: Namespace
) -> tuple[Column, ...]:
    """Returns the columns of a registered schema; raises if it is one of another format, or describes no columns."""
    side = _SIDES[namespace]
    expected = _KINDS.get(format, format)
    if found.kind != expected:
        message = (
            f"{side.capitalize()} schema is not in the expected format. "
            f"You may want to set {side.upper()}_FORMAT to '{found.kind}'.\n"
            f"{place}\nexpected format: {expected}\n"
            f"actual format from Schema Registry: {found.kind}"
        )
        raise SqlStatementError(message)
    try:
        return format_named(format).infer(found, options, namespace)
    except SqlStatementError as error:
        message = (
            f"Unable to verify if the {side} schema for {place} is compatible with ksqlDB.\n"
            f"Reason: {error.message}\nSchema:{found.text}"
        )
        raise SqlStatementError(message) from error


def _check_definitions(names: tuple[str, ...], namespace: Namespace) -> None:
    """Raises if a registered schema defines several things, and the statement does not say which is meant."""
    if len(names) > 1:
        side = _SIDES[namespace]
        listed = "\n".join(f"- {name}" for name in names)
        message = (
            f"{side.capitalize()} schema has multiple schema definitions. \n\n{listed}\n\n"
            f"Please specify a schema full name in the WITH clause using {side.upper()}_SCHEMA_FULL_NAME"
        )
        raise SqlStatementError(message)


def _place(topic: str | None, schema_id: int | None) -> str:
    """Returns where a schema is, for messages."""
    parts = (f"topic: {topic}" if topic else "", "" if schema_id is None else f"schema id: {schema_id}")
    return ", ".join(filter(None, parts))


def _infer_options(given: WithProperties, options: FormatOptions, namespace: Namespace) -> FormatOptions:
    """Returns the options with the wrapping that the statement says, which tells a single column from a record."""
    if namespace is Namespace.VALUE and given.wrap_single_value is not None:
        return replace(options, wrapped=given.wrap_single_value)
    return options


def _check_schema_id(namespace: Namespace, format: str, declared: tuple[Column, ...]) -> None:
    side = _SIDES[namespace].upper()
    if not format_named(format).infers_schemas:
        message = (
            f"{side}_FORMAT should support schema inference when {side}_SCHEMA_ID is provided. "
            f"Current format is {format_named(format).name}."
        )
        raise SqlStatementError(message)
    if declared:
        message = f"Table elements and {side}_SCHEMA_ID cannot both exist for create statement."
        raise SqlStatementError(message)


def _registered(
    topic: str | None,
    namespace: Namespace,
    format: str,
    options: FormatOptions,
    schema_id: int | None,
    choice: SchemaChoice,
) -> Schema:
    if options.registry is None:
        message = (
            f"Cannot infer columns for the {format} format without a schema registry: "
            "set ksql.schema.registry.url, or list the columns in the statement"
        )
        raise SqlStatementError(message)
    side = _SIDES[namespace]
    where = f"on topic '{topic}'" if topic else f"on schema id '{schema_id}'"
    message = f"Schema for message {side}s {where} does not exist in the Schema Registry.\n"
    subject = subject_of(topic or "", is_key=namespace is Namespace.KEY)
    if topic:
        message += f"Subject: {subject}\n"
    if schema_id is not None:
        try:
            return options.registry.schema(schema_id)
        except Exception as error:
            # The client's own errors: not found, not reachable.
            message += f"Schema Id: {schema_id}\nPossible causes include:\n- {error}"
            raise SqlStatementError(message) from error
    found = choice.schema(subject, options.registry)
    if found is None:
        message += (
            "Possible causes include:\n"
            "- The topic itself does not exist\n\t-> Use SHOW TOPICS; to check\n"
            "- Messages on the topic are not serialized using a format Schema Registry supports\n"
            f"\t-> Use PRINT '{topic}' FROM BEGINNING; to verify\n"
            "- The registry cannot be read with these credentials\n"
            "\t-> List the columns in the statement to do without"
        )
        raise SqlStatementError(message)
    return found


def check_columns(declared: tuple[Column, ...], registered: tuple[Column, ...], namespace: Namespace) -> None:
    """Raises unless the declared columns are the first of the registered ones, in this order."""
    changed = [
        column
        for place, column in enumerate(declared)
        if place >= len(registered) or (registered[place].name, registered[place].type) != (column.name, column.type)
    ]
    if changed:
        suffix = " KEY" if namespace is Namespace.KEY else ""

        def shown(columns: tuple[Column, ...] | list[Column]) -> str:
            return ", ".join(f"`{column.name}` {column.type}{suffix}" for column in columns)

        message = (
            f"The following {_SIDES[namespace]} columns are changed, missing or reordered: [{shown(changed)}]. "
            f"Schema from schema registry is [{shown(registered)}]"
        )
        raise SqlStatementError(message)


def check_sink_schemas(sink: SourceDefinition, topic: str | None) -> None:
    """Raises if a sink is to be written with registered schemas that do not begin with its columns.

    ``topic`` is the one that the statement names, if it names one.
    """
    sides = (
        (Namespace.KEY, sink.schema.key, sink.key_format, sink.key_options),
        (Namespace.VALUE, sink.schema.value, sink.value_format, sink.value_options),
    )
    for namespace, columns, format, options in sides:
        if options.schema_id is None:
            continue
        if not format_named(format).infers_schemas:
            side = _SIDES[namespace].upper()
            message = f"{side}_SCHEMA_ID is provided but format {format} doesn't support registering in Schema Registry"
            raise SqlStatementError(message)
        found = _registered(topic, namespace, format, options, options.schema_id, SchemaChoice())
        place = _place(topic, options.schema_id)
        check_columns(columns, _columns_of(found, place, format, options, namespace), namespace)


def check_registry(source: SourceDefinition, registry: SchemaRegistry | None) -> None:
    """Raises if a format of the source keeps its schemas in a registry, and there is none."""
    if registry is not None:
        return
    for _, columns, format, _ in _registered_sides(source):
        if columns:
            message = (
                f"Cannot create topic '{source.topic}' with format {format.name} without configuring "
                f"'{REGISTRY_URL}': no row of it could be read or written. Set it to the address of a schema "
                "registry; 'headrace registry start' starts one for development"
            )
            raise SqlStatementError(message)


def check_key_schema(source: SourceDefinition) -> None:
    """Raises if the keys of inserted rows would be written with another schema than the registered one.

    Keys that are equal would then have other bytes, and lie in other partitions.
    """
    options, columns = source.key_options, source.schema.key
    if options.registry is None or options.schema_id is not None or not columns:
        return
    if source.key_format == "PROTOBUF" and options.schema_full_name is not None:
        # It is one of several messages in the schema that is registered.
        return
    made = format_named(source.key_format).schema_of(columns, options, Namespace.KEY)
    found = None if made is None else options.registry.latest(subject_of(source.topic, is_key=True))
    if made is None or found is None or _same_schema(found.schema, made):
        return
    message = (
        f"Cannot INSERT VALUES into data source `{source.name}`. ksqlDB generated schema would overwrite existing key "
        f"schema.\n\tExisting Schema: {found.schema.text}\n\tksqlDB Generated: {made.text}"
    )
    raise SqlStatementError(message)


def _same_schema(one: Schema, other: Schema) -> bool:
    if one.kind != other.kind:
        return False
    if one.kind == "PROTOBUF":
        return one.text.split() == other.text.split()
    return bool(_without_metadata(json.loads(one.text)) == _without_metadata(json.loads(other.text)))


# Any: parsed JSON.
def _without_metadata(schema: Any) -> Any:
    """Returns a schema without what Connect and people note in it: it does not change how keys are written."""
    if isinstance(schema, list):
        return [_without_metadata(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    parts = {
        name: _without_metadata(part)
        for name, part in schema.items()
        if not name.startswith("connect.") and name not in ("doc", "default")
    }
    return parts["type"] if list(parts) == ["type"] else parts


def register_schemas(source: SourceDefinition, registry: SchemaRegistry | None) -> None:
    """Registers the schemas of a source's columns where its topic has none yet."""
    if registry is None:
        return
    for namespace, columns, format, options in _registered_sides(source):
        if not columns or options.schema_id is not None:
            continue
        subject = subject_of(source.topic, is_key=namespace is Namespace.KEY)
        schema = format.schema_of(columns, options, namespace)
        if schema is not None and registry.latest(subject) is None:
            registry.register(subject, schema)


def _registered_sides(
    source: SourceDefinition,
) -> Iterator[tuple[Namespace, tuple[Column, ...], Format, FormatOptions]]:
    """Yields key and value of the source, as far as their formats keep schemas in a registry."""
    sides = (
        (Namespace.KEY, source.schema.key, source.key_format, source.key_options),
        (Namespace.VALUE, source.schema.value, source.value_format, source.value_options),
    )
    for namespace, columns, name, options in sides:
        format = format_named(name)
        if format.infers_schemas:
            yield namespace, columns, format, options

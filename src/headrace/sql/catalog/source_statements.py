"""``CREATE``, ``ALTER`` and ``DROP`` of streams and tables: from a catalogue to the next one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from headrace.serdes.registry.registry import SchemaRegistry
from headrace.sql.catalog import Catalog, SourceDefinition, other_spelling
from headrace.sql.catalog.internal_topics import check_readable, check_writable
from headrace.sql.catalog.schema_inference import SchemaChoice, check_registry, inferred_columns, register_schemas
from headrace.sql.catalog.source_checks import check_formats
from headrace.sql.catalog.source_definitions import check_names, chosen_formats, declared_columns, define_source
from headrace.sql.catalog.topic_directory import TopicDirectory
from headrace.sql.catalog.with_properties import WithProperties, source_properties
from headrace.sql.errors import SqlStatementError
from headrace.sql.syntax.statements import AlterSource, CreateSource, DropSource, InsertInto
from headrace.sql.syntax.type_grammar import resolve_type
from headrace.sql.types.schema import Column, Schema


def create_source(
    statement: CreateSource,
    catalog: Catalog,
    settings: Mapping[str, object],
    topics: TopicDirectory,
    registry: SchemaRegistry | None,
    choice: SchemaChoice,
) -> tuple[Catalog, str]:
    """Returns the catalogue with the new source, and what to tell."""
    given = source_properties(statement.properties)
    check_readable(given.kafka_topic or "")
    columns = declared_columns(statement, catalog.types)
    formats = chosen_formats(given, settings)
    options = (
        replace(given.key_options(), registry=registry),
        replace(given.value_options(), registry=registry),
    )
    columns = inferred_columns(given, columns, formats, options, choice)
    if not choice.is_accepted:
        check_names(columns)
    source = define_source(statement, given, settings, columns=columns, formats=formats, options=options, partitions=0)
    existing = catalog.find(statement.name)
    if existing is not None and statement.if_not_exists:
        return catalog, f"Cannot add {statement.kind.lower()} `{statement.name}`: it already exists."
    check_addition(source, existing, or_replace=statement.or_replace)
    if not choice.is_accepted:
        check_registry(source, registry)
    partitions = _partitions(given, source.topic, topics)
    register_schemas(source, registry)
    kind = statement.kind.capitalize()
    return catalog.with_source(replace(source, partitions=partitions)), f"{kind} created"


def _partitions(given: WithProperties, topic: str, topics: TopicDirectory) -> int:
    found = topics.partitions(topic)
    if found is not None:
        if given.partitions is not None and given.partitions != found:
            message = (
                f"A Kafka topic with the name '{topic}' already exists, with different partition/replica configuration "
                f"than required. KSQL expects {given.partitions} partitions (topic has {found})"
            )
            raise SqlStatementError(message)
        return found
    if given.partitions is None:
        message = (
            f"Topic '{topic}' does not exist. If you want to create a new topic for the stream/table please re-run the "
            "statement providing the required 'PARTITIONS' configuration in the WITH clause (and optionally "
            "'REPLICAS'). For example: WITH (KAFKA_TOPIC='topic', PARTITIONS=2)"
        )
        raise SqlStatementError(message)
    check_writable(topic)
    topics.create(topic, given.new_topic(given.partitions))
    return given.partitions


def check_addition(source: SourceDefinition, existing: SourceDefinition | None, *, or_replace: bool) -> None:
    """Raises if the source cannot be added to the catalogue, or cannot replace the one that is there."""
    kind = source.kind.lower()
    if or_replace and (source.is_source or (existing is not None and existing.is_source)):
        message = f"Cannot add {kind} '{source.name}': CREATE OR REPLACE is not supported on source {kind}s."
        raise SqlStatementError(message)
    if existing is None:
        return
    if not or_replace:
        message = f"Cannot add {kind} '{source.name}': A {existing.kind.lower()} with the same name already exists"
        raise SqlStatementError(message)
    _check_upgrade(source, existing)


def _check_upgrade(source: SourceDefinition, existing: SourceDefinition) -> None:
    problem: str | None = None
    old, new = existing.schema, source.schema
    changed = [column for column in old.value if column not in new.value]
    if source.kind != existing.kind:
        problem = (
            f"DataSource '`{source.name}`' has type = {source.kind}, which is not upgradeable from {existing.kind}"
        )
    elif (source.key_format, source.value_format, source.topic) != (
        existing.key_format,
        existing.value_format,
        existing.topic,
    ):
        problem = f"DataSource '`{source.name}`' has another topic or other formats"
    elif old.key != new.key:
        problem = (
            f"DataSource '`{source.name}`' has schema = {new} which is not upgradeable from {old}. "
            "(Key columns must be identical.)"
        )
    elif changed:
        names = ", ".join(f"`{column.name}` {column.type}" for column in changed)
        problem = (
            f"DataSource '`{source.name}`' has schema = {new} which is not upgradeable from {old}. "
            f"(The following columns are changed, missing or reordered: [{names}])"
        )
    if problem is not None:
        message = f"Cannot upgrade data source: {problem}"
        raise SqlStatementError(message)


def alter_source(statement: AlterSource, catalog: Catalog) -> tuple[Catalog, str]:
    """Returns the catalogue with further columns in a source."""
    source = catalog.find(statement.name)
    if source is None:
        message = f"Source {statement.name} does not exist.{other_spelling(statement.name, catalog.sources)}"
        raise SqlStatementError(message)
    kind = statement.kind.lower()
    if source.is_source:
        message = f"Cannot alter {kind} '{source.name}': ALTER operations are not supported on source {kind}s."
        raise SqlStatementError(message)
    if source.kind != statement.kind:
        message = f"Incompatible data source type is {source.kind}, but statement was ALTER {statement.kind}"
        raise SqlStatementError(message)
    if source.is_derived:
        message = "ALTER command is not supported for CREATE ... AS statements."
        raise SqlStatementError(message)
    columns = list(source.schema.columns)
    for added in statement.columns:
        if source.schema.find(added.name) is not None or any(column.name == added.name for column in columns):
            message = f"Cannot add column `{added.name}` to schema. A column with the same name already exists."
            raise SqlStatementError(message)
        columns.append(Column(added.name, resolve_type(added.type, catalog.types)))
    check_names(tuple(columns))
    schema = Schema(tuple(columns))
    value_options = source.value_options if len(schema.value) == 1 else replace(source.value_options, wrapped=True)
    check_formats(schema, source.key_format, source.value_format, source.key_options, value_options)
    return catalog.with_source(replace(source, schema=schema, value_options=value_options)), "Altered"


def drop_source(statement: DropSource, catalog: Catalog, topics: TopicDirectory) -> tuple[Catalog, str]:
    """Returns the catalogue without the source; the query that makes it ends with it."""
    source = catalog.find(statement.name)
    kind = statement.kind.capitalize()
    if source is None:
        if statement.if_exists:
            return catalog, f"Source `{statement.name}` does not exist."
        message = f"{kind} {statement.name} does not exist.{other_spelling(statement.name, catalog.sources)}"
        raise SqlStatementError(message)
    if source.kind != statement.kind:
        message = f"Incompatible data source type is {source.kind}, but statement was DROP {statement.kind}"
        raise SqlStatementError(message)
    if statement.delete_topic and source.is_source:
        message = f"Cannot delete topic for read-only source: {source.name}"
        raise SqlStatementError(message)
    if statement.delete_topic:
        check_writable(source.topic)
    _check_unused(source, catalog)
    if source.created_by is not None:
        catalog = catalog.without_query(source.created_by)
    if statement.delete_topic:
        topics.delete(source.topic)
    return catalog.without_source(source.name), f"Source `{source.name}` (topic: {source.topic}) was dropped."


def _check_unused(source: SourceDefinition, catalog: Catalog) -> None:
    """Raises if a query reads the source, or writes to it, that does not end with it."""
    readers = [catalog.queries[query] for query in catalog.readers(source.name)]
    inserting = sorted(query.id for query in readers if isinstance(query.statement, InsertInto))
    writers = sorted(query for query in catalog.writers(source.name) if query != source.created_by)
    if inserting or writers:
        message = (
            f"Cannot drop {source.name}.\n"
            f"The following queries read from this source: [{', '.join(inserting)}].\n"
            f"The following queries write into this source: [{', '.join(writers)}].\n"
            f"You need to terminate them before dropping {source.name}."
        )
        raise SqlStatementError(message)
    if readers:
        message = (
            f"Cannot drop {source.name}.\n"
            f"The following streams and/or tables read from this source: "
            f"[{', '.join(sorted(query.sink for query in readers))}].\n"
            f"You need to drop them before dropping {source.name}."
        )
        raise SqlStatementError(message)

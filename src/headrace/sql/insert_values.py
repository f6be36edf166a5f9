"""``INSERT INTO … VALUES``: from the statement to the record that is written."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from headrace.errors import SerializationError
from headrace.sql.catalog import Catalog, SourceDefinition, other_spelling
from headrace.sql.catalog.internal_topics import check_writable
from headrace.sql.catalog.schema_inference import check_key_schema
from headrace.sql.errors import SqlError, SqlParseError, SqlStatementError, suggestion
from headrace.sql.expressions.literals import constant
from headrace.sql.formats import format_named
from headrace.sql.functions.registry import FunctionRegistry
from headrace.sql.planning.tree import references
from headrace.sql.syntax.formatter import expression_text
from headrace.sql.syntax.nodes import Expression
from headrace.sql.syntax.statements import InsertValues
from headrace.sql.types import BIGINT
from headrace.sql.types.schema import PSEUDO_COLUMNS, Column, Namespace

_READ_ONLY = frozenset(PSEUDO_COLUMNS) - {"ROWTIME"}


@dataclass(frozen=True, slots=True)
class InsertedRecord:
    """The record that an INSERT writes. ``timestamp_ms`` is None unless the statement gives ROWTIME."""

    topic: str
    key: bytes | None
    value: bytes | None
    timestamp_ms: int | None


def insert_target(name: str, catalog: Catalog) -> SourceDefinition:
    """Returns the source that values are inserted into; raises if there is none or it takes none."""
    source = catalog.find(name)
    if source is None:
        message = f"Cannot insert values into an unknown stream/table: `{name}`{other_spelling(name, catalog.sources)}"
        raise SqlStatementError(message)
    if source.is_source:
        message = f"Cannot insert values into read-only {source.kind.lower()}: {name}"
        raise SqlStatementError(message)
    if source.window is not None:
        message = "Cannot insert values into windowed stream/table!"
        raise SqlStatementError(message)
    check_writable(source.topic)
    return source


def record_of(
    statement: InsertValues, catalog: Catalog, functions: FunctionRegistry, settings: Mapping[str, object]
) -> InsertedRecord:
    """Returns the record that the statement writes."""
    if statement.columns and len(statement.columns) != len(statement.values):
        message = (
            "Failed to prepare statement: Expected number columns and values to match: "
            f"{len(statement.columns)}, {len(statement.values)}"
        )
        raise SqlParseError(message)
    for node in statement.values:
        _check_no_source(node)
    source = insert_target(statement.target, catalog)
    columns = _columns(statement, source)
    headers = [column.name for column in columns if column.namespace is Namespace.HEADERS]
    if headers:
        message = f"Cannot insert into HEADER columns: {', '.join(headers)}"
        raise SqlStatementError(message)
    try:
        values = {
            column.name: constant(node, column.type, functions, column=column.name, settings=settings)
            for column, node in zip(columns, statement.values, strict=True)
        }
        check_key_schema(source)
    except SqlError as error:
        message = f"Failed to insert values into '{source.name}'. {error.message}"
        raise SqlStatementError(message, position=error.position) from error
    return inserted_record(source, values)


def inserted_record(source: SourceDefinition, values: dict[str, object]) -> InsertedRecord:
    """Returns the record of a row: the values of columns by name, and ROWTIME if it is given."""
    missing = [column.name for column in source.schema.key if values.get(column.name) is None]
    if source.is_table and missing:
        message = (
            f"Failed to insert values into '{source.name}'. Value for primary key column(s) {', '.join(missing)} "
            "is required for tables"
        )
        raise SqlStatementError(message)
    time = values.get("ROWTIME")
    if time is not None and (not isinstance(time, int) or time < 0):
        message = (
            f"Failed to insert values into '{source.name}'. Invalid timestamp: {time}. "
            "Timestamp should always be non-negative or null."
        )
        raise SqlStatementError(message)
    try:
        key, value = _bytes(source, values)
    except SerializationError as error:
        message = f"Failed to insert values into '{source.name}'. Could not serialize {error}"
        raise SqlStatementError(message) from error
    return InsertedRecord(source.topic, key, value, time)


def _check_no_source(node: Expression) -> None:
    found = next((reference.source for reference in references(node) if reference.source is not None), None)
    if found is not None:
        message = f"Failed to prepare statement: '{found}' is not a valid stream/table name or alias."
        raise SqlParseError(message, position=node.position)


def _columns(statement: InsertValues, source: SourceDefinition) -> tuple[Column, ...]:
    if not statement.columns:
        columns = (*source.schema.key, *source.schema.value, *source.schema.headers)
        if len(columns) != len(statement.values):
            names = ", ".join(f"`{column.name}`" for column in columns)
            values = ", ".join(map(expression_text, statement.values))
            message = (
                f"Failed to insert values into '{source.name}'. Expected a value for each column. "
                f"Expected Columns: [{names}]. Got [{values}]"
            )
            raise SqlStatementError(message)
        return columns
    found: list[Column] = []
    unknown: list[str] = []
    for name in statement.columns:
        if name in _READ_ONLY:
            message = f"Failed to insert values into '{source.name}'. Inserting into column `{name}` is not allowed."
            raise SqlStatementError(message)
        column = Column("ROWTIME", BIGINT) if name == "ROWTIME" else source.schema.find(name)
        if column is None:
            unknown.append(f"`{name}`")
        else:
            found.append(column)
    if unknown:
        hint = suggestion(unknown[0].strip("`"), (column.name for column in source.schema))
        message = f"Failed to insert values into '{source.name}'. Column name {unknown[0]} does not exist.{hint}"
        raise SqlStatementError(message)
    return tuple(found)


def _bytes(source: SourceDefinition, values: dict[str, object]) -> tuple[bytes | None, bytes | None]:
    key_columns, value_columns = source.schema.key, source.schema.value
    key: bytes | None = None
    # A key of several columns is there also when all of them are null.
    if len(key_columns) > 1 or any(values.get(column.name) is not None for column in key_columns):
        key_serde = format_named(source.key_format).key_serde(key_columns, source.key_options)
        write_key = key_serde.serializer(source.topic, is_key=True)
        key = write_key(tuple(values.get(column.name) for column in key_columns))
    value_serde = format_named(source.value_format).serde(value_columns, source.value_options)
    write_value = value_serde.serializer(source.topic, is_key=False)
    return key, write_value([values.get(column.name) for column in value_columns])

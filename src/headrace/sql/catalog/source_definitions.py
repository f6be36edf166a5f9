"""``CREATE STREAM|TABLE`` with columns: from the statement to the definition of a source."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from headrace.sql.catalog import SourceDefinition, TimestampColumn, WindowDefinition
from headrace.sql.catalog.source_checks import RESERVED_COLUMNS, check_formats
from headrace.sql.catalog.with_properties import WithProperties, check_format_properties, with_key_name, wrapping
from headrace.sql.errors import SqlParseError, SqlStatementError
from headrace.sql.formats import FormatOptions, format_named
from headrace.sql.syntax.statements import ColumnDefinition, CreateSource
from headrace.sql.syntax.type_grammar import resolve_type
from headrace.sql.types import ARRAY, BIGINT, BYTES, STRING, STRUCT, TIMESTAMP, SqlType, StructField
from headrace.sql.types.schema import Column, Namespace, Schema

KEY_FORMAT_SETTING = "ksql.persistence.default.format.key"
VALUE_FORMAT_SETTING = "ksql.persistence.default.format.value"
HEADERS_TYPE = ARRAY(STRUCT((StructField("KEY", STRING), StructField("VALUE", BYTES))))
"""What a HEADERS column has to be."""


def declared_columns(statement: CreateSource, types: Mapping[str, SqlType]) -> tuple[Column, ...]:
    """Returns the columns that a statement lists; raises for names and roles that cannot be."""
    for element in statement.elements:
        _check_role(statement.kind, element)
    columns = tuple(_column(element, types) for element in statement.elements)
    check_names(columns)
    _check_headers(columns)
    return columns


def _check_role(kind: str, element: ColumnDefinition) -> None:
    place = "" if element.position is None else f"Line: {element.position.line}, Col: {element.position.column}: "
    if kind == "TABLE" and element.role == "KEY":
        problem = f"Column `{element.name}` is a 'KEY' column: please use 'PRIMARY KEY' for tables."
    elif kind == "STREAM" and element.role == "PRIMARY KEY":
        problem = f"Column `{element.name}` is a 'PRIMARY KEY' column: please use 'KEY' for streams."
    else:
        return
    advice = "Tables have PRIMARY KEYs, which are unique and NON NULL."
    more = "Streams have KEYs, which have no uniqueness or NON NULL constraints."
    message = f"{place}{problem}\n{advice}\n{more}"
    raise SqlParseError(message, position=element.position)


def _column(element: ColumnDefinition, types: Mapping[str, SqlType]) -> Column:
    kind = resolve_type(element.type, types)
    if element.role in ("HEADERS", "HEADER"):
        return Column(element.name, kind, Namespace.HEADERS, element.header_key)
    return Column(element.name, kind, Namespace.VALUE if element.role == "VALUE" else Namespace.KEY)


def check_names(columns: tuple[Column, ...]) -> None:
    """Raises if a name is reserved, or two columns have the same one."""
    names = [column.name for column in columns]
    repeated = [f"`{name}`" for name in dict.fromkeys(names) if names.count(name) > 1]
    if repeated:
        message = f"Failed to prepare statement: Duplicate column names: {', '.join(repeated)}"
        raise SqlParseError(message)
    reserved = next((name for name in names if name in RESERVED_COLUMNS), None)
    if reserved is not None:
        message = f"'{reserved}' is a reserved column name. You cannot use it as a name for a column."
        raise SqlStatementError(message)


def _check_headers(columns: tuple[Column, ...]) -> None:
    headers = [column for column in columns if column.namespace is Namespace.HEADERS]
    everything = [column for column in headers if column.header_key is None]
    for column in headers:
        required: SqlType = HEADERS_TYPE if column.header_key is None else BYTES
        shown = "HEADERS" if column.header_key is None else f"HEADER('{column.header_key}')"
        if column.type != required:
            message = (
                f"Failed to prepare statement: Invalid type for {shown} column: expected {required}, got {column.type}"
            )
            raise SqlParseError(message)
    if everything and headers.index(everything[0]) < len(headers) - 1:
        message = "Schema already contains a HEADERS column."
        raise SqlParseError(message)
    keys = [column.header_key for column in headers]
    twice = next((key for index, key in enumerate(keys) if key is not None and key in keys[:index]), None)
    if twice is not None:
        message = f"Schema already contains a HEADER('{twice}') column."
        raise SqlParseError(message)


def chosen_formats(given: WithProperties, settings: Mapping[str, object]) -> tuple[str, str]:
    """Returns the names of the key's and the value's format, from the statement or from the settings."""
    value = given.value_format or settings.get(VALUE_FORMAT_SETTING)
    if value is None:
        message = (
            "Statement is missing the 'VALUE_FORMAT' property from the WITH clause. Either provide one or set a "
            f"default via the '{VALUE_FORMAT_SETTING}' config."
        )
        raise SqlStatementError(message)
    key = given.key_format or settings.get(KEY_FORMAT_SETTING) or "KAFKA"
    return format_named(str(key)).name, format_named(str(value)).name


def define_source(
    statement: CreateSource,
    given: WithProperties,
    settings: Mapping[str, object],
    *,
    columns: tuple[Column, ...],
    formats: tuple[str, str],
    options: tuple[FormatOptions, FormatOptions],
    partitions: int,
) -> SourceDefinition:
    """Returns the source that a statement defines, with the columns it lists or those that were inferred."""
    key_format, value_format = formats
    schema = Schema(columns)
    check_format_properties(given, key_format if schema.key or _key_given(given) else "NONE", value_format)
    if not columns:
        message = "No columns supplied."
        raise SqlStatementError(message)
    if statement.kind == "TABLE" and not schema.key:
        message = "Tables require a PRIMARY KEY. Please define the PRIMARY KEY."
        if given.value_schema_id is not None:
            message += (
                "\nUse a partial schema to define the primary key and still load the value columns from the Schema "
                f"Registry, for example:\n\tCREATE TABLE {statement.name} (ID INT PRIMARY KEY) WITH (...);"
            )
        raise SqlStatementError(message)
    if given.ttl is not None and statement.kind == "STREAM":
        problem = "the rows of a stream do not expire: set it for a table, or RETENTION_MS for the topic"
        raise given.refused_ttl(problem)
    if given.ttl is not None and statement.is_source:
        problem = "a SOURCE table has what its topic has: make a table with a TTL of it by CREATE TABLE ... AS SELECT"
        raise given.refused_ttl(problem)
    key_options, value_options = options
    key_options = with_key_name(key_options, key_format, statement.name)
    value_options = replace(value_options, wrapped=wrapping(given, value_format, len(schema.value), settings))
    check_formats(schema, key_format, value_format, key_options, value_options)
    assert given.kafka_topic is not None  # source_properties requires it
    window = None if given.window_type is None else WindowDefinition(given.window_type, given.window_size)
    if window is not None and not schema.key:
        message = "Windowed sources require a key column."
        raise SqlStatementError(message)
    return SourceDefinition(
        kind=statement.kind,
        name=statement.name,
        schema=schema,
        topic=given.kafka_topic,
        key_format=key_format,
        value_format=value_format,
        key_options=key_options,
        value_options=value_options,
        timestamp=timestamp_column(given, schema),
        window=window,
        is_source=statement.is_source,
        text=statement.text,
        partitions=partitions,
        lifetime=given.lifetime,
    )


def _key_given(given: WithProperties) -> bool:
    return given.key_delimiter is not None or given.key_schema_full_name is not None


def timestamp_column(given: WithProperties, schema: Schema) -> TimestampColumn | None:
    """Returns the column that gives records their time; raises if it is not there or cannot do that."""
    if given.timestamp is None:
        return None
    column = schema.find(given.timestamp)
    if column is None:
        message = f"The TIMESTAMP column set in the WITH clause does not exist in the schema: '{given.timestamp}'"
        raise SqlStatementError(message)
    text = given.timestamp_format
    if column.type == STRING and text is None:
        message = (
            f"A String timestamp field has been specified without also specifying the timestamp_format: `{column.name}`"
        )
        raise SqlStatementError(message)
    if column.type != STRING and text is not None:
        message = (
            "'TIMESTAMP_FORMAT' set in the WITH clause can only be used when the timestamp column is of type STRING. "
            f"`{column.name}` is of type {column.type}."
        )
        raise SqlStatementError(message)
    if column.type not in (STRING, BIGINT, TIMESTAMP):
        message = (
            f"Timestamp column, `{column.name}`, should be LONG(INT64), TIMESTAMP, or a String with a "
            "timestamp_format specified."
        )
        raise SqlStatementError(message)
    return TimestampColumn(column.name, text)

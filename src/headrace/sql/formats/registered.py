"""Common part of formats with registered schemas: the registry, and the schema that rows are written with."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from typing import Protocol

from headrace.errors import ConfigError
from headrace.serdes.registry.registry import Schema, SchemaRegistry, subject_of
from headrace.sql.errors import SqlStatementError
from headrace.sql.formats.format import Format, FormatOptions, Target
from headrace.sql.types import SqlStruct, SqlType
from headrace.sql.types.schema import Column, Namespace


def check_installed(format: Format, *packages: str) -> None:
    """Raises if a package that the format needs is not installed."""
    for package in packages:
        if find_spec(package) is None:
            message = f"The {format.name} format needs the package {package}, which comes with headrace[registry]"
            raise SqlStatementError(message)


def registry_of(format: Format, options: FormatOptions) -> SchemaRegistry:
    """Returns the registry; raises if the options name none."""
    if options.registry is None:
        message = f"the {format.name} format keeps its schemas in a schema registry; set ksql.schema.registry.url"
        raise ConfigError(message)
    return options.registry


def written_schema(
    format: Format, columns: tuple[Column, ...], options: FormatOptions, target: Target
) -> tuple[int, Schema]:
    """Returns the schema with which rows are written to the target, and its number.

    It is the one that the statement names by number, or the one of the columns, which is registered if it is new.
    """
    registry = registry_of(format, options)
    if options.schema_id is not None:
        return options.schema_id, registry.schema(options.schema_id)
    schema = format.schema_of(columns, options, Namespace.KEY if target.is_key else Namespace.VALUE)
    assert schema is not None, "the caller is a format with schemas"
    return registry.register(subject_of(target.topic, is_key=target.is_key), schema), schema


class TypeOf(Protocol):
    """Reads the text of a schema as a type of SQL, with names in upper case unless they are to be kept."""

    def __call__(self, text: str, *, keep_case: bool) -> SqlType: ...


def inferred_columns(
    format: Format, schema: Schema, options: FormatOptions, namespace: Namespace, type_of: TypeOf
) -> tuple[Column, ...]:
    """Returns the columns that a registered schema describes."""
    with schema_errors(format):
        type = type_of(schema.text, keep_case=options.schema_id is not None)
    if namespace is Namespace.KEY or not options.wrapped:
        return (Column("ROWKEY" if namespace is Namespace.KEY else "ROWVAL", type, namespace),)
    if not isinstance(type, SqlStruct):
        message = (
            "Schema returned from schema registry is anonymous type. To use this schema with ksqlDB, "
            "set 'WRAP_SINGLE_VALUE=false' in the WITH clause properties."
        )
        raise SqlStatementError(message)
    if not type.fields:
        message = f"Schema does not include any columns with types that ksqlDB supports.\nschema: {schema.text}"
        raise SqlStatementError(message)
    return tuple(Column(field.name, field.type, namespace) for field in type.fields)


@contextmanager
def schema_errors(format: Format) -> Iterator[None]:
    """Turns what goes wrong while a registered schema is read into an error of the statement."""
    try:
        yield
    except SqlStatementError:
        raise
    except (LookupError, ValueError, TypeError) as error:
        message = f"the registered {format.name} schema describes no columns: {error}"
        raise SqlStatementError(message) from error

"""Sources of a catalogue as JSON: all that another process needs to read their topics."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from datetime import timedelta
from typing import Any

from headrace.serdes.registry.registry import SchemaRegistry
from headrace.sql.catalog import Catalog, SourceDefinition, TimestampColumn, WindowDefinition
from headrace.sql.formats import FormatOptions
from headrace.sql.reading.tables.expiry import Expiry, expiry_of
from headrace.sql.syntax.parser import parse_type
from headrace.sql.syntax.type_grammar import resolve_type
from headrace.sql.types.schema import Column, Namespace, Schema

_MILLISECOND = timedelta(milliseconds=1)

# Any: what JSON holds.
Json = dict[str, Any]


@dataclass(frozen=True)
class ReadableSource:
    """A stream or a table, and how long its rows or windows are kept."""

    definition: SourceDefinition
    expiry: Expiry | None = None

    @classmethod
    def of(cls, definition: SourceDefinition, catalog: Catalog) -> ReadableSource:
        return cls(definition, expiry_of(definition, catalog))

    def to_json(self) -> Json:
        """Returns it as JSON; of the schema registry it has the address, and nothing that is secret.

        >>> from headrace.sql.types import BIGINT, STRING
        >>> columns = Schema((Column("ID", STRING, Namespace.KEY), Column("N", BIGINT)))
        >>> source = ReadableSource(SourceDefinition("TABLE", "COUNTS", columns, "counts", "KAFKA", "JSON"))
        >>> ReadableSource.from_json(source.to_json()) == source
        True
        """
        source = self.definition
        window = source.window
        size = None if window is None or window.size is None else window.size // _MILLISECOND
        return {
            "kind": source.kind,
            "name": source.name,
            "topic": source.topic,
            "columns": [
                {
                    "name": each.name,
                    "type": str(each.type),
                    "namespace": each.namespace.value,
                    "headerKey": each.header_key,
                }
                for each in source.schema
            ],
            "keyFormat": source.key_format,
            "valueFormat": source.value_format,
            "keyOptions": _options_json(source.key_options),
            "valueOptions": _options_json(source.value_options),
            "timestamp": None if source.timestamp is None else asdict(source.timestamp),
            "window": None if window is None else {"kind": window.kind, "sizeMs": size},
            "expiry": None if self.expiry is None else asdict(self.expiry),
            "statement": source.text,
            "partitions": source.partitions,
        }

    @classmethod
    def from_json(cls, found: Mapping[str, Any]) -> ReadableSource:
        """Reads what ``to_json`` has made."""
        window = found["window"]
        size = None if window is None or window["sizeMs"] is None else window["sizeMs"] * _MILLISECOND
        expiry = found["expiry"]
        definition = SourceDefinition(
            found["kind"],
            found["name"],
            Schema(tuple(_column(each) for each in found["columns"])),
            found["topic"],
            found["keyFormat"],
            found["valueFormat"],
            _options(found["keyOptions"]),
            _options(found["valueOptions"]),
            _time_column(found["timestamp"]),
            None if window is None else WindowDefinition(window["kind"], size),
            text=found["statement"],
            partitions=found["partitions"],
        )
        return cls(
            definition, None if expiry is None else Expiry(**{**expiry, "column": _time_column(expiry["column"])})
        )


def _time_column(found: Mapping[str, Any] | None) -> TimestampColumn | None:
    return None if found is None else TimestampColumn(**found)


def _column(found: Mapping[str, Any]) -> Column:
    type = resolve_type(parse_type(found["type"]), {})
    return Column(found["name"], type, Namespace(found["namespace"]), found["headerKey"])


def _options_json(options: FormatOptions) -> Json:
    given = asdict(replace(options, registry=None))
    # An address may have a name and a password in it.
    return given | {"registry": None if options.registry is None else re.sub("//[^/@]*@", "//", options.registry.url)}


def _options(found: Mapping[str, Any]) -> FormatOptions:
    registry = found["registry"]
    return FormatOptions(**{**found, "registry": None if registry is None else SchemaRegistry(registry)})

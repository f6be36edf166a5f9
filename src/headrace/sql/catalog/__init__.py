"""Catalogue of a service: what exists, the statements that change it, and the topics it knows.

| module | |
|---|---|
| ``catalog`` | streams, tables, types and running queries, as one value; import it from this package |
| ``command_log`` | the command topic: every statement that has changed the catalogue |
| ``source_statements``, ``function_statements`` | from a catalogue to the next one |
| ``source_definitions``, ``with_properties``, ``schema_inference`` | sources from statements and registered schemas |
| ``source_checks``, ``source_json`` | columns that a source may have; sources for other processes |
| ``persistent_query``, ``query_sinks`` | queries, and what they write to |
| ``topic_directory``, ``log_topics``, ``internal_topics`` | topics that statements know of, and those of servers |
"""

from headrace.sql.catalog.catalog import (
    Catalog,
    Lifetime,
    SourceDefinition,
    TimestampColumn,
    WindowDefinition,
    other_spelling,
)

__all__ = ["Catalog", "Lifetime", "SourceDefinition", "TimestampColumn", "WindowDefinition", "other_spelling"]

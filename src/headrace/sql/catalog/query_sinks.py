"""The streams and tables that queries write to."""

from __future__ import annotations

from dataclasses import replace

from headrace.sql.catalog import Catalog, SourceDefinition, other_spelling
from headrace.sql.catalog.internal_topics import check_writable
from headrace.sql.catalog.topic_directory import TopicDirectory
from headrace.sql.catalog.with_properties import WithProperties
from headrace.sql.errors import SqlStatementError
from headrace.sql.planning.plan import QueryPlan
from headrace.sql.planning.sources import place
from headrace.sql.syntax.statements import CreateAsSelect, InsertInto


def sink_definition(plan: QueryPlan, statement: CreateAsSelect, query_id: str) -> SourceDefinition:
    """Returns the source that a query makes."""
    sink = plan.sink
    if sink.kind != statement.kind:
        message = (
            f"Invalid result type. Your SELECT query produces a {sink.kind}. "
            f"Please use CREATE {sink.kind} AS SELECT statement instead."
        )
        raise SqlStatementError(message)
    check_writable(sink.topic)
    return replace(sink, text=statement.text, is_derived=True, created_by=query_id)


def with_topic(
    sink: SourceDefinition, plan: QueryPlan, given: WithProperties, topics: TopicDirectory
) -> SourceDefinition:
    """Returns the sink with the number of its topic's partitions; makes the topic if there is none."""
    wanted, found = given.partitions, topics.partitions(sink.topic)
    if found is None:
        found = wanted if wanted is not None else plan.sources[0].partitions
        topics.create(sink.topic, given.new_topic(found))
    elif wanted is not None and wanted != found:
        message = (
            f"A Kafka topic with the name '{sink.topic}' already exists, with different partition/replica "
            f"configuration than required. KSQL expects {wanted} partitions (topic has {found})"
        )
        raise SqlStatementError(message)
    return replace(sink, partitions=found)


def check_insert_target(statement: InsertInto, catalog: Catalog) -> SourceDefinition:
    """Returns the stream that a query is to write to; raises if it cannot."""
    target = catalog.find(statement.target)
    if target is None:
        hint = other_spelling(statement.target, catalog.sources)
        message = f"{place(statement.target_position)}{statement.target} does not exist.{hint}"
        raise SqlStatementError(message, position=statement.target_position)
    if target.is_table:
        message = f"INSERT INTO can only be used to insert into a stream. {target.name} is a table."
        raise SqlStatementError(message)
    if target.is_source:
        message = f"Cannot insert into read-only stream: {target.name}"
        raise SqlStatementError(message)
    if target.schema.headers:
        message = f"Cannot insert into {target.name} because it has header columns"
        raise SqlStatementError(message)
    check_writable(target.topic)
    return target

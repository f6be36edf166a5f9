"""Statements, carried out one after the other on a catalogue."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from headrace.dsl.builder import StreamsBuilder
from headrace.errors import StreamsError
from headrace.serdes.registry.registry import SchemaRegistry
from headrace.sql.catalog import Catalog
from headrace.sql.catalog.function_statements import create_function, drop_function
from headrace.sql.catalog.persistent_query import PersistentQuery
from headrace.sql.catalog.query_sinks import check_insert_target, sink_definition, with_topic
from headrace.sql.catalog.schema_inference import SchemaChoice, check_registry, check_sink_schemas, register_schemas
from headrace.sql.catalog.source_statements import alter_source, check_addition, create_source, drop_source
from headrace.sql.catalog.topic_directory import KnownTopics, TopicDirectory
from headrace.sql.catalog.with_properties import insert_properties, sink_properties
from headrace.sql.errors import SqlError, SqlStatementError, reporting_depth
from headrace.sql.functions import BUILTIN_FUNCTIONS
from headrace.sql.functions.registry import FunctionRegistry
from headrace.sql.insert_values import InsertedRecord, record_of
from headrace.sql.planning import QueryPlan, SinkRequest, build, plan_query
from headrace.sql.qualified_statements import shown_statement
from headrace.sql.syntax.parser import parse_statement, split, statements
from headrace.sql.syntax.statements import (
    AlterSource,
    ControlQuery,
    CreateAsSelect,
    CreateFunction,
    CreateSource,
    CreateType,
    DefineVariable,
    DropFunction,
    DropSource,
    DropType,
    InsertInto,
    InsertValues,
    RunScript,
    SetProperty,
    Statement,
    UndefineVariable,
    UnsetProperty,
)
from headrace.sql.syntax.type_grammar import resolve_type
from headrace.sql.syntax.variables import substitute

TOPIC_PREFIX = "ksql.output.topic.name.prefix"
"""The setting of what stands before the name of a sink's topic where a statement gives none."""


@dataclass(frozen=True)
class Executed:
    """Result of a statement."""

    statement: Statement
    message: str
    query: PersistentQuery | None = None
    """The query that it started."""
    record: InsertedRecord | None = None
    """The record that is to be written."""


class SqlEngine:
    """Carries out statements: each changes the catalogue, starts a query or makes a record to write.

    It runs nothing itself: the topology of a query and the record of an INSERT are for its host.

    >>> engine = SqlEngine()
    >>> _ = engine.execute("CREATE STREAM S (ID INT KEY, V STRING) WITH (KAFKA_TOPIC='s', VALUE_FORMAT='JSON');")
    >>> [done] = engine.execute("CREATE STREAM T AS SELECT ID, UCASE(V) AS U FROM S;")
    >>> done.query.id, str(engine.catalog.source("T").schema)
    ('CSAS_T_0', '`ID` INTEGER KEY, `U` STRING')
    """

    def __init__(
        self,
        functions: FunctionRegistry | None = None,
        settings: Mapping[str, object] | None = None,
        *,
        topics: TopicDirectory | None = None,
        registry: SchemaRegistry | None = None,
        admit: Callable[[Statement], None] | None = None,
    ) -> None:
        """Starts with an empty catalogue.

        - ``settings``: what SET would set.
        - ``topics``: which topics exist; without it every topic does, with one partition.
        - ``registry``: where schemas are, for formats that keep them there.
        - ``admit``: asked before every statement; raises for one that must not be carried out here.
        """
        self.catalog = Catalog()
        self.functions = functions if functions is not None else BUILTIN_FUNCTIONS
        self.settings: dict[str, object] = dict(settings or {})
        self.variables: dict[str, str] = {}
        self.topics: TopicDirectory = topics if topics is not None else KnownTopics(default_partitions=1)
        self.registry = registry
        self._admit = admit
        self.choice = SchemaChoice()
        """The registered schemas that columns were inferred from."""
        self._query_number = 0

    def trial(self, topics: TopicDirectory, schemas: Mapping[str, int] | None = None) -> SqlEngine:
        """Returns an engine in the same state, to try statements out on: what they do there is not done here.

        ``schemas`` are those that columns are to be inferred from, by subject: they were when a statement was accepted.
        """
        other = SqlEngine(self.functions, self.settings, topics=topics, registry=self.registry, admit=self._admit)
        other.choice = SchemaChoice(schemas)
        other.catalog, other.variables, other._query_number = self.catalog, dict(self.variables), self._query_number
        return other

    def adopt(self, other: SqlEngine) -> None:
        """Takes over the state of an engine on which statements were tried out."""
        self.catalog, self.functions, self._query_number = other.catalog, other.functions, other._query_number
        self.settings = dict(other.settings)

    def execute(self, text: str | Statement, overrides: Mapping[str, object] | None = None) -> tuple[Executed, ...]:
        """Carries out all statements of the text, in order; ``overrides`` are settings for this call only.

        If one fails, those before it have been carried out.
        """
        return tuple(self.execute_each(text, overrides))

    def execute_each(self, text: str | Statement, overrides: Mapping[str, object] | None = None) -> Iterator[Executed]:
        """Yields what came of each statement as soon as it was carried out."""
        if isinstance(text, Statement):
            yield self._carried_out(text, {**self.settings, **(overrides or {})})
            return
        for statement in self._parse_statements(text):
            yield self._carried_out(statement, {**self.settings, **(overrides or {})})

    def _parse_statements(self, text: str) -> Iterator[Statement]:
        if "${" not in text:
            yield from statements(text)
            return
        # A variable may be defined by the statement before the one that uses it.
        for part in split(text):
            yield parse_statement(substitute(part, self.variables))

    def _carried_out(self, statement: Statement, settings: Mapping[str, object]) -> Executed:
        try:
            with reporting_depth(statement.text, statement.position):
                return self._execute(statement, settings)
        except SqlStatementError as error:
            if error.statement is None:
                error.statement = shown_statement(statement, self.catalog)
            error.locate(statement.text, statement.position)
            raise
        except StreamsError as error:
            # What the parts of a plan say of themselves, such as a window that is shorter than its advance.
            position = error.position if isinstance(error, SqlError) else None
            shown = shown_statement(statement, self.catalog)
            failure = SqlStatementError(str(error), position=position, statement=shown)
            failure.locate(statement.text, statement.position)
            raise failure from error

    def _execute(self, statement: Statement, settings: Mapping[str, object]) -> Executed:
        if self._admit is not None:
            self._admit(statement)
        match statement:
            case CreateSource():
                self.catalog, message = create_source(
                    statement, self.catalog, settings, self.topics, self.registry, self.choice
                )
            case CreateAsSelect():
                return self._create_as_select(statement, settings)
            case InsertInto():
                return self._insert_into(statement, settings)
            case InsertValues():
                record = record_of(statement, self.catalog, self.functions, settings)
                return Executed(statement, "Inserted", record=record)
            case DropSource():
                self.catalog, message = drop_source(statement, self.catalog, self.topics)
            case AlterSource():
                self.catalog, message = alter_source(statement, self.catalog)
            case CreateType():
                message = self._create_type(statement)
            case DropType():
                message = self._drop_type(statement)
            case CreateFunction():
                self.functions, message = create_function(statement, self.functions)
            case DropFunction():
                self.functions, message = drop_function(statement, self.functions)
            case ControlQuery(action="TERMINATE"):
                message = self._terminate(statement)
            case SetProperty():
                self.settings[statement.name] = statement.value
                message = f"Successfully changed local property '{statement.name}' to '{statement.value}'."
            case UnsetProperty():
                self.settings.pop(statement.name, None)
                message = f"Successfully unset local property '{statement.name}'."
            case DefineVariable():
                self.variables[statement.name.upper()] = statement.value
                message = f"Variable {statement.name} is now '{statement.value}'."
            case UndefineVariable():
                self.variables.pop(statement.name.upper(), None)
                message = f"Variable {statement.name} is no longer defined."
            case RunScript():
                done = self.execute(Path(statement.path).read_text(encoding="utf-8"))
                message = "\n".join(one.message for one in done)
            case _:
                unsupported = f"{type(statement).__name__} is not carried out by the engine; ask its host"
                raise SqlStatementError(unsupported)
        return Executed(statement, message)

    def _create_as_select(self, statement: CreateAsSelect, settings: Mapping[str, object]) -> Executed:
        existing = self.catalog.find(statement.name)
        if existing is not None and statement.if_not_exists:
            message = f"Cannot add {statement.kind.lower()} `{statement.name}`: it already exists."
            return Executed(statement, message)
        given = sink_properties(statement.properties)
        prefix = "CSAS" if statement.kind == "STREAM" else "CTAS"
        replaced = existing.created_by if existing is not None and statement.or_replace else None
        query_id = replaced or f"{prefix}_{statement.name}_{self._query_number}"
        topic = given.kafka_topic or f"{settings.get(TOPIC_PREFIX, '')}{statement.name}"
        request = SinkRequest(statement.name, statement.kind, topic, given)
        plan = plan_query(statement.query, self.catalog, self.functions, request, settings)
        sink = sink_definition(plan, statement, query_id)
        check_sink_schemas(sink, given.kafka_topic)
        check_addition(sink, existing, or_replace=statement.or_replace)
        query = _query(query_id, statement, plan, settings)
        if not self.choice.is_accepted:
            check_registry(sink, self.registry)
        # Nothing outside has changed until here: a statement that fails leaves no topic behind.
        sink = with_topic(sink, plan, given, self.topics)
        register_schemas(sink, self.registry)
        self.catalog = self.catalog.with_source(sink).with_query(query)
        if replaced is None:
            self._query_number += 1
        return Executed(statement, f"Created query with ID {query_id}", query)

    def _insert_into(self, statement: InsertInto, settings: Mapping[str, object]) -> Executed:
        target = check_insert_target(statement, self.catalog)
        given = insert_properties(statement.properties)
        # Statements that name it fold it to upper case.
        query_id = (given.query_id or f"INSERTQUERY_{self._query_number}").upper()
        if query_id in self.catalog.queries:
            message = f"Query ID '{query_id}' already exists."
            raise SqlStatementError(message)
        request = SinkRequest(target.name, target.kind, target.topic, given, target)
        plan = plan_query(statement.query, self.catalog, self.functions, request, settings)
        query = _query(query_id, statement, plan, settings)
        self.catalog = self.catalog.with_query(query)
        self._query_number += 1
        return Executed(statement, f"Created query with ID {query_id}", query)

    def _create_type(self, statement: CreateType) -> str:
        if statement.name in self.catalog.types:
            if statement.if_not_exists:
                return f"{statement.name} is already registered"
            known = self.catalog.types[statement.name]
            message = (
                f"Cannot register custom type '{statement.name}' since it is already registered with type: {known}"
            )
            raise SqlStatementError(message)
        found = resolve_type(statement.type, self.catalog.types)
        self.catalog = self.catalog.with_type(statement.name, found)
        return f"Registered custom type with name '{statement.name}' and SQL type {found}"

    def _drop_type(self, statement: DropType) -> str:
        if statement.name not in self.catalog.types:
            if statement.if_exists:
                return f"Type '{statement.name}' does not exist"
            message = f"Type {statement.name} does not exist."
            raise SqlStatementError(message)
        self.catalog = self.catalog.without_type(statement.name)
        return f"Dropped type '{statement.name}'"

    def _terminate(self, statement: ControlQuery) -> str:
        ended = list(self.catalog.queries) if statement.query_id is None else [statement.query_id]
        for query_id in ended:
            if query_id not in self.catalog.queries:
                message = f"Unknown queryId: {query_id}"
                raise SqlStatementError(message)
            self.catalog = self.catalog.without_query(query_id)
        for source in self.catalog.sources.values():
            if source.created_by in ended:
                self.catalog = self.catalog.with_source(replace(source, created_by=None))
        return "Query terminated."


def _query(
    query_id: str, statement: CreateAsSelect | InsertInto, plan: QueryPlan, settings: Mapping[str, object]
) -> PersistentQuery:
    builder = StreamsBuilder()
    build(plan, builder)
    return PersistentQuery(
        query_id,
        statement,
        plan.sink.name,
        plan.sink.topic,
        tuple(source.name for source in plan.sources),
        tuple(source.topic for source in plan.sources),
        plan,
        builder.build(),
        dict(settings),
    )

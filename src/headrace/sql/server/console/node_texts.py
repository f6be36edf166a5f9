"""The SQL that each node of a query's topology stands for."""

from __future__ import annotations

from dataclasses import dataclass
from functools import singledispatch

from headrace.sql.catalog.persistent_query import PersistentQuery
from headrace.sql.planning.build import RecordingBuilder, build
from headrace.sql.planning.plan import (
    DropRepeated,
    Expire,
    Filter,
    FlatMap,
    GroupedAggregate,
    JoinForeignKey,
    JoinRows,
    Project,
    Read,
    SelectKey,
    Step,
)
from headrace.sql.syntax.formatter import duration_text, name_text
from headrace.sql.syntax.statements import CreateAsSelect, Join, Query
from headrace.topology import operations as ops
from headrace.topology.nodes import Node, ProcessorNode, SinkNode

_AGGREGATES = (
    ops.StreamAggregate,
    ops.StreamCount,
    ops.WindowAggregate,
    ops.SessionAggregate,
    ops.TableAggregate,
)
_ROLES: dict[type[ops.Operation], str] = {
    ops.Filter: "filter",
    ops.TableFilter: "filter",
    ops.MapValues: "columns",
    ops.TableMapValues: "columns",
    ops.Distinct: "leaves out what is repeated",
    ops.FlatMapValues: "a row for each value",
    ops.SelectKey: "new key",
    ops.Map: "new key",
    ops.TableGroupBy: "new key",
    ops.NullKeyFilter: "leaves out NULL keys",
    ops.TableSource: "latest row of each key",
    ops.JoinWindowStore: "keeps rows",
    ops.StreamStreamJoin: "looks for partners",
    ops.StreamTableJoin: "looks for partners",
    ops.TableTableJoin: "looks for partners",
    ops.TableJoinMerge: "joined rows",
    ops.SubscriptionSend: "asks for partners",
    ops.SubscriptionReceive: "keeps who asks",
    ops.SubscriptionJoin: "answers",
    ops.ForeignTableJoin: "answers",
    ops.ResponseJoin: "joined rows",
    ops.TableToStream: "changes",
    **dict.fromkeys(_AGGREGATES, "aggregate"),
}


@dataclass(frozen=True)
class NodeText:
    """SQL text of a node, for readers who know the statement and not the topology."""

    sql: str
    """The clause that it carries out, as it was written."""
    role: str
    """Its part in that; empty where topics and figures say it."""


def node_texts(query: PersistentQuery) -> dict[str, NodeText]:
    """Returns the text of every node, by name."""
    builder = RecordingBuilder()
    build(query.plan, builder)
    texts = _Texts(query)
    return {name: texts.of(node, builder.steps.get(name)) for name, node in query.topology.nodes.items()}


class _Texts:
    def __init__(self, query: PersistentQuery) -> None:
        self._statement = query.statement
        self._plan = query.plan

    def of(self, node: Node, step: Step | None) -> NodeText:
        if step is None:
            return self._writing(node)
        sql = _clause(step, self._statement.query)
        if not isinstance(node, ProcessorNode):
            return NodeText(sql, "")
        if isinstance(step, GroupedAggregate) and isinstance(node.operation, _AGGREGATES):
            sql = " ".join(filter(None, (self._statement.query.written.window, sql)))
        return NodeText(sql, _role(node, step))

    def _writing(self, node: Node) -> NodeText:
        """Returns the text of a node behind all steps."""
        statement = self._statement
        if isinstance(node, SinkNode):
            if isinstance(statement, CreateAsSelect):
                return NodeText(f"CREATE {statement.kind} {name_text(statement.name)}", "")
            return NodeText(f"INSERT INTO {name_text(statement.target)}", "")
        if isinstance(node, ProcessorNode) and isinstance(node.operation, ops.TableToStream):
            return NodeText(
                "EMIT CHANGES" if statement.query.emit is None else f"EMIT {statement.query.emit}", "changes"
            )
        column = "" if self._plan.time is None else self._plan.time.name
        return NodeText(f"WITH (TIMESTAMP='{column}')", "time of the row")


def _role(node: ProcessorNode, step: Step) -> str:
    operation = node.operation
    if isinstance(step, Read) and isinstance(operation, ops.UserProcessor | ops.MapValues):
        return f"adds {', '.join(column.name for column in step.extras)}"
    if isinstance(step, GroupedAggregate) and isinstance(operation, ops.TableMapValues):
        return "results"
    if isinstance(step, Expire):
        return "rows that expire"
    if isinstance(operation, ops.PassThrough) and len(node.parents) > 1:
        return "joined rows"
    return _ROLES.get(type(operation), "")


@singledispatch
def _clause(step: Step, query: Query) -> str:
    message = f"no clause for {type(step).__name__}"
    raise NotImplementedError(message)


@_clause.register
def _(step: Read, query: Query) -> str:
    sources = (query.source, *(join.source for join in query.joins))
    return next(f"FROM {source.written}" for source in sources if source.alias == step.source)


@_clause.register
def _(step: Filter, query: Query) -> str:
    return query.written.having if step.name == "Having" else query.written.where


@_clause.register
def _(_step: Project, query: Query) -> str:
    return query.written.select


@_clause.register
def _(_step: FlatMap, query: Query) -> str:
    return query.written.select


@_clause.register
def _(step: Expire, query: Query) -> str:
    return f"WITH (TTL='{duration_text(step.lifetime.duration)}')"


@_clause.register
def _(_step: DropRepeated, query: Query) -> str:
    return query.written.distinct


@_clause.register
def _(step: SelectKey, query: Query) -> str:
    if step.name.endswith("SourceKeyed"):
        return _join_of(step.name, query).written_on
    # The key can also change because the SELECT clause has its columns in another order, or not all of them.
    return query.written.partition_by or query.written.select


@_clause.register
def _(_step: GroupedAggregate, query: Query) -> str:
    return query.written.group_by


@_clause.register
def _(step: JoinRows, query: Query) -> str:
    return _join_of(step.name, query).written


@_clause.register
def _(step: JoinForeignKey, query: Query) -> str:
    return _join_of(step.name, query).written


def _join_of(name: str, query: Query) -> Join:
    """Returns the clause of a step; each join behind it has put ``L_`` in front of its name."""
    return query.joins[-1 - name.count("L_")]

"""Pull queries: ``SELECT`` without ``EMIT``, answered from the views of tables, or by reading a stream once.

Start with ``table_query``; ``key_access`` picks the keys that the condition selects, ``table_rows`` reads their rows.
"""

from __future__ import annotations

from collections.abc import Iterator
from uuid import uuid4

from headrace.sql.errors import locating_errors
from headrace.sql.reading.pull.clause_rules import check_clauses
from headrace.sql.reading.pull.stream_query import StreamQuery
from headrace.sql.reading.pull.table_query import TableQuery
from headrace.sql.reading.results import PullResult, QueryContext, ResultRow
from headrace.sql.syntax.statements import SelectQuery


def pull(statement: SelectQuery, context: QueryContext) -> PullResult:
    """Carries out a query as of now; raises ``SqlStatementError`` if it cannot be."""
    query = statement.query
    with locating_errors(statement.text, statement.position):
        sources = [context.catalog.source(one.name) for one in (query.source, *(join.source for join in query.joins))]
        check_clauses(statement, sources, context.settings)
        query_id = f"query_{uuid4().hex}"
        if sources[0].is_table:
            of_table = TableQuery(query, context)
            return PullResult(query_id, of_table.schema, of_table.rows())
        of_stream = StreamQuery(query, context)
        result = PullResult(query_id, of_stream.schema, iter(()))

        def rows_then_message() -> Iterator[ResultRow]:
            yield from of_stream.rows()
            result.final_message = of_stream.final_message

        result.rows = rows_then_message()
        return result


__all__ = ["pull"]

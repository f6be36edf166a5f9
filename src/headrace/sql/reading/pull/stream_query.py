"""Pull queries on streams: the topic is read once, from its beginning to where it ends now."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Any

from headrace.sql.reading.pull.clause_rules import check_no_aggregates
from headrace.sql.reading.pull.prepared import checked
from headrace.sql.reading.record_rows import Unreadable
from headrace.sql.reading.results import QueryContext, ResultRow
from headrace.sql.reading.row_query import RowQuery
from headrace.sql.syntax.statements import Query

LIMIT_REACHED = "Limit Reached"
COMPLETED = "Query Completed"


class StreamQuery:
    """A query on a stream. ``final_message`` is known when its rows have ended."""

    def __init__(self, query: Query, context: QueryContext) -> None:
        check_no_aggregates(query, context.functions)
        self._query = RowQuery(query, context)
        self.schema = checked(self._query.schema)
        self._limit = query.limit
        self._log = context.log
        self._topic = self._query.source.definition.topic
        partitions = [(self._topic, each) for each in range(self._log.partitions_of(self._topic))]
        self._begins = self._log.begin_offsets(partitions)
        self._ends = self._log.end_offsets(partitions)
        self.final_message = COMPLETED

    def rows(self) -> Iterator[ResultRow]:
        """Yields the rows of the result."""
        count = 0
        for columns in islice(self._results(), self._limit):
            count += 1
            yield ResultRow(columns)
        if count == self._limit:
            self.final_message = LIMIT_REACHED

    def _results(self) -> Iterator[list[Any]]:
        read, passes, records = self._log.read, self._query.predicate, self._query.records()
        for (topic, partition), end in sorted(self._ends.items()):
            start = self._begins[topic, partition]
            while start < end:
                found = read(topic, partition, start, end)
                if not found:
                    break
                for offset, time_ms, key, value, headers in found:
                    try:
                        row = records.row(partition, offset, time_ms, key, value, headers)
                    except Unreadable:
                        continue
                    if row is not None and (passes is None or passes(row)):
                        yield from self._query.results(row)
                start = found[-1][0] + 1

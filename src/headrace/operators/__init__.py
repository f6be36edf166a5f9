"""One small operator per operation: ``operator(operation, node)`` returns the function that runs it.

The modules register themselves: importing this package makes every operation runnable.

| module | |
|---|---|
| ``stateless`` | filter, map, flat map, peek, branch, merge |
| ``stream_table_join`` | inner join and left join of a stream with a table, or with a global table |
| ``stream_stream_join`` | inner, left and outer join of two streams in a window; self-join |
| ``table_table_join``, ``foreign_key_join`` | joins of two tables: on their key, on a foreign key |
| ``aggregate``, ``window_aggregate``, ``session_aggregate`` | aggregations of a stream: by key, window, session |
| ``sliding_aggregate``, ``custom_window_aggregate`` | by sliding windows, by windows of the user's |
| ``table_aggregate``, ``table`` | aggregations of a grouped table; tables, and what is derived from them |
| ``suppress``, ``emit``, ``distinct`` | results held back; windows on close; deduplication |
| ``map_batches``, ``process`` | functions over many records; processors of users |
| ``base``, ``aggregate_rows``, ``joiners``, ``mapper_results`` | what operators share |
"""

from headrace.operators import (
    aggregate,
    distinct,
    foreign_key_join,
    map_batches,
    process,
    session_aggregate,
    sliding_aggregate,
    stateless,
    stream_stream_join,
    stream_table_join,
    suppress,
    table,
    table_aggregate,
    table_table_join,
    window_aggregate,
)
from headrace.operators.base import Cell, Edge, Node, TaskClock, ValueGetter, getter, operator

__all__ = [
    "Cell",
    "Edge",
    "Node",
    "TaskClock",
    "ValueGetter",
    "aggregate",
    "distinct",
    "foreign_key_join",
    "getter",
    "map_batches",
    "operator",
    "process",
    "session_aggregate",
    "sliding_aggregate",
    "stateless",
    "stream_stream_join",
    "stream_table_join",
    "suppress",
    "table",
    "table_aggregate",
    "table_table_join",
    "window_aggregate",
]

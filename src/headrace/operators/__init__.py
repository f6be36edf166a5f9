"""One small operator per operation: ``operator(operation, node)`` returns the function that runs it.

The modules register themselves: importing this package makes every operation runnable.
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

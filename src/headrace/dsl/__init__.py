"""The DSL: streams and tables, whose calls add nodes to a topology.

Start with ``builder`` (`StreamsBuilder`), ``kstream`` and ``ktable``: the immutable handles that programs are written
with. Their methods add logical nodes (``graph``) to the builder's ``draft``, and record there what later calls ask of
earlier nodes (``requests``). `StreamsBuilder.build` applies ``rewrites`` to the graph and writes it as a topology
(``topology_writer``). All modules reach each other's classes through the module, because streams make tables and
tables streams.

| module | |
|---|---|
| ``builder``, ``kstream``, ``ktable``, ``global_ktable`` | streams and tables |
| ``grouped_stream``, ``grouped_table``, ``cogrouped``, ``windowed_stream`` | aggregations |
| ``stream_joins``, ``windowed_join``, ``table_joins``, ``foreign_key_join`` | joins of streams and tables |
| ``branched``, ``suppress``, ``repartition`` | splitting, holding back, repartitioning |
| ``options``, ``materialized``, ``suppressed`` | options of calls |
| ``handle``, ``draft``, ``requests``, ``stores``, ``naming`` | what handles share: nodes, requests, stores, names |
| ``argument_checks``, ``hints``, ``functions`` | checks, hints, and functions that pickle |
| ``graph``, ``topology_writer`` | the logical graph, and the topology that is written from it |
"""

from headrace.dsl.branched import BranchedKStream
from headrace.dsl.builder import StreamsBuilder
from headrace.dsl.cogrouped import (
    CogroupedKStream,
    SessionWindowedCogroupedKStream,
    TimeWindowedCogroupedKStream,
)
from headrace.dsl.global_ktable import GlobalKTable
from headrace.dsl.grouped_stream import KGroupedStream
from headrace.dsl.grouped_table import KGroupedTable
from headrace.dsl.kstream import KStream
from headrace.dsl.ktable import KTable
from headrace.dsl.materialized import Materialized, StreamJoined
from headrace.dsl.naming import Named
from headrace.dsl.options import (
    Branched,
    Consumed,
    Grouped,
    Joined,
    Printed,
    Produced,
    Repartitioned,
    TableJoined,
)
from headrace.dsl.suppressed import BufferConfig, Suppressed
from headrace.dsl.windowed_stream import SessionWindowedKStream, TimeWindowedKStream

__all__ = [
    "Branched",
    "BranchedKStream",
    "BufferConfig",
    "CogroupedKStream",
    "Consumed",
    "GlobalKTable",
    "Grouped",
    "Joined",
    "KGroupedStream",
    "KGroupedTable",
    "KStream",
    "KTable",
    "Materialized",
    "Named",
    "Printed",
    "Produced",
    "Repartitioned",
    "SessionWindowedCogroupedKStream",
    "SessionWindowedKStream",
    "StreamJoined",
    "StreamsBuilder",
    "Suppressed",
    "TableJoined",
    "TimeWindowedCogroupedKStream",
    "TimeWindowedKStream",
]

"""Interactive queries: views of stores, kept from their changelogs, and the questions that can be put to them.

Start with ``views`` (what a process keeps and answers), then ``tail`` (how it follows the log) and ``replica`` (what
lies on its disk). ``queries``, ``requests``, ``results``, ``position`` and ``types`` are what users write;
``node`` and ``roster`` share the partitions among processes.
"""

from headrace.query.metadata import HostInfo, KeyQueryMetadata, LagInfo, StreamsMetadata
from headrace.query.position import Position, PositionBound
from headrace.query.queries import (
    KeyQuery,
    MultiVersionedKeyQuery,
    Query,
    RangeQuery,
    ResultOrder,
    TimestampedKeyQuery,
    TimestampedRangeQuery,
    VersionedKeyQuery,
    WindowKeyQuery,
    WindowRangeQuery,
)
from headrace.query.requests import InStore, StateQueryRequest
from headrace.query.results import FailureReason, QueryResult, StateQueryResult
from headrace.query.types import QueryableStoreType, QueryableStoreTypes, StoreQueryParameters

__all__ = [
    "FailureReason",
    "HostInfo",
    "InStore",
    "KeyQuery",
    "KeyQueryMetadata",
    "LagInfo",
    "MultiVersionedKeyQuery",
    "Position",
    "PositionBound",
    "Query",
    "QueryResult",
    "QueryableStoreType",
    "QueryableStoreTypes",
    "RangeQuery",
    "ResultOrder",
    "StateQueryRequest",
    "StateQueryResult",
    "StoreQueryParameters",
    "StreamsMetadata",
    "TimestampedKeyQuery",
    "TimestampedRangeQuery",
    "VersionedKeyQuery",
    "WindowKeyQuery",
    "WindowRangeQuery",
]

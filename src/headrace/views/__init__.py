"""Interactive queries: views of stores, kept from their changelogs, and the questions that can be put to them.

| module | |
|---|---|
| ``queries``, ``requests``, ``results``, ``position``, ``queryable_store_types`` | what users write, and get |
| ``views``, ``execution``, ``composite_stores``, ``store_changes`` | what a process keeps and answers |
| ``changelog_follower``, ``global_stores``, ``input_progress`` | how it follows the log |
| ``replica``, ``viewed_stores`` | what lies on its disk, and of which stores |
| ``view_node``, ``membership``, ``peer_authentication``, ``metadata`` | processes that share the partitions |

``http`` serves all of it.
"""

from headrace.views.metadata import HostInfo, KeyQueryMetadata, LagInfo, StreamsMetadata
from headrace.views.position import Position, PositionBound
from headrace.views.queries import (
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
from headrace.views.queryable_store_types import QueryableStoreType, QueryableStoreTypes, StoreQueryParameters
from headrace.views.requests import InStore, StateQueryRequest
from headrace.views.results import FailureReason, QueryResult, StateQueryResult

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

"""A query with everything around it: which store and partitions, how fresh, how long to wait."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Generic, TypeVar

from headrace.arguments.values import text, whole_number
from headrace.views.position import PositionBound
from headrace.views.queries import Query

R = TypeVar("R")

_UNBOUNDED = PositionBound.unbounded()


@dataclass(frozen=True)
class InStore:
    """The first half of a request: the store."""

    name: str

    def with_query(self, query: Query[R]) -> StateQueryRequest[R]:
        """Returns the request of this query, to all partitions and without a bound."""
        if not isinstance(query, Query):
            message = f"store '{self.name}': with_query() takes a query such as KeyQuery.with_key(…), got {query!r}"
            raise TypeError(message)
        return StateQueryRequest(self.name, query)


@dataclass(frozen=True)
class StateQueryRequest(Generic[R]):
    """A query to a store. It is a value: each ``with_…`` returns another one.

    >>> from headrace.views import KeyQuery, StateQueryRequest
    >>> request = StateQueryRequest.in_store("counts").with_query(KeyQuery.with_key("alice")).with_partitions([0])
    >>> request.store_name, request.partitions, request.is_all_partitions
    ('counts', frozenset({0}), False)
    """

    store_name: str
    query: Query[R]
    position_bound: PositionBound = _UNBOUNDED
    """How far the application must have come in what the answer shows."""
    partitions: frozenset[int] = frozenset()
    """The partitions to ask; none are all that are here."""
    is_all_partitions: bool = True
    execution_info_enabled: bool = False
    """Whether results have execution info: the steps, and how long they took."""
    is_require_active: bool = False
    """Whether only active partitions may answer; then a bound is ignored, as Kafka Streams does."""
    wait: timedelta = timedelta(0)
    """How long to wait for the bound."""

    @classmethod
    def in_store(cls, name: str) -> InStore:
        """Begins a request to a store."""
        return InStore(text(name, "the name of a store"))

    def with_position_bound(self, bound: PositionBound) -> StateQueryRequest[R]:
        """Demands that the answer has seen a position, such as that of one's own write."""
        return replace(self, position_bound=bound)

    def with_partitions(self, partitions: Iterable[int]) -> StateQueryRequest[R]:
        """Asks these partitions only; those that are not here fail."""
        wanted = frozenset(whole_number(each, f"store '{self.store_name}': a partition") for each in partitions)
        return replace(self, partitions=wanted, is_all_partitions=False)

    def with_all_partitions(self) -> StateQueryRequest[R]:
        """Asks all partitions that are here."""
        return replace(self, partitions=frozenset(), is_all_partitions=True)

    def enable_execution_info(self) -> StateQueryRequest[R]:
        """Asks for lines that say how the answer was made."""
        return replace(self, execution_info_enabled=True)

    def require_active(self) -> StateQueryRequest[R]:
        """Takes answers of active partitions only."""
        return replace(self, is_require_active=True)

    def waiting(self, timeout: timedelta) -> StateQueryRequest[R]:
        """Waits for the bound for so long, instead of failing at once; Kafka Streams leaves this to its users."""
        return replace(self, wait=timeout)

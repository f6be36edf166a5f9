"""Results of queries: per partition a value or a failure reason, and the position of the answer."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Generic, TypeVar

from headrace.errors import IllegalStateError
from headrace.record import KeyValue
from headrace.state.stores.iterators import StoreIterator
from headrace.tabular import Row, columns_of, to_data_frame, to_html
from headrace.views.position import Position, PositionBound
from headrace.views.queries import AnyQuery

R = TypeVar("R")


class FailureReason(Enum):
    """Reason why a partition has no result."""

    UNKNOWN_QUERY_TYPE = "UNKNOWN_QUERY_TYPE"
    """The store cannot answer such a query."""
    NOT_ACTIVE = "NOT_ACTIVE"
    """The partition is here as a standby, or still catching up, and the active one was asked for."""
    NOT_UP_TO_BOUND = "NOT_UP_TO_BOUND"
    """The view has not come as far as the query demands: ask again, or wait."""
    NOT_PRESENT = "NOT_PRESENT"
    """The partition is on another instance."""
    DOES_NOT_EXIST = "DOES_NOT_EXIST"
    """The store does not have so many partitions."""
    STORE_EXCEPTION = "STORE_EXCEPTION"
    """Reading the store failed."""


@dataclass
class QueryResult(Generic[R]):
    """The answer of one partition.

    >>> QueryResult.for_result(3).result
    3
    >>> QueryResult.for_failure(FailureReason.NOT_ACTIVE, "it is a standby").failure_reason
    <FailureReason.NOT_ACTIVE: 'NOT_ACTIVE'>
    """

    _result: R | None = None
    _reason: FailureReason | None = None
    _message: str = ""
    position: Position = field(default_factory=Position)
    """Input offsets of the application that the answer reflects."""
    execution_info: list[str] = field(default_factory=list)
    """Who did what, and how long it took, if the request asked for it."""

    @classmethod
    def for_result(cls, result: R) -> QueryResult[R]:
        """Returns a success."""
        return cls(result)

    @classmethod
    def for_failure(cls, reason: FailureReason, message: str) -> QueryResult[R]:
        """Returns a failure."""
        return cls(None, reason, message)

    @classmethod
    def for_unknown_query_type(cls, query: AnyQuery, store: Any) -> QueryResult[R]:
        """Returns the failure of a store that cannot answer such a query."""
        kind = str(store.kind).replace("_", " ")
        message = f"store '{store.name}' is a {kind} store and does not answer a {type(query).__name__}"
        return cls(None, FailureReason.UNKNOWN_QUERY_TYPE, message)

    @classmethod
    def not_up_to_bound(cls, position: Position, bound: PositionBound, partition: int) -> QueryResult[R]:
        """Returns the failure of a view that is behind the position bound."""
        missing = Position(position.missing(bound.position))
        message = f"partition {partition} is at {position} and has not reached {missing}; ask again, or wait for it"
        return cls(None, FailureReason.NOT_UP_TO_BOUND, message, position)

    @property
    def is_success(self) -> bool:
        """Whether there is a result."""
        return self._reason is None

    @property
    def is_failure(self) -> bool:
        """Whether there is none."""
        return self._reason is not None

    @property
    def result(self) -> R:
        """The result; of a failure there is none, and asking for it raises."""
        if self._reason is not None:
            message = f"the query failed, so it has no result: {self._reason.name}: {self._message}"
            raise IllegalStateError(message)
        return self._result  # type: ignore[return-value]  # None is a result, too: there is no such key

    @property
    def failure_reason(self) -> FailureReason:
        """Why it failed; raises for a success."""
        if self._reason is None:
            message = "the query did not fail, so it has no failure reason; look at its result"
            raise IllegalStateError(message)
        return self._reason

    @property
    def failure_message(self) -> str:
        """The reason as a sentence; raises for a success."""
        return f"{self.failure_reason.name}: {self._message}"

    def add_execution_info(self, message: str) -> None:
        """Adds a line of execution info."""
        self.execution_info.append(message)

    def set_position(self, position: Position) -> None:
        """Sets the position of the view that answered."""
        self.position = position


@dataclass
class StateQueryResult(Generic[R]):
    """The answers of all partitions.

    >>> answers = StateQueryResult()
    >>> answers.add_result(0, QueryResult.for_result(None))
    >>> answers.add_result(1, QueryResult.for_result(5))
    >>> answers.only_partition_result.result
    5
    """

    partition_results: dict[int, QueryResult[R]] = field(default_factory=dict)
    """By partition; with all partitions requested, those that are not here are missing."""
    global_result: QueryResult[R] | None = None
    """The answer of a global store, which has no partitions."""

    def add_result(self, partition: int, result: QueryResult[R]) -> None:
        """Adds the answer of a partition."""
        self.partition_results[partition] = result

    def set_global_result(self, result: QueryResult[R]) -> None:
        """Sets the answer of a global store."""
        self.global_result = result

    @property
    def only_partition_result(self) -> QueryResult[R] | None:
        """The one answer that is a failure or not None; None if there is none; raises if there are several."""
        found = [each for each in self.partition_results.values() if each.is_failure or each.result is not None]
        if len(found) > 1:
            partitions = [each for each, result in self.partition_results.items() if result in found]
            message = (
                f"partitions {partitions} have an answer, and the only one was asked for; "
                "look at partition_results, or request one partition"
            )
            raise IllegalStateError(message)
        return found[0] if found else None

    @property
    def position(self) -> Position:
        """The positions of all answers, merged."""
        merged = Position() if self.global_result is None else self.global_result.position
        for each in self.partition_results.values():
            merged = merged.merge(each.position)
        return merged

    # Any: pandas is optional.
    def to_pandas(self) -> Any:
        """Returns the rows or values of all partitions as a data frame of pandas; rows can be read only once.

        >>> answers = StateQueryResult()
        >>> answers.add_result(0, QueryResult.for_result(5))
        >>> answers.to_pandas()
           partition  value
        0          0      5
        """
        rows: list[Row] = []
        partitions: list[int | None] = []
        for partition, answer in self._answers():
            found = list(_rows_of(answer.result))
            rows += found
            partitions += [partition] * len(found)
        columns = columns_of(rows)
        if all(row.key is None for row in rows):
            columns.pop("key", None)
        return to_data_frame({**self._column(partitions), **columns})

    def _repr_html_(self) -> str:
        """Shows the answer of each partition in a notebook; rows that can be read only once are not read for it."""
        answers = list(self._answers())
        shown = [
            answer.failure_message if answer.is_failure else _format_result(answer.result) for _, answer in answers
        ]
        return to_html({**self._column([partition for partition, _ in answers]), "result": shown})

    def _answers(self) -> Iterator[tuple[int | None, QueryResult[R]]]:
        yield from sorted(self.partition_results.items())
        if self.global_result is not None:
            yield None, self.global_result

    def _column(self, partitions: list[int | None]) -> dict[str, list[Any]]:
        """Returns the column of partitions; a global store has none."""
        return {"partition": partitions} if self.partition_results else {}


def _rows_of(result: Any) -> Iterator[Row]:
    """Yields the rows of a result: one, or those of an iterator."""
    if not isinstance(result, StoreIterator):
        if result is not None:
            yield Row(None, result)
        return
    for each in result:
        yield Row(*each) if isinstance(each, KeyValue) else Row(None, each)


def _format_result(result: Any) -> str:
    return "rows: list(…), or to_pandas()" if isinstance(result, StoreIterator) else str(result)

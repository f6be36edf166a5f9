"""Calls that wait for a batch to be complete, with the record each belongs to; see ``runtime.stages``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from headrace.operators.base import BatchRecord, Edge
from headrace.record import FixedKeyRecord
from headrace.record import Headers as UserHeaders
from headrace.topics.log import Headers, Raw

if TYPE_CHECKING:
    from headrace.runtime.task_state import TaskState

MOST_CALLS = 10_000
"""Calls besides those of batches that may wait at once: where few records are for batches, these end early."""

# Where a record was read: origin, offset, origin and bytes of the record that was read last, stream time.
_Place: TypeAlias = tuple[tuple[str, int] | None, int, tuple[str, int] | None, Raw, int]
_Call: TypeAlias = tuple[Edge, tuple[Any, ...], _Place]


class WaitingCalls:
    """The calls from all earlier stages into one stage of a task, in their order."""

    __slots__ = ("_batches", "_calls", "_others", "_running", "_state")

    def __init__(self, state: TaskState) -> None:
        self._state = state
        self._calls: list[_Call] = []
        self._others = 0
        self._batches: list[_Batch] = []
        self._running = False

    def deferring(self, edge: Edge) -> Edge:
        """Returns an edge that calls another one when its turn has come."""

        def defer(*arguments: Any) -> None:
            self._add(edge, arguments)
            self._others += 1
            if self._others >= MOST_CALLS:
                self.run()

        return defer

    def gathering(
        self, answer: Callable[[list[BatchRecord]], Sequence[Any]], max_records: int, forward: Edge, fail: Edge
    ) -> Edge:
        """Returns the edge of a node that takes batches; the records of a failed one go to ``fail``, with its error."""
        batch = _Batch(answer, forward, fail)
        self._batches.append(batch)
        waiting = batch.waiting

        def gather(key: Any, value: Any, timestamp_ms: int, headers: Headers) -> None:
            waiting.append(len(self._calls))
            self._add(forward, (key, value, timestamp_ms, headers))
            if len(waiting) >= max_records:
                self.run()

        return gather

    def _add(self, edge: Edge, arguments: tuple[Any, ...]) -> None:
        state = self._state
        place = (state.origin, state.offset, state.raw_origin, state.raw, state.stream_time_ms)
        self._calls.append((edge, arguments, place))

    def run(self) -> None:
        """Completes the batches and makes all calls that wait, each as if its record were the one at hand."""
        if self._running or not self._calls:
            return
        state, calls = self._state, self._calls
        at_hand = (state.origin, state.offset, state.raw_origin, state.raw, state.stream_time_ms)
        self._calls, self._others, self._running = [], 0, True
        try:
            for batch in self._batches:
                batch.complete(calls)
            punctuations, before = state.stream_punctuations, calls[0][2][3]
            for edge, arguments, place in calls:
                if place[3] is not before:
                    before = place[3]
                    # One that a processor has scheduled just now may be due between two records.
                    if punctuations.next_ms <= state.stream_time_ms:
                        state.punctuate_stream_time()
                state.origin, state.offset, state.raw_origin, state.raw, state.stream_time_ms = place
                edge(*arguments)
        finally:
            self._running = False
            state.origin, state.offset, state.raw_origin, state.raw, state.stream_time_ms = at_hand


class _Batch:
    """The records of one node that wait among the calls."""

    __slots__ = ("_answer", "_fail", "_forward", "waiting")

    def __init__(self, answer: Callable[[list[BatchRecord]], Sequence[Any]], forward: Edge, fail: Edge) -> None:
        self._answer = answer
        self._forward = forward
        self._fail = fail
        self.waiting: list[int] = []
        """Where they are among the calls."""

    def complete(self, calls: list[_Call]) -> None:
        """Gives every record its value, or the error of the whole batch."""
        waiting = self.waiting.copy()
        self.waiting.clear()
        if not waiting:
            return
        given = [calls[index][1] for index in waiting]
        try:
            values = self._answer([_record(*arguments) for arguments in given])
        except Exception as error:
            for index, arguments in zip(waiting, given, strict=True):
                calls[index] = (self._fail, (error, *arguments), calls[index][2])
            return
        for index, (key, _, timestamp_ms, headers), value in zip(waiting, given, values, strict=True):
            calls[index] = (self._forward, (key, value, timestamp_ms, headers), calls[index][2])


def _record(key: Any, value: Any, timestamp_ms: int, headers: Headers) -> BatchRecord:
    return FixedKeyRecord(key, value, timestamp_ms, UserHeaders(headers))

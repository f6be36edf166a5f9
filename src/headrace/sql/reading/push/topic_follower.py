"""Topic follower: rows from records as they arrive, until it is closed."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import timedelta

from headrace.errors import OffsetOutOfRangeError, UnknownTopicError
from headrace.sql.reading.results import ResultRow
from headrace.sql.types.schema import Schema
from headrace.topics.log import Offsets, Raw, ReadableLog

LIMIT_REACHED = "Limit Reached"
COMPLETED = "Query Completed"
_WAIT = timedelta(milliseconds=250)
_AT_ONCE = 1_000
_RESET = "auto.offset.reset"

RowMaker = Callable[[int, Raw], Iterable[ResultRow]]
"""Makes rows of a record: partition, record."""


def starts_at_latest(settings: Mapping[str, object]) -> bool:
    """Whether a query sees only what comes after it, which is the default.

    >>> starts_at_latest({}), starts_at_latest({"ksql.streams.auto.offset.reset": "earliest"})
    (True, False)
    """
    found = settings.get(_RESET, settings.get(f"ksql.streams.{_RESET}", "latest"))
    return str(found).lower() == "latest"


def first_offsets(log: ReadableLog, topic: str, *, latest: bool) -> Offsets:
    """Returns where a query begins to read."""
    partitions = [(topic, each) for each in range(log.partitions_of(topic))]
    return log.end_offsets(partitions) if latest else log.begin_offsets(partitions)


class FollowedTopic:
    """A push query over the records of one topic; see ``headrace.sql.reading.results.PushQuery``.

    Where it begins is settled when it is made. ``at_close`` is called once, when it ends for whatever reason;
    ``look`` whenever nothing comes: it may raise if nothing will.
    """

    def __init__(
        self,
        query_id: str,
        schema: Schema,
        log: ReadableLog,
        positions: Offsets,
        make: RowMaker,
        *,
        limit: int | None = None,
        at_close: Callable[[], None] | None = None,
        look: Callable[[], None] | None = None,
    ) -> None:
        self.id = query_id
        self.schema = schema
        self.final_message: str | None = None
        self._log = log
        self._positions = dict(positions)
        self._make = make
        self._limit = limit
        self._at_close = at_close
        self._look = look
        self._closing = threading.Event()
        self._lock = threading.Lock()
        self.rows: Iterator[ResultRow] = self._rows()

    def _rows(self) -> Iterator[ResultRow]:
        left = self._limit
        try:
            if left == 0:
                self.final_message = LIMIT_REACHED
                return
            for row in self._endless():
                yield row
                if left is not None:
                    left -= 1
                    if left == 0:
                        self.final_message = LIMIT_REACHED
                        return
        except UnknownTopicError:
            # The stream or table was dropped with its topic.
            self.final_message = COMPLETED
        finally:
            self.close()

    def _endless(self) -> Iterator[ResultRow]:
        while not self._closing.is_set():
            moved = False
            for target, start in list(self._positions.items()):
                found = self._read(target, start)
                for raw in found:
                    if self._closing.is_set():
                        return
                    yield from self._make(target[1], raw)
                if found:
                    self._positions[target] = found[-1][0] + 1
                    moved = True
            if not moved:
                if self._look is not None:
                    self._look()
                self._log.wait_for_data(self._positions, _WAIT)

    def _read(self, target: tuple[str, int], start: int) -> list[Raw]:
        try:
            return self._log.read(*target, start, max_records=_AT_ONCE)
        except OffsetOutOfRangeError as error:
            # Retention was faster than the reader.
            self._positions[target] = error.begin
            return []

    def close(self) -> None:
        """Ends the query and returns when everything that it needed is gone; the second time it does nothing."""
        self._closing.set()
        with self._lock:
            at_close, self._at_close = self._at_close, None
            if at_close is not None:
                at_close()

"""The rows of a topic by key: what the topic says last of each key, and nothing that was not committed."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from headrace.config import StreamsConfig
from headrace.serdes import Serdes
from headrace.sql.reading.tables.carried_headers import carry_headers
from headrace.sql.reading.tables.expiry import Expiry, LatestTimes, RecordTime
from headrace.state import Stores
from headrace.state.engines.changes import Changes
from headrace.state.rows.codec import timestamp_of
from headrace.topics.log import Raw, TopicLog
from headrace.views.changelog_follower import ChangelogFollower, wall_clock_ms
from headrace.views.replica import Reader, engine_name
from headrace.views.viewed_stores import Part, ViewedStore

_ROWS = "rows"
_TIMESTAMP_BYTES = 8
_PURGED_AT_ONCE = 10_000

ViewRow = tuple[int, bytes, int, bytes]
"""Partition, key, timestamp, value."""


class TableView:
    """A replica of one topic. Any thread may read; whoever needs the newest rows calls ``catch_up`` before."""

    def __init__(
        self,
        log: TopicLog,
        topic: str,
        directory: Path,
        expiry: Expiry | None = None,
        record_time: RecordTime | None = None,
        clock: Callable[[], int] = wall_clock_ms,
        *,
        with_headers: bool = False,
    ) -> None:
        self.topic = topic
        self._expiry = expiry
        self._clock = clock
        self._with_headers = with_headers
        self._times = None if expiry is None else LatestTimes(expiry, record_time)
        supplier = Stores.persistent_timestamped_key_value_store(_ROWS)
        builder = Stores.timestamped_key_value_store_builder(supplier, Serdes.bytes(), Serdes.bytes())
        stores = {_ROWS: ViewedStore(_ROWS, builder, topic, 0)}
        self._tail = ChangelogFollower(None, StreamsConfig(), log, stores, directory, adapt=self._adapt)
        self.partitions = self._tail.partitions[topic]
        self._lock = threading.Lock()
        self._is_closed = False
        self._tail.keep(self._parts)
        self._purged: dict[int, int] = {}
        self._note_times(log)

    @property
    def _parts(self) -> list[Part]:
        return [(_ROWS, partition) for partition in range(self.partitions)]

    def _adapt(self, partition: int, records: list[Raw]) -> list[Raw]:
        if self._with_headers:
            records = carry_headers(records)
        return records if self._times is None else self._times.note_all(partition, records)

    def catch_up(self) -> None:
        """Reads the topic to its end."""
        with self._lock:
            while not self._is_closed and self._tail.step():
                pass
            if not self._is_closed:
                self._purge()

    def _note_times(self, log: TopicLog) -> None:
        """Notes the latest times of what was read before."""
        times, expiry = self._times, self._expiry
        if times is None or expiry is None or expiry.clock == "wall_clock":
            return
        for part in self._parts:
            for key, data in self._tail.replica.engine(part).scan(None, None, reverse=False):
                times.note(part[1], expiry.time_of(key, timestamp_of(data)))
        if expiry.of == "rows" and expiry.column is None:
            # Deletions have moved the clock, too.
            begins = log.begin_offsets(self._tail.targets)
            for (topic, partition), read in self._tail.targets.items():
                found = log.latest_time(topic, partition, begins[topic, partition], read)
                times.note(partition, -1 if found is None else found)

    def _horizons(self) -> dict[int, int]:
        """Returns the time up to which rows and windows are gone, by partition."""
        if self._times is None or self._expiry is None:
            return {}
        retention_ms = self._expiry.retention_ms
        if self._expiry.clock == "wall_clock":
            return dict.fromkeys(range(self.partitions), self._clock() - retention_ms)
        return {each: latest - retention_ms for each, latest in self._times.latest.items()}

    def _purge(self) -> None:
        """Deletes what nobody sees any more, now and then: it means looking at all rows."""
        expiry = self._expiry
        if expiry is None:
            return
        for partition, horizon in self._horizons().items():
            if horizon < 0 or horizon - self._purged.get(partition, 0) < expiry.retention_ms // 4:
                continue
            engine, name = self._tail.replica.engine((_ROWS, partition)), engine_name((_ROWS, partition))
            rows = engine.scan(None, None, reverse=False)
            gone = [key for key, data in rows if expiry.time_of(key, timestamp_of(data)) <= horizon]
            for start in range(0, len(gone), _PURGED_AT_ONCE):
                changes = Changes(rows=dict.fromkeys(gone[start : start + _PURGED_AT_ONCE]))
                self._tail.replica.apply({}, {}, extra={name: changes}, now_ms=wall_clock_ms())
            self._purged[partition] = horizon

    @contextmanager
    def reading(self) -> Iterator[TableSnapshot]:
        """Gives the rows as they are now, for as long as the context lasts."""
        with self._tail.replica.reading() as reader:
            yield TableSnapshot(reader, self.partitions, self._expiry, self._horizons())

    def close(self) -> None:
        with self._lock:
            if not self._is_closed:
                self._is_closed = True
                self._tail.close()


class TableSnapshot:
    """The rows of a view at one moment, partition by partition in the order of their key's bytes."""

    def __init__(
        self, reader: Reader, partitions: int, expiry: Expiry | None = None, horizons: Mapping[int, int] | None = None
    ) -> None:
        self.partitions = partitions
        self._expiry = expiry
        self._horizons = horizons or {}
        # Any: the engines of a reader, below the stores, whose serdes would only pass bytes on.
        self._engines: list[Any] = [reader.store((_ROWS, each)).engine for each in range(partitions)]

    def get(self, partition: int, key: bytes) -> ViewRow | None:
        """Returns the row of a key, or None."""
        data: bytes | None = self._engines[partition].get(key)
        if data is None or self._is_over(partition, key, data):
            return None
        return partition, key, timestamp_of(data), data[_TIMESTAMP_BYTES:]

    def _is_over(self, partition: int, key: bytes, data: bytes) -> bool:
        if self._expiry is None:
            return False
        return self._expiry.time_of(key, timestamp_of(data)) <= self._horizons.get(partition, -1)

    def scan(self, partition: int, start: bytes | None = None, stop: bytes | None = None) -> Iterator[ViewRow]:
        """Yields the rows with start ≤ key < stop; None is an open end."""
        for key, data in self._engines[partition].scan(start, stop, reverse=False):
            if not self._is_over(partition, key, data):
                yield partition, key, timestamp_of(data), data[_TIMESTAMP_BYTES:]

    def scan_all(self, start: bytes | None = None, stop: bytes | None = None) -> Iterator[ViewRow]:
        """Yields rows of all partitions, one partition after the other."""
        for partition in range(self.partitions):
            yield from self.scan(partition, start, stop)

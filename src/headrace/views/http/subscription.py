"""A client that follows the changes of a store: what it missed, then what comes, without a gap."""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import AsyncIterator
from typing import Any

from headrace.errors import OffsetOutOfRangeError
from headrace.http.errors import RequestError, unavailable
from headrace.http.json_values import to_json
from headrace.http.limits import Limits
from headrace.views.http.change_hub import Batch, Hub, Message, Subscriber, id_of, messages_of, offsets_of
from headrace.views.http.instance import Instance
from headrace.views.store_changes import StoreChange, Subscription
from headrace.views.viewed_stores import Part
from headrace.views.views import Views
from headrace.windows import Windowed

_BEAT_SECONDS = 15.0
_MAX_RECORDS = 1000
_OBJECT_BYTES = 200
"""What a message takes besides its text."""


class SnapshotBudget:
    """The bytes of all snapshots that wait to be sent; any thread may call it."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._lock = threading.Lock()
        self.taken = 0

    def take(self, size: int) -> None:
        """Sets bytes aside; raises if there are too many."""
        with self._lock:
            if self.taken + size > self._limit:
                message = f"snapshots of {self.taken} bytes wait for their clients already; ask again, or page by page"
                raise unavailable(message, "too-many-snapshots")
            self.taken += size

    def give_back(self, size: int) -> None:
        with self._lock:
            self.taken -= size


class Follower:
    """Made for one client. ``open`` does what may be refused; ``batches`` goes on until the client or we leave."""

    def __init__(
        self, instance: Instance, views: Views, hub: Hub, store: str, limits: Limits, budget: SnapshotBudget
    ) -> None:
        self._instance = instance
        self._views = views
        self._hub = hub
        self._store = store
        self._limits = limits
        self._subscriber = Subscriber(limits.queued_bytes)
        self._missed: Subscription | None = None
        self._joined: dict[int, int] = {}
        self._rows: deque[Message] = deque()
        self._budget = budget
        self._reserved = 0

    @property
    def is_slow(self) -> bool:
        return self._subscriber.is_slow

    def open(self, loop: asyncio.AbstractEventLoop, *, snapshot: bool, last_id: str | None) -> None:
        """Begins to listen, then reads what lies before that; asks the log, so it is no work for the loop."""
        offsets = None if last_id is None else offsets_of(last_id, self._views.partitions_of(self._store))
        self._joined = self._hub.join(self._subscriber, loop)
        try:
            if offsets is None and snapshot:
                offsets = self._take_snapshot()
            if offsets is not None:
                self._missed = Subscription(self._views, self._instance.log, self._store, offsets)
                # Whether it is still there is known now, while the answer can still be an error.
                self._check_still_there(offsets)
        except BaseException:
            self.close()
            raise

    def _check_still_there(self, offsets: dict[int, int]) -> None:
        topic = self._views.viewed(self._store).topic
        begins = self._instance.log.begin_offsets([(topic, each) for each in offsets])
        if any(offsets[partition] < begin for (_, partition), begin in begins.items()):
            message = "changes after this position have been deleted meanwhile; begin again with snapshot=true"
            raise RequestError(410, "gone", message)

    def _take_snapshot(self) -> dict[int, int]:
        """Reads the rows that are here, and returns from where on changes are missing; elsewhere that is everything."""
        views, store = self._views, self._store
        viewed = views.viewed(store)
        topic = (viewed.topic, range(views.partitions_of(store)))
        begins = self._instance.log.begin_offsets([(topic[0], each) for each in topic[1]])
        offsets = {partition: begin for (_, partition), begin in begins.items()}
        reader, parts = views.reading_parts(store, None, stale=True)
        try:
            for part in parts:
                self._add_rows(reader.store(part), part)
            offsets |= {part[1]: state.offset for part, state in reader.state.parts.items() if part[0] == store}
        finally:
            reader.release()
        self._rows.append(Message(-1, -1, id_of(offsets), "{}"))
        return offsets

    def _add_rows(self, store: Any, part: Part) -> None:
        if store.kind == "versioned":
            message = f"store '{self._store}' is a versioned store: it has no snapshot; follow it from now on"
            raise RequestError(400, "no-snapshot", message)
        found = store.fetch_keys(None, None) if store.kind == "session" else store.all()
        try:
            for row in found:
                if len(self._rows) >= self._limits.scanned_rows:
                    message = f"the store has more than {self._limits.scanned_rows} rows; read it page by page"
                    raise RequestError(413, "too-large", message)
                made = Message(part[1], -1, "", _row(row, part[1]))
                self._reserve(_size(made))
                self._rows.append(made)
        finally:
            found.close()

    async def batches(self) -> AsyncIterator[Batch | None]:
        """Yields what there is; None now and then, to see whether the client is still there."""
        while self._rows:
            several = [self._rows.popleft() for _ in range(min(len(self._rows), _MAX_RECORDS))]
            events = b"".join(_snapshot_event(each) for each in several)
            yield Batch(tuple(several), events)
            self._give_back(sum(map(_size, several)))
        while self._missed is not None:
            missed = await asyncio.to_thread(self._read_missed)
            if missed is not None and missed.messages:
                yield missed
        while not self._subscriber.is_over:
            found = await self._subscriber.take(_BEAT_SECONDS)
            if self._subscriber.is_slow:
                return
            for batch in found:
                yield batch
            if not found:
                yield None

    def _read_missed(self) -> Batch | None:
        """Reads what lies between where the client was and where it has begun to listen."""
        missed = self._missed
        assert missed is not None, "asked for while there is some"
        before = dict(missed.offsets)
        if all(at >= self._joined[partition] for partition, at in before.items()):
            self._missed = None
            return None
        try:
            changes = missed.poll(max_records=_MAX_RECORDS)
        except OffsetOutOfRangeError:
            # The client's next attempt is told so.
            self._subscriber.end()
            self._missed = None
            return None
        if missed.offsets == before:
            # Compaction has removed the rest.
            self._missed = None
        wanted = [change for change in changes if self._is_missed(change)]
        return Batch.of(messages_of(wanted, before))

    def _is_missed(self, change: StoreChange) -> bool:
        return change.offset < self._joined[change.partition]

    def _reserve(self, size: int) -> None:
        self._budget.take(size)
        self._reserved += size

    def _give_back(self, size: int) -> None:
        # Closed meanwhile: then all of it was given back.
        size = min(size, self._reserved)
        self._reserved -= size
        self._budget.give_back(size)

    def close(self) -> None:
        """Leaves the hub, and gives the rest of the snapshot back; a second call does nothing."""
        self._hub.leave(self._subscriber)
        self._rows.clear()
        self._give_back(self._reserved)


def _size(message: Message) -> int:
    # The end of the snapshot is not one of its rows.
    return len(message.data) + _OBJECT_BYTES if message.partition >= 0 else 0


def _row(row: Any, partition: int) -> str:
    value, timestamp_ms = row.value, None
    if hasattr(value, "timestamp_ms") and hasattr(value, "value"):
        value, timestamp_ms = value.value, value.timestamp_ms
    body = {"key": row.key, "value": value, "timestamp_ms": timestamp_ms, "partition": partition}
    if isinstance(row.key, Windowed):
        window = row.key.window
        body |= {"key": row.key.key, "window": {"start_ms": window.start_ms, "end_ms": window.end_ms}}
    return to_json(body)


def name_of(message: Message) -> str:
    """Returns what kind of message it is: a row of the snapshot, its end, or a change."""
    if message.offset >= 0:
        return "change"
    return "row" if message.partition >= 0 else "snapshot-end"


def _snapshot_event(message: Message) -> bytes:
    if message.id:
        return message.event(name_of(message))
    return f"event: {name_of(message)}\ndata: {message.data}\n\n".encode()

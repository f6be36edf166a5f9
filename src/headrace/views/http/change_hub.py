"""One reader of a store's changes for any number of subscribers."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import timedelta

from headrace.http.errors import bad_request
from headrace.http.json_values import to_json
from headrace.views.store_changes import StoreChange, Subscription
from headrace.windows import Windowed

logger = logging.getLogger(__name__)

_POLL = timedelta(milliseconds=250)


@dataclass(frozen=True)
class Message:
    """A change, serialized once for all subscribers."""

    partition: int
    offset: int
    id: str
    """Resume position of a subscriber: the next offset of each partition."""
    data: str

    def event(self, name: str = "change") -> bytes:
        return f"event: {name}\nid: {self.id}\ndata: {self.data}\n\n".encode()


@dataclass(frozen=True)
class Batch:
    """Changes that were read together."""

    messages: tuple[Message, ...]
    events: bytes
    """All of them as server-sent events."""

    @classmethod
    def of(cls, messages: Iterable[Message]) -> Batch:
        several = tuple(messages)
        return cls(several, b"".join(each.event() for each in several))


def id_of(offsets: Mapping[int, int]) -> str:
    """Writes offsets in the order of partitions.

    >>> id_of({0: 41, 1: 7})
    '41.7'
    """
    return ".".join(str(offsets[each]) for each in sorted(offsets))


def offsets_of(text: str, partitions: int) -> dict[int, int]:
    """Reads what ``id_of`` has written.

    >>> offsets_of("41.7", 2)
    {0: 41, 1: 7}
    """
    parts = text.split(".")
    if len(parts) != partitions or not all(each.isascii() and each.isdigit() and len(each) < 19 for each in parts):
        message = f"Last-Event-ID '{text[:60]}' is not one of this store; leave it out to begin with what comes now"
        raise bad_request(message, "bad-event-id")
    return dict(enumerate(map(int, parts)))


def messages_of(changes: Iterable[StoreChange], offsets: dict[int, int]) -> list[Message]:
    """Writes changes; ``offsets`` are those before them, and move along."""
    messages = []
    for change in changes:
        offsets[change.partition] = change.offset + 1
        messages.append(Message(change.partition, change.offset, id_of(offsets), to_json(_body(change))))
    return messages


def _body(change: StoreChange) -> dict[str, object]:
    body: dict[str, object] = {
        "key": change.key,
        "value": change.value,
        "timestamp_ms": change.timestamp_ms,
        "partition": change.partition,
        "offset": change.offset,
    }
    if isinstance(change.key, Windowed):
        window = change.key.window
        body |= {"key": change.key.key, "window": {"start_ms": window.start_ms, "end_ms": window.end_ms}}
    return body


class Subscriber:
    """Queue of one client. It belongs to the loop that serves the client."""

    def __init__(self, limit_bytes: int) -> None:
        self._limit = limit_bytes
        self._waiting: deque[Batch] = deque()
        self._size = 0
        self._wake = asyncio.Event()
        self.is_slow = False
        """Whether more was waiting than a client may leave waiting: it is sent away."""
        self.is_over = False

    def put(self, batch: Batch) -> None:
        if self.is_slow:
            return
        self._size += len(batch.events)
        if self._size > self._limit:
            self.is_slow = True
            self._waiting.clear()
        else:
            self._waiting.append(batch)
        self._wake.set()

    def end(self) -> None:
        self.is_over = True
        self._wake.set()

    async def take(self, timeout_seconds: float) -> list[Batch]:
        """Returns new changes; an empty list after the time-out, or at the end."""
        if not self._waiting and not self.is_over and not self.is_slow:
            try:
                await asyncio.wait_for(self._wake.wait(), timeout_seconds)
            except TimeoutError:
                return []
        self._wake.clear()
        batches = list(self._waiting)
        self._waiting.clear()
        self._size = 0
        return batches


class Hub:
    """Follows one store as long as it has subscribers."""

    def __init__(self, subscribe: Callable[[], Subscription], name: str) -> None:
        self._subscribe = subscribe
        self._name = name
        self._lock = threading.Lock()
        self._members: dict[Subscriber, asyncio.AbstractEventLoop] = {}
        self._subscription: Subscription | None = None
        self._offsets: dict[int, int] = {}
        self._thread: threading.Thread | None = None
        self._closed = False

    def join(self, subscriber: Subscriber, loop: asyncio.AbstractEventLoop) -> dict[int, int]:
        """Adds a subscriber, and returns from which offsets on it will hear; may ask the log."""
        with self._lock:
            if self._closed:
                subscriber.end()
                return {}
            if self._subscription is None:
                self._subscription = self._subscribe()
                self._offsets = dict(self._subscription.offsets)
                self._thread = threading.Thread(target=self._run, name=f"headrace-changes-{self._name}", daemon=True)
                self._thread.start()
            self._members[subscriber] = loop
            return dict(self._offsets)

    def leave(self, subscriber: Subscriber) -> None:
        with self._lock:
            self._members.pop(subscriber, None)

    def _run(self) -> None:
        try:
            while self._deliver():
                pass
        except Exception as error:
            logger.warning("changes of store '%s' cannot be followed: %s", self._name, error)
        with self._lock:
            self._stop_all()

    def _deliver(self) -> bool:
        """Reads new changes and passes them to subscribers; False when there are no subscribers left."""
        subscription = self._subscription
        assert subscription is not None, "the thread is started with one"
        changes = subscription.poll(_POLL)
        with self._lock:
            if self._closed or not self._members:
                return False
            if changes:
                batch = Batch.of(messages_of(changes, self._offsets))
                self._tell(lambda subscriber: subscriber.put(batch))
            # Records without a key move the position, too.
            self._offsets = dict(subscription.offsets)
            return True

    def _tell(self, what: Callable[[Subscriber], None]) -> None:
        by_loop: dict[asyncio.AbstractEventLoop, list[Subscriber]] = {}
        for subscriber, loop in self._members.items():
            by_loop.setdefault(loop, []).append(subscriber)
        for loop, several in by_loop.items():
            if not loop.is_closed():
                loop.call_soon_threadsafe(_each, what, several)

    def _stop_all(self) -> None:
        self._tell(Subscriber.end)
        self._members.clear()
        self._subscription = self._thread = None

    def close(self) -> None:
        """Ends all streams, and waits for the thread."""
        with self._lock:
            self._closed = True
            thread = self._thread
            self._tell(Subscriber.end)
        if thread is not None:
            thread.join()


def _each(what: Callable[[Subscriber], None], several: list[Subscriber]) -> None:
    for subscriber in several:
        what(subscriber)

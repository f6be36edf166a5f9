"""Record queues of a task, one per input partition, from which the record with the smallest timestamp is next."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from headrace.runtime.punctuation import NEVER
from headrace.topics.log import Raw

if TYPE_CHECKING:
    from headrace.runtime.task_state import TaskState


class Head(NamedTuple):
    """A record that has been decoded because it is next in its queue."""

    timestamp_ms: int
    key: Any
    value: Any
    raw: Raw


_head = tuple.__new__


class Codec(Protocol):
    """Decoder of one input partition's records."""

    decode_key: Callable[[bytes], Any]
    decode_value: Callable[[bytes], Any]
    metadata_only: bool

    def decode(self, raw: Raw, partition_time_ms: int) -> Head | None:
        """Returns the decoded record, or None for one that is skipped (and was counted)."""
        ...

    def failed(self, raw: Raw, error: Exception) -> None:
        """Handles a record that cannot be decoded; returns if it is to be skipped."""
        ...

    def timestamp_of(self, raw: Raw, key: Any, value: Any, partition_time_ms: int) -> int:
        """Returns the record's time; a negative one drops it."""
        ...


class RecordQueue:
    """The records of one input partition, in their order, the first one decoded.

    They come in pages, and a page is fetched when the one before is used up: records that are still warm in the
    processor's cache are read twice as fast, and a long range never lies in memory as a whole.
    """

    __slots__ = (
        "_pages",
        "codec",
        "edge",
        "head",
        "is_sent",
        "origin",
        "partition_time_ms",
        "rank",
        "raw",
        "resumes_ms",
    )

    def __init__(self, origin: tuple[str, int], codec: Codec, edge: Callable[..., None]) -> None:
        self.origin = origin
        self.codec = codec
        self.edge = edge
        self.rank = 0
        """Position among the task's inputs by topic and partition: decides ties in a batch."""
        self.raw: deque[Raw] = deque()
        """What has been fetched and is not processed."""
        self._pages: Iterator[Iterable[Raw]] = iter(())
        self.head: Head | None = None
        self.resumes_ms: int | None = None
        """The log has more of this partition than was handed over, none of it older than this; None: it has no more."""
        self.is_sent = False
        """Its records were sent by other tasks for this very batch: nobody will send them again."""
        self.partition_time_ms = -1

    @property
    def horizon_ms(self) -> int:
        """Up to where other inputs may be processed when this one has run dry."""
        return NEVER if self.resumes_ms is None else self.resumes_ms

    def next_offset(self) -> int | None:
        """Returns the offset of the next record in the queue; None if it is empty."""
        if self.head is not None:
            return self.head.raw[0]
        return self.raw[0][0] if self.raw or self._fetch() else None

    def clear(self) -> None:
        """Forgets all records."""
        self.raw.clear()
        self._pages = iter(())
        self.head = None
        self.resumes_ms = None

    def add(self, pages: Iterable[Iterable[Raw]]) -> None:
        """Appends pages of records in the order of their offsets."""
        self._pages = chain(self._pages, pages)

    def _fetch(self) -> bool:
        """Goes on to the next page that has records; False if there is none."""
        for page in self._pages:
            self.raw.extend(page)
            if self.raw:
                return True
        return False

    def _rest(self) -> Iterator[Iterable[Raw]]:
        """Returns all pages, and keeps none of them."""
        if self.raw:
            yield self.raw.copy()
            self.raw.clear()
        yield from self._pages

    def advance(self) -> bool:
        """Decodes records until one can be the head; returns whether there is one."""
        while self.head is None and (self.raw or self._fetch()):
            self.head = self.codec.decode(self.raw.popleft(), self.partition_time_ms)
        return self.head is not None

    def take(self) -> Head:
        """Takes the head; partition time moves with it."""
        head = self.head
        assert head is not None, "the caller has seen a head"
        self.head = None
        if head.timestamp_ms > self.partition_time_ms:
            self.partition_time_ms = head.timestamp_ms
        return head

    def drain(self, state: TaskState) -> int:
        """Processes everything; returns the last offset processed.

        This loop is paid per record: it binds everything it can, decodes in place and keeps the clocks in locals.
        """
        if not self.codec.metadata_only:
            # An extractor of the user's is asked once per record, also about the head, which has its time already.
            return self.drain_before(state, NEVER)
        edge, drop = self.edge, state.drop
        decode_key, decode_value = self.codec.decode_key, self.codec.decode_value
        # Most topologies have no punctuations.
        punctuations = state.stream_punctuations if state.has_processors else None
        expire = state.expiries.before_record if state.expiries.follow_stream_time else None
        partition_time_ms, stream_time_ms = self.partition_time_ms, state.stream_time_ms
        state.origin = state.raw_origin = self.origin
        last = -1
        if self.head is not None:
            # The head goes through the loop like all others, decoded once more: one record per batch.
            self.raw.appendleft(self.head.raw)
        for page in self._rest():
            for raw in page:
                offset, timestamp_ms, key_bytes, value_bytes, headers = raw
                try:
                    key = None if key_bytes is None else decode_key(key_bytes)
                    value = None if value_bytes is None else decode_value(value_bytes)
                except Exception as error:
                    self.codec.failed(raw, error)
                    continue
                if timestamp_ms < 0:
                    timestamp_ms = self.codec.timestamp_of(raw, key, value, partition_time_ms)
                    if timestamp_ms < 0:
                        drop()
                        continue
                state.offset = last = offset
                state.raw = raw
                if timestamp_ms > partition_time_ms:
                    partition_time_ms = timestamp_ms
                    if timestamp_ms > stream_time_ms:
                        state.stream_time_ms = stream_time_ms = timestamp_ms
                if expire is not None:
                    expire(stream_time_ms)
                edge(key, value, timestamp_ms, headers)
                if punctuations is not None and stream_time_ms >= punctuations.next_ms:
                    state.punctuate_stream_time()
        self.head = None
        self.partition_time_ms = partition_time_ms
        return last

    def drain_before(self, state: TaskState, bound_ms: int) -> int:
        """Processes the head and what follows before ``bound_ms``, where another input goes on.

        The same per record as in ``drain``, which cannot be this one: its plain loop is a good part faster.
        """
        edge, popleft, raws = self.edge, self.raw.popleft, self.raw
        decode_key, decode_value = self.codec.decode_key, self.codec.decode_value
        metadata_only = self.codec.metadata_only
        punctuations = state.stream_punctuations
        expire = state.expiries.before_record if state.expiries.follow_stream_time else None
        partition_time_ms, stream_time_ms = self.partition_time_ms, state.stream_time_ms
        state.origin = state.raw_origin = self.origin
        timestamp_ms, key, value, raw = self.take()
        while True:
            state.offset = raw[0]
            state.raw = raw
            if timestamp_ms > partition_time_ms:
                partition_time_ms = timestamp_ms
                if timestamp_ms > stream_time_ms:
                    state.stream_time_ms = stream_time_ms = timestamp_ms
            if expire is not None:
                expire(stream_time_ms)
            edge(key, value, timestamp_ms, raw[4])
            if stream_time_ms >= punctuations.next_ms:
                state.punctuate_stream_time()
            last = raw[0]
            while raws or self._fetch():
                raw = popleft()
                _, timestamp_ms, key_bytes, value_bytes, _ = raw
                try:
                    key = None if key_bytes is None else decode_key(key_bytes)
                    value = None if value_bytes is None else decode_value(value_bytes)
                except Exception as error:
                    self.codec.failed(raw, error)
                    continue
                if timestamp_ms < 0 or not metadata_only:
                    timestamp_ms = self.codec.timestamp_of(raw, key, value, partition_time_ms)
                    if timestamp_ms < 0:
                        state.drop()
                        continue
                break
            else:
                self.partition_time_ms = partition_time_ms
                return last
            if timestamp_ms >= bound_ms:
                self.partition_time_ms = partition_time_ms
                # Not by its own constructor, which costs more than all the rest of a turn.
                self.head = _head(Head, (timestamp_ms, key, value, raw))
                return last

"""Segments of time: layout and expiry of timed rows, as in Kafka Streams' stores on disk."""

from __future__ import annotations

from collections.abc import Iterable
from struct import Struct

from headrace.arguments.durations import MAX_LONG
from headrace.state.engines.engine import Engine
from headrace.state.rows.codec import KEY_END, escape, pack_timestamp, timestamp_of, unescape

DATA, INDEX = b"\1", b"\2"
_TIME, _SEQUENCE_NAME = b"\0observed", b"\0sequence"
CLOCK_ROWS = (_TIME, _SEQUENCE_NAME)
"""Rows that are no one's data: the clock of a store, and the number that was given last."""
ENTRY_BOUNDS = (DATA, INDEX)
_SEQUENCE = Struct(">I")
_NUMBERED = Struct(">2sqI")
_NO_SEQUENCE = _SEQUENCE.pack(0)
_NEVER = -1


class Segments:
    """The clock of a store with a retention: what it takes, what it shows, and what it may delete.

    A row is taken if its segment is not older than that of the horizon, ``retention_ms`` before the largest time put so
    far; it is shown only if its own time is above the horizon. ``inclusive``: a row at the horizon is shown, too.

    >>> segments = Segments(retention_ms=100_000, interval_ms=60_000)
    >>> segments.observe(200_000), segments.observe(60_000), segments.observe(59_999)
    (True, True, False)
    >>> segments.visible_from_ms
    100001
    """

    __slots__ = ("_shift_ms", "interval_ms", "live_from_ms", "observed_ms", "retention_ms", "visible_from_ms")

    def __init__(self, *, retention_ms: int, interval_ms: int, inclusive: bool = False) -> None:
        self.retention_ms = retention_ms
        self.interval_ms = interval_ms
        self._shift_ms = retention_ms if inclusive else retention_ms - 1
        self.start_at(_NEVER)

    def start_at(self, observed_ms: int) -> None:
        """Sets the largest time put so far."""
        self.observed_ms = observed_ms
        self.visible_from_ms = observed_ms - self._shift_ms
        # Joins come here with nearly every record: this is ``segment``, without the call.
        self.live_from_ms = (observed_ms - self.retention_ms) // self.interval_ms * self.interval_ms

    def observe(self, time_ms: int) -> bool:
        """Moves the clock to a time that is put; tells whether the store takes it."""
        self.start_at(max(time_ms, self.observed_ms))
        return time_ms >= self.live_from_ms

    def takes(self, oldest_ms: int, newest_ms: int) -> bool:
        """Tells whether the store takes everything between two times, in whatever order it is put."""
        horizon_ms = max(newest_ms, self.observed_ms) - self.retention_ms
        return oldest_ms >= self.segment(horizon_ms) * self.interval_ms

    def pass_by(self, time_ms: int) -> None:
        """Moves the clock to the time of a removal, which lets no segment expire."""
        live_from_ms = self.live_from_ms
        self.start_at(max(time_ms, self.observed_ms))
        self.live_from_ms = live_from_ms

    def segment(self, time_ms: int) -> int:
        return time_ms // self.interval_ms

    @property
    def has_started(self) -> bool:
        """Whether anything was ever put."""
        return self.observed_ms != _NEVER

    def load(self, engine: Engine) -> None:
        """Reads the clock that ``save`` wrote."""
        data = engine.get(_TIME)
        self.start_at(_NEVER if data is None else timestamp_of(data))

    def save(self, engine: Engine) -> None:
        engine.put(_TIME, pack_timestamp(self.observed_ms))


class Layout:
    """Names of rows. Rows lie by segment, key and times; or, for stores that emit windows when they close, by times and
    key, with an index by segment and key.

    ``width`` is the number of times in a name: a window has its start, a session its end and its start. The first
    decides the segment. With ``numbered`` a sequence number follows, which tells rows of the same key and time apart.
    """

    __slots__ = ("_numbered", "_tail", "_times", "interval_ms", "time_first", "width")

    def __init__(self, *, interval_ms: int, time_first: bool, width: int = 1, numbered: bool = False) -> None:
        self.time_first = time_first
        self.width = width
        self.interval_ms = interval_ms
        self._numbered = numbered
        self._times = Struct(f">{width}q")
        self._tail = 4 if numbered else 0

    def segments_between(self, from_ms: int, to_ms: int) -> range:
        """Returns the segments from that of a time to that of another."""
        return range(from_ms // self.interval_ms, to_ms // self.interval_ms + 1)

    def segment_start(self, time_ms: int) -> int:
        """Returns the time at which the segment of a time begins."""
        return time_ms // self.interval_ms * self.interval_ms

    def data(self, key: bytes, *times: int, sequence: int = 0) -> bytes:
        """Returns the name of a row."""
        number = _SEQUENCE.pack(sequence) if self._numbered else b""
        if self.time_first:
            return DATA + self._times.pack(*times) + escape(key) + number
        return self._by_key(DATA, times[0] // self.interval_ms, key) + self._times.pack(*times) + number

    def names(self, keys: Iterable[bytes], time_ms: int) -> list[bytes]:
        """Returns the names of rows of many keys that have the same one time and no number."""
        time = self._times.pack(time_ms)
        before = DATA + (time if self.time_first else pack_timestamp(time_ms // self.interval_ms))
        after = KEY_END + (b"" if self.time_first else time)
        # The same as ``escape``, without a call for each.
        return [before + key.replace(b"\0", b"\0\xff") + after for key in keys]

    def numbered(
        self, segment: int, keys: Iterable[bytes], times_ms: Iterable[int], numbers: Iterable[int]
    ) -> list[bytes]:
        """Returns the names of many rows of a segment with one time and a sequence number each, which lie by key."""
        before, pack = DATA + pack_timestamp(segment), _NUMBERED.pack
        return [
            before + key.replace(b"\0", b"\0\xff") + pack(KEY_END, time_ms, number)
            for key, time_ms, number in zip(keys, times_ms, numbers, strict=True)
        ]

    def index(self, key: bytes, *times: int) -> bytes:
        """Returns the name of a row in the index of a store whose rows lie by time."""
        return self._by_key(INDEX, times[0] // self.interval_ms, key) + self._times.pack(*times)

    def _by_key(self, kind: bytes, segment: int, key: bytes) -> bytes:
        return kind + pack_timestamp(segment) + escape(key)

    def split(self, name: bytes) -> tuple[bytes, tuple[int, ...], int]:
        """Returns key bytes, times and sequence number of a row."""
        sequence: int = _SEQUENCE.unpack_from(name, len(name) - 4)[0] if self._numbered else 0
        end = len(name) - self._tail
        size = self._times.size
        if self.time_first:
            return unescape(name[1 + size : end]), self._times.unpack_from(name, 1), sequence
        return unescape(name[9 : end - size]), self._times.unpack_from(name, end - size), sequence

    def changelog_keys(self, names: Iterable[bytes]) -> list[bytes]:
        """Returns the keys of changelog records of rows with one time: key bytes, time and sequence number."""
        if self.time_first:
            return [unescape(name[9:]) + name[1:9] + _NO_SEQUENCE for name in names]
        if self._numbered:
            return [name[9:-14].replace(b"\0\xff", b"\0") + name[-12:] for name in names]
        return [name[9:-10].replace(b"\0\xff", b"\0") + name[-8:] + _NO_SEQUENCE for name in names]

    def split_index(self, name: bytes) -> tuple[bytes, tuple[int, ...]]:
        """Returns key bytes and times of a row of the index."""
        size = self._times.size
        return unescape(name[9:-size]), self._times.unpack_from(name, len(name) - size)

    def of_key(self, key: bytes, segment: int) -> tuple[bytes, bytes]:
        """Returns the bounds of a key's rows (or rows of the index) within a segment."""
        prefix = self._by_key(INDEX if self.time_first else DATA, segment, key)
        return prefix, prefix[:-1] + b"\2"

    def between(self, from_ms: int, to_ms: int) -> tuple[bytes, bytes]:
        """Returns bounds that enclose the rows whose first time is from ``from_ms`` to ``to_ms``."""
        if not self.time_first:
            return self.by_key_between(DATA, from_ms, to_ms)
        end = DATA + pack_timestamp(to_ms + 1) if to_ms < MAX_LONG else INDEX
        return DATA + pack_timestamp(max(0, from_ms)), end

    def by_key_between(self, kind: bytes, from_ms: int, to_ms: int) -> tuple[bytes, bytes]:
        """Returns bounds that enclose the segments from that of ``from_ms`` to that of ``to_ms``."""
        first, last = max(0, from_ms) // self.interval_ms, to_ms // self.interval_ms
        end = kind + pack_timestamp(last + 1) if last < MAX_LONG else bytes((kind[0] + 1,))
        return kind + pack_timestamp(first), end

    def expired(self, live_from_ms: int) -> list[tuple[bytes, bytes]]:
        """Returns the ranges of names of all rows in segments before a time."""
        if live_from_ms <= 0:
            return []
        segment = pack_timestamp(live_from_ms // self.interval_ms)
        if self.time_first:
            return [(DATA, DATA + pack_timestamp(live_from_ms)), (INDEX, INDEX + segment)]
        return [(DATA, DATA + segment)]


def load_sequence(engine: Engine) -> int:
    """Returns the sequence number that was given last."""
    data = engine.get(_SEQUENCE_NAME)
    return 0 if data is None else timestamp_of(data)


def save_sequence(engine: Engine, sequence: int) -> None:
    """Saves the sequence number that was given last."""
    engine.put(_SEQUENCE_NAME, pack_timestamp(sequence))

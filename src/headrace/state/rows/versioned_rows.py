"""The rows of a versioned store, as bytes: which versions of a key there are, and when they are forgotten."""

from __future__ import annotations

from collections.abc import Iterator
from struct import Struct
from typing import NamedTuple

from headrace.arguments.durations import MAX_LONG
from headrace.state.engines.changes import Changes
from headrace.state.engines.engine import Engine, Row
from headrace.state.rows.codec import escape, pack_timestamp, timestamp_of, unescape
from headrace.state.stores.store import ChangelogRecord

# Versions lie under key and time, the newest first. Due rows tell at which time a key got a version: what that version
# replaced is of no use once the time is beyond the history.
_VERSION, _DUE, _TIME, _RESTORED = b"\1", b"\2", b"\0observed", b"\0restored"
CLOCK_ROWS = (_TIME,)
ENTRY_BOUNDS = (_VERSION, _DUE)
# The first byte of a row. A value that follows another one, or a deletion of the same time, leaves a deletion behind
# when it is deleted at its own time; any other value leaves nothing: Kafka Streams forgets that deletion, and a later
# put with an earlier time is the latest again. The row stays, because the changelog needs the deletion.
_DELETED, _VALUE, _FOLLOWING, _NOTHING = range(4)
# Added to the first byte of what was put where nothing was left, in the same commit: the changelog has to tell both.
_ANEW = 4
_INVERTED = Struct(">Q")
_MAX_LATEST = 50_000
_STEPS = 8


class Version(NamedTuple):
    """From when a key has a value, and which; None is a deletion."""

    timestamp_ms: int
    data: bytes | None


class _Latest(NamedTuple):
    """The latest version of a key."""

    timestamp_ms: int
    data: bytes | None
    following: bool


class Versions:
    """The versions of all keys. A key goes by its name, which ``name_of`` makes of its bytes.

    >>> from headrace.state import MemoryEngine
    >>> versions = Versions(MemoryEngine(), retention_ms=1000)
    >>> apple = versions.name_of(b"apple")
    >>> versions.put(apple, b"2", 10), versions.put(apple, None, 30), versions.put(apple, b"3", 20)
    (None, None, 30)
    >>> list(versions.newest_first(apple))
    [Version(timestamp_ms=30, data=None), Version(timestamp_ms=20, data=b'3'), Version(timestamp_ms=10, data=b'2')]
    """

    __slots__ = ("_due_ms", "_engine", "_fresh", "_latest", "_saved_ms", "_unlogged", "observed_ms", "retention_ms")

    def __init__(self, engine: Engine, *, retention_ms: int) -> None:
        self._engine = engine
        self.retention_ms = retention_ms
        self._latest: dict[bytes, _Latest | None] = {}
        # Deletions that leave nothing, since the last commit: the changelog has yet to be told.
        self._unlogged: set[bytes] = set()
        # Rows written since the last commit: the changelog has not seen them.
        self._fresh: set[bytes] = set()
        self.observed_ms = self._saved_ms = self._due_ms = -1
        self.reload()

    @property
    def horizon_ms(self) -> int:
        """What is older is neither taken nor found, except for the latest version."""
        return self.observed_ms - self.retention_ms

    @property
    def restored_ms(self) -> int:
        """The largest time in what was restored from the changelog so far; -1 before the first."""
        data = self._engine.get(_RESTORED)
        return -1 if data is None else timestamp_of(data)

    @restored_ms.setter
    def restored_ms(self, time_ms: int) -> None:
        self._engine.put(_RESTORED, pack_timestamp(time_ms))

    def name_of(self, key: bytes) -> bytes:
        """Returns the name under which the versions of a key lie."""
        return _VERSION + escape(key)

    def save(self) -> None:
        """Writes what is only in memory: the largest time that was put. To be called at every commit."""
        if self.observed_ms != self._saved_ms:
            self._engine.put(_TIME, pack_timestamp(self.observed_ms))
            self._saved_ms = self.observed_ms
        self._unlogged.clear()
        self._fresh.clear()

    def reload(self) -> None:
        """Forgets what is in memory and goes on with what the engine has."""
        data = self._engine.get(_TIME)
        self.observed_ms = self._saved_ms = -1 if data is None else timestamp_of(data)
        self._latest.clear()
        self._unlogged.clear()
        self._fresh.clear()
        self._due_ms = -1

    def latest(self, name: bytes) -> _Latest | None:
        """Returns the latest version of a key, which may be a deletion."""
        if name in self._latest:
            return self._latest[name]
        row = next(self._rows(name, _end(name)), None)
        latest = None
        if row is not None:
            latest = _Latest(*_version(row), _kind(row[1]) in (_FOLLOWING, _DELETED))
        if len(self._latest) >= _MAX_LATEST:
            self._latest.clear()
        self._latest[name] = latest
        return latest

    def newest_first(self, name: bytes, from_ms: int | None = None) -> Iterator[Version]:
        """Returns the versions of a key, beginning with the one that was valid at a time, or with the latest."""
        start = name if from_ms is None else _row_name(name, from_ms)
        return map(_version, self._rows(start, _end(name)))

    def next_ms(self, name: bytes, timestamp_ms: int) -> int | None:
        """Returns the time of the version after a time, None if there is none."""
        row = next(self._rows(name, _row_name(name, timestamp_ms), reverse=True), None)
        return None if row is None else _time(row[0])

    def put(self, name: bytes, data: bytes | None, timestamp_ms: int) -> int | None:
        """Adds a version; returns the time of the next one, None if this is the latest."""
        self.observed_ms = max(self.observed_ms, timestamp_ms)
        latest = self.latest(name)
        if latest is not None and timestamp_ms < latest.timestamp_ms:
            self._write(name, timestamp_ms, _DELETED if data is None else _VALUE, data)
            valid_to_ms = self.next_ms(name, timestamp_ms)
            if valid_to_ms == latest.timestamp_ms and latest.data is not None and not latest.following:
                self._set_latest(name, latest._replace(following=True))
        else:
            following = latest is not None and latest.data is not None
            if latest is not None and timestamp_ms == latest.timestamp_ms:
                following = latest.following or latest.data is None
            self._set_latest(name, _Latest(timestamp_ms, data, following), replaces=latest)
            valid_to_ms = None
        self._forget_history()
        return valid_to_ms

    def changelog_records(self, changes: Changes) -> list[ChangelogRecord]:
        """Returns changes of the engine as records of the changelog topic."""
        forgotten: list[ChangelogRecord] = []
        records: list[ChangelogRecord] = []
        for name, data in changes.rows.items():
            if not name.startswith(_VERSION):
                continue
            key, timestamp_ms = unescape(name[1:-8]), _time(name)
            # A row that is gone was a deletion that the changelog has not seen: all others go as ranges, silently.
            kind, anew = (_DELETED, False) if data is None else (_kind(data), bool(data[0] & _ANEW))
            if kind == _NOTHING or anew:
                # Some value and its deletion, before anything else, leave the same behind.
                forgotten += [(key, b"", timestamp_ms), (key, None, timestamp_ms)]
            if kind == _DELETED or (anew and kind == _FOLLOWING):
                records.append((key, None, timestamp_ms))
            if data is not None and kind in (_VALUE, _FOLLOWING):
                records.append((key, data[1:], timestamp_ms))
        # The newest version of a key comes last: it is the one that survives the compaction of the topic.
        records.sort(key=_record_time)
        return forgotten + records

    def _set_latest(self, name: bytes, version: _Latest, *, replaces: _Latest | None = None) -> None:
        timestamp_ms, data, following = version
        if data is not None:
            self._write(name, timestamp_ms, _FOLLOWING if following else _VALUE, data)
            self._latest[name] = version
        elif following or replaces is None or replaces.timestamp_ms != timestamp_ms:
            self._write(name, timestamp_ms, _DELETED, None)
            self._latest[name] = version
        else:
            self._write(name, timestamp_ms, _NOTHING, None)
            self._latest.pop(name, None)

    def _write(self, name: bytes, timestamp_ms: int, kind: int, data: bytes | None) -> None:
        row_name = _row_name(name, timestamp_ms)
        if kind == _NOTHING:
            self._unlogged.add(row_name)
        elif row_name in self._unlogged:
            kind += _ANEW
        self._fresh.add(row_name)
        self._engine.put(row_name, bytes((kind,)) + (data or b""))
        self._engine.put(_DUE + pack_timestamp(timestamp_ms) + name, b"")
        self._due_ms = min(self._due_ms, timestamp_ms)

    def _rows(self, start: bytes, stop: bytes, *, reverse: bool = False) -> Iterator[Row]:
        return (row for row in self._engine.scan(start, stop, reverse=reverse) if _kind(row[1]) != _NOTHING)

    def _forget_history(self) -> None:
        """Forgets what was replaced before the history, a few keys per put, so that no put pays for many."""
        horizon_ms = self.horizon_ms
        if self._due_ms > horizon_ms or horizon_ms < 0:
            return
        rows = self._engine.scan(_DUE, _DUE + pack_timestamp(horizon_ms + 1))
        for due, _ in [row for row, _ in zip(rows, range(_STEPS), strict=False)]:
            self._engine.delete(due)
            self._forget_before(due[9:], horizon_ms)
        head = next(self._engine.scan(_DUE, b"\3"), None)
        self._due_ms = MAX_LONG if head is None else timestamp_of(head[0][1:])

    def _forget_before(self, name: bytes, horizon_ms: int) -> None:
        valid = next(self._rows(_row_name(name, horizon_ms), _end(name)), None)
        for row_name, data in list(self._engine.scan(_row_name(name, horizon_ms), _end(name))):
            is_valid = valid is not None and row_name == valid[0]
            if row_name in self._unlogged:
                self._engine.put(_DUE + pack_timestamp(horizon_ms + 1) + name, b"")
            elif not is_valid or (_kind(data) == _DELETED and _time(row_name) < horizon_ms):
                # A deletion before the horizon tells no more than its absence does.
                self._forget(name, row_name, told=not is_valid or row_name not in self._fresh)
                if is_valid:
                    self._latest.pop(name, None)

    def _forget(self, name: bytes, row_name: bytes, *, told: bool) -> None:
        """Deletes a row, as a range, which the changelog does not see, unless it has yet to be told of a deletion."""
        if told:
            self._engine.delete_range(row_name, row_name + b"\0")
            return
        self._engine.delete(row_name)
        newest = next(self._engine.scan(name, _end(name)), None)
        if newest is not None:
            # Written again, so that it comes after the deletion in the changelog.
            self._engine.put(*newest)


def _row_name(name: bytes, timestamp_ms: int) -> bytes:
    return name + _INVERTED.pack(MAX_LONG - timestamp_ms)


def _end(name: bytes) -> bytes:
    # The last byte of an escaped key is 1.
    return name[:-1] + b"\2"


def _version(row: Row) -> Version:
    return Version(_time(row[0]), None if _kind(row[1]) == _DELETED else row[1][1:])


def _kind(data: bytes) -> int:
    return data[0] & 3


def _record_time(record: ChangelogRecord) -> int:
    return record[2] or 0


def _time(row_name: bytes) -> int:
    inverted: int = _INVERTED.unpack(row_name[-8:])[0]
    return MAX_LONG - inverted

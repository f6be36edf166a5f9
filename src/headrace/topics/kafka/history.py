"""History of an application: the records of its batches topic, and what they say together.

Records of drivers are appended by plain producers, so a driver that was deposed may still write. A driver that opens
the journal writes a takeover record first. Its offset is the number of that opening, the incarnation. Every later
record names the incarnation that it belongs to. A record counts unless a newer one of another incarnation, or a newer
takeover, lies before it. A reset is announced in the same way. Takeovers until its end do not count: a driver that has
written one finds the reset and refuses to start.
"""

from __future__ import annotations

import os
import socket
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import cached_property

import msgspec

from headrace.errors import BatchError, FencedError
from headrace.topics.journal import JournalState, TaskStatus
from headrace.topics.log import Committed, Offsets

TAKEOVER = b"takeover"
PLAN = b"plan"
BATCH = b"batch"
RESET = b"reset"
RESET_DONE = b"reset-done"


class Opener(msgspec.Struct, array_like=True, frozen=True):
    """The driver that has taken over, or the reset."""

    process: str = "somebody"
    at_ms: int = 0
    tasks: list[str] = []

    @classmethod
    def this(cls, tasks: Sequence[str] = ()) -> Opener:
        return cls(f"process {os.getpid()} on {socket.gethostname()}", time.time_ns() // 1_000_000, list(tasks))

    def __str__(self) -> str:
        since = datetime.fromtimestamp(self.at_ms / 1000, UTC).isoformat(timespec="seconds")
        return f"{self.process}, since {since}"


class Plan(msgspec.Struct, array_like=True, frozen=True):
    """A batch that was begun."""

    batch_id: int
    plan: bytes


class Batch(msgspec.Struct, array_like=True, frozen=True):
    """A batch that all tasks have committed, and where the application stands with it."""

    batch_id: int = -1
    positions: list[tuple[str, int, int]] = []
    tasks: list[tuple[str, str, int | None, int]] = []
    """Name, stamp, next clock, and first offset of the record of each task that has ever committed; -1: not known."""
    written: list[tuple[str, int, int, int]] = []
    """Topic, partition, first offset and the one after the last of what the batch has written."""
    idle: list[str] = []
    """Tasks that have never committed anything: a process may be about to, so they are fenced, too."""

    def committed(self) -> Committed:
        return Committed(self.batch_id, {(topic, part): (first, end) for topic, part, first, end in self.written})

    def offsets(self) -> Offsets:
        return {(topic, partition): offset for topic, partition, offset in self.positions}


def entry_key(kind: bytes, incarnation: int) -> bytes:
    """Returns the key of a record that belongs to an incarnation."""
    return kind + b" " + str(incarnation).encode()


@dataclass(frozen=True)
class History:
    """State of an application by its records, up to one of them."""

    newest: int = -1
    """The incarnation that counts: that of a driver, or of a reset."""
    opener: bytes = b""
    is_reset: bool = False
    """Whether that is the incarnation of a reset."""
    is_resetting: bool = False
    """Whether the reset has not ended yet."""
    opened_tasks: frozenset[str] = frozenset()
    """Tasks of all drivers that have taken over."""
    batch_data: bytes = b""
    batch_offset: int = -1
    plan_data: bytes = b""

    def with_record(self, offset: int, key: bytes, value: bytes) -> History:
        """Returns the history that goes on with one more record.

        >>> one = History().with_record(4, b"takeover", b"").with_record(5, b"plan 4", b"p")
        >>> two = one.with_record(6, b"takeover", b"")
        >>> two.newest, [two.with_record(7, plan, b"new").plan_data for plan in (b"plan 4", b"plan 6")]
        (6, [b'p', b'new'])
        """
        kind, _, number = key.partition(b" ")
        if kind == TAKEOVER:
            if self.is_resetting:
                return self
            tasks = self.opened_tasks | {*_opener(value).tasks}
            return replace(self, newest=offset, opener=value, is_reset=False, opened_tasks=tasks)
        if kind == RESET:
            # Those of a driver that took over after the reset had read the history: they are fenced, too.
            tasks = frozenset(self.known_tasks | {*_opener(value).tasks})
            return History(newest=offset, opener=value, is_reset=True, is_resetting=True, opened_tasks=tasks)
        incarnation = int(number) if number.isdigit() else -1
        if incarnation < self.newest:
            return self
        if kind == RESET_DONE:
            return History(newest=incarnation, opener=value, is_reset=True)
        if kind == BATCH:
            return replace(self, newest=incarnation, batch_data=value, batch_offset=offset, plan_data=b"")
        return replace(self, newest=incarnation, plan_data=value) if kind == PLAN else self

    @cached_property
    def batch(self) -> Batch:
        return msgspec.msgpack.decode(self.batch_data, type=Batch) if self.batch_data else Batch()

    @property
    def state(self) -> JournalState:
        batch, begun = self.batch, None
        if self.plan_data:
            plan = msgspec.msgpack.decode(self.plan_data, type=Plan)
            begun = plan.plan if plan.batch_id == batch.batch_id + 1 else None
        tasks = {task: TaskStatus(stamp, next_clock_ms) for task, stamp, next_clock_ms, _ in batch.tasks}
        return JournalState(batch.batch_id, batch.offsets(), tasks, begun)

    @property
    def known_tasks(self) -> set[str]:
        return {task for task, *_ in self.batch.tasks} | {*self.batch.idle} | self.opened_tasks

    def check_newest(self, application: str, incarnation: int) -> None:
        """Complains if another driver, or a reset, has come after an incarnation."""
        if self.newest <= incarnation:
            return
        what = "it was reset" if self.is_reset else "another instance has taken over"
        message = (
            f"application '{application}': {what} ({_opener(self.opener)}; number {self.newest}, this one is "
            f"{incarnation}); what this one was about to commit was not committed; run one instance at a time"
        )
        raise FencedError(message)

    def check_not_resetting(self, application: str) -> None:
        """Complains if a reset was begun and is not finished."""
        if self.is_resetting:
            message = (
                f"application '{application}': a reset was begun ({_opener(self.opener)}) and is not finished; wait "
                f"for it, or, if that process is gone, finish it with `headrace reset {application}`"
            )
            raise BatchError(message)


def _opener(data: bytes) -> Opener:
    return msgspec.msgpack.decode(data, type=Opener) if data else Opener()


@dataclass
class KnownHistory:
    """The part of an application's history that a process has read."""

    lock: threading.Lock = field(default_factory=threading.Lock)
    topic_id: str = ""
    position: int = 0
    history: History = field(default_factory=History)

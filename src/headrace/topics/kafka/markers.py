"""Markers: the proof in the log that a task's output of a batch is there, and what it belongs to.

A marker is an offset of the application's consumer group: partition ``p`` of the marker topic of sub-topology ``s``
stands for task ``s_p``, its offset is the number of batches that the task has committed, its metadata says the rest.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from headrace.errors import BatchError, TopicError, describe_value
from headrace.topics.log import TopicPartition

_LONGEST = 4000
"""Brokers take metadata of 4096 bytes."""
_OWN = re.compile(r".+-headrace-(batches|.*-tasks)")

Bounds = dict[TopicPartition, tuple[int, int]]


def own_prefix(application: str) -> str:
    """Returns how topics begin that hold an application's progress."""
    return f"{application}-headrace-"


def is_progress(topic: str) -> bool:
    """Tells whether a topic holds the progress of an application, of whichever.

    >>> is_progress("orders-headrace-batches"), is_progress("orders-headrace-1-tasks"), is_progress("headrace-tasks")
    (True, True, False)
    """
    return _OWN.fullmatch(topic) is not None


def marker_place(application: str, task: str) -> TopicPartition:
    """Returns the partition that stands for a task.

    >>> marker_place("orders", "1_3")
    ('orders-headrace-1-tasks', 3)
    """
    group, _, number = task.rpartition("_")
    if not group or not number.isdecimal():
        message = f"a task's name is <sub-topology>_<partition>, such as '0_3'; found {describe_value(task)}"
        raise TopicError(message)
    return f"{own_prefix(application)}{group}-tasks", int(number)


@dataclass(frozen=True)
class Marker:
    """What a task has committed last."""

    batch_id: int = -1
    plan: str = ""
    checkpoint: str = ""
    changes: str = ""
    """Digest of what the batch has changed in the task's state."""
    written: Bounds = field(default_factory=dict)
    """First offset and the one after the last, by partition."""

    @property
    def offset(self) -> int:
        return self.batch_id + 1

    @property
    def metadata(self) -> str:
        proof = [self.plan, self.checkpoint, self.changes]
        text = json.dumps([*proof, [[*target, *bounds] for target, bounds in self.written.items()]])
        # Which offsets they are is good to know; without it a replay is the same.
        return text if len(text.encode()) <= _LONGEST else json.dumps([*proof, []])

    @classmethod
    def of(cls, offset: int, metadata: str | None) -> Marker:
        """Reads what the group has; other clients may have written it.

        >>> marker = Marker(7, "plan", "checkpoint", "", {("out", 1): (5, 9)})
        >>> Marker.of(marker.offset, marker.metadata) == marker
        True
        >>> Marker.of(3, "").batch_id
        2
        """
        try:
            plan, checkpoint, changes, written = json.loads(metadata or "[]")
        except ValueError:
            return cls(max(offset, 0) - 1)
        return cls(offset - 1, plan, checkpoint, changes, bounds_of(written))

    def check_replay(self, application: str, task: str, now: Marker) -> None:
        """Complains if the batch that is run now cannot be the one that was committed."""
        where = f"batch {now.batch_id} of application '{application}'"
        remedy = (
            "the checkpoint was deleted or exchanged while the log was kept: bring it back, or start over with "
            f"`headrace reset {application}`"
        )
        if self.batch_id > now.batch_id:
            message = f"{where} is older than the last one in the log, {self.batch_id} (task {task}); {remedy}"
            raise BatchError(message)
        if self.checkpoint and now.checkpoint and self.checkpoint != now.checkpoint:
            message = (
                f"{where} is in the log from another checkpoint ('{self.checkpoint}', now '{now.checkpoint}'; task "
                f"{task}); {remedy}"
            )
            raise BatchError(message)
        if self.plan and now.plan and self.plan != now.plan:
            plans = f"'{self.plan}', now '{now.plan}'"
            message = f"{where} is in the log with another plan ({plans}; task {task}); {remedy}"
            raise BatchError(message)


# Any: it comes out of JSON.
def bounds_of(rows: Any) -> Bounds:
    """Returns offsets by partition from rows of JSON."""
    return {(topic, partition): (first, end) for topic, partition, first, end in rows}


def check_markers(application: str, batch_id: int, recorded: Mapping[str, int], found: Mapping[str, int]) -> None:
    """Complains about tasks whose markers are gone: whether they have committed the batch cannot be known any more.

    ``recorded`` and ``found`` are batches by task: those that the record of the last batch names, and the markers.
    """
    lost = sorted(task for task, batch in recorded.items() if found.get(task, -1) < batch)
    if not lost:
        return
    group, _ = marker_place(application, lost[0])
    message = (
        f"batch {batch_id} of application '{application}' was begun before, and whether {_tasks(lost)} wrote results "
        f"of it is not known any more: the markers, offsets of consumer group '{application}' in '{group}', are gone. "
        "Brokers forget offsets after 'offsets.retention.minutes' without a commit (7 days, unless set otherwise), or "
        f"somebody has deleted the group. Start over with `headrace reset {application}`; and let brokers keep offsets "
        "longer than the application may stand still"
    )
    raise BatchError(message)


def _tasks(names: list[str]) -> str:
    return f"task {names[0]}" if len(names) == 1 else f"tasks {', '.join(names)}"

"""The plan of a micro-batch: what each task reads and what time it is, and the files in which plans are kept."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from hashlib import blake2b
from pathlib import Path
from typing import Any, NamedTuple, Self

from headrace.errors import ProcessorStateError
from headrace.spark.durable import write_durably

_KEPT = 20


class Range(NamedTuple):
    """Records of one partition: those with ``start`` ≤ offset < ``end``."""

    topic: str
    """Its name in the log."""
    partition: int
    start: int
    end: int
    resumes_ms: int | None
    """The log has more of the partition, none of it older than this; None: it had no more when this was planned."""


@dataclass(frozen=True)
class Plan:
    """Everything that decides what a micro-batch does, besides the log and the state before it."""

    batch_id: int
    now_ms: Mapping[str, int]
    """What user code sees as the current time, by program."""
    ranges: Mapping[str, tuple[Range, ...]] = field(default_factory=dict)
    """By the key of the task that reads them."""
    due: frozenset[str] = frozenset()
    """Keys of tasks that run although they may have nothing to read, because a clock of theirs is due."""
    global_ends: Mapping[str, int] = field(default_factory=dict)
    """Up to where global tables are read: offsets by ``topic/partition``, names as in the log."""

    def to_json(self) -> str:
        """Returns the plan as it is written and handed to the tasks.

        >>> plan = Plan(7, {"": 1000}, {"0_0#1": (Range("in", 0, 5, 9, None),)})
        >>> Plan.from_json(plan.to_json()) == plan
        True
        """
        content = {
            "batch": self.batch_id,
            "now": dict(self.now_ms),
            "ranges": {key: [list(one) for one in several] for key, several in self.ranges.items()},
            "due": sorted(self.due),
            "globals": dict(self.global_ends),
        }
        return json.dumps(content, separators=(",", ":"))

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Returns the plan that ``to_json`` has written."""
        content: dict[str, Any] = json.loads(text)
        ranges = {key: tuple(Range(*one) for one in several) for key, several in content["ranges"].items()}
        return cls(content["batch"], content["now"], ranges, frozenset(content["due"]), content["globals"])

    def digest(self) -> str:
        """Returns a short name of the plan: the log keeps it with the batch."""
        return self._digest

    @cached_property
    def _digest(self) -> str:
        # Every task of a worker asks for it.
        return blake2b(self.to_json().encode(), digest_size=16).hexdigest()


class PlanFiles:
    """Plans on the disk, a file per batch, written before any task runs: a batch that is run again repeats its plan."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    def load(self, batch_id: int) -> Plan | None:
        """Returns the plan of a batch that was planned before, or None."""
        path = self._path(batch_id)
        try:
            return Plan.from_json(path.read_text(encoding="utf-8"))
        except FileNotFoundError:
            return None
        except (OSError, ValueError, KeyError, TypeError) as error:
            message = (
                f"the plan of batch {batch_id} cannot be read from '{path}': {error}; restore the checkpoint from a "
                "copy, or reset the application"
            )
            raise ProcessorStateError(message) from error

    def save(self, plan: Plan) -> None:
        """Writes a plan; when this returns it survives a power failure."""
        path = self._path(plan.batch_id)
        try:
            write_durably(path, plan.to_json())
        except OSError as error:
            message = (
                f"the plan of batch {plan.batch_id} cannot be written to '{path}': {error}; nothing of the batch has "
                "run; make room or correct the permissions, and start again"
            )
            raise ProcessorStateError(message) from error
        self._path(plan.batch_id - _KEPT).unlink(missing_ok=True)

    def _path(self, batch_id: int) -> Path:
        return self._directory / f"{batch_id}.json"

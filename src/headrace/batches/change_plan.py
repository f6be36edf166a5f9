"""The plan of a change to a stopped application: a micro-batch that no engine runs.

It lies where the plans of micro-batches lie, and in the application's description. An engine that finds one refuses to
start, because some tasks may have committed their part of it, and names the command that finishes it.
"""

from __future__ import annotations

from typing import Any

import msgspec

from headrace.errors import BatchError


class ChangePlan(msgspec.Struct, frozen=True):
    """Everything that decides a change besides log and topology: enough to continue it after a crash."""

    change: str
    """Its kind, such as ``grow``."""
    command: str
    """The command that makes it, and finishes it if it was interrupted."""
    batch_id: int
    """The micro-batch as which it is committed: the last one of the application, plus one."""
    # Any: JSON, which is different for each kind of change.
    details: dict[str, Any] = {}

    def pack(self) -> bytes:
        """Returns the plan as it is recorded.

        >>> plan = ChangePlan("grow", "headrace grow shop", 7, {"cuts": {"orders/0": 12}})
        >>> change_in(plan.pack()) == plan
        True
        """
        return msgspec.json.encode(self)

    @classmethod
    def unpack(cls, data: bytes | str) -> ChangePlan:
        """Returns what ``pack`` has written."""
        return msgspec.json.decode(data, type=cls)

    def refuse_start(self, application: str) -> None:
        """Complains that the change is not finished."""
        message = (
            f"application '{application}': a change was begun as batch {self.batch_id} ({self.change}) and is not "
            f"finished, so nothing else can run; finish it by the same command: `{self.command}`"
        )
        raise BatchError(message)


class _Kind(msgspec.Struct):
    change: str = ""


def change_in(plan: bytes) -> ChangePlan | None:
    """Returns the change that a recorded plan is; None for a plan of an engine.

    >>> from headrace.batches.plan import Plan
    >>> print(change_in(Plan(7, 1000).pack()))
    None
    """
    return ChangePlan.unpack(plan) if msgspec.json.decode(plan, type=_Kind).change else None

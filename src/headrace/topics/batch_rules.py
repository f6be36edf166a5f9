"""What a commit of a batch must be, on every log."""

from __future__ import annotations

from collections.abc import Sequence

from headrace.errors import BatchError
from headrace.topics.log import Receipt


def check_replay(application: str, batch_id: int, plan: str, *, last_id: int, last_plan: str) -> None:
    """Complains about a batch that is there already and cannot be the one that is run again."""
    where = f"batch {batch_id} of application '{application}'"
    remedy = "the checkpoint was deleted or exchanged while the log was kept: bring it back, or reset the application"
    if batch_id < last_id:
        message = f"{where} is older than the last one in the log, {last_id}; {remedy}"
        raise BatchError(message)
    if plan != last_plan:
        message = f"{where} is in the log with another plan ({last_plan!r}, now {plan!r}); {remedy}"
        raise BatchError(message)


def check_receipts(application: str, batch_id: int, receipts: Sequence[Receipt]) -> None:
    """Complains about receipts of another batch, and about two of one task."""
    tasks = set()
    for receipt in receipts:
        if (receipt.application, receipt.batch_id) != (application, batch_id):
            message = (
                f"batch {batch_id} of application '{application}' has a receipt of batch {receipt.batch_id} of "
                f"'{receipt.application}' (task {receipt.task}); commit only receipts of this batch"
            )
            raise BatchError(message)
        if receipt.task in tasks:
            message = (
                f"batch {batch_id} of application '{application}' has two receipts of task {receipt.task}; commit the "
                "one of the attempt that counts"
            )
            raise BatchError(message)
        tasks.add(receipt.task)

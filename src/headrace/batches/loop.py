"""The loop of micro-batches: one tick runs the next batch of every application that has something to do.

An engine of its own has a loop with one member; applications that share an executor, as the queries of a SQL server do,
share a loop, too: per tick one job with the tasks of all that have input, planned and committed each for itself.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager, nullcontext
from datetime import timedelta

from headrace.batches.executor import Executor
from headrace.batches.plan import Plan
from headrace.batches.reports import BatchReport, Outcome
from headrace.batches.run import ApplicationRun
from headrace.topics.log import Offsets, TopicLog

logger = logging.getLogger(__name__)

LONGEST_WAIT_S = 0.1
"""After which a loop that waits looks whether it should stop."""


class Member:
    """An application in a loop; ``tell`` gets the report of each of its micro-batches.

    ``committing`` is entered around every commit.
    """

    def __init__(
        self,
        run: ApplicationRun,
        tell: Callable[[BatchReport], None],
        *,
        committing: Callable[[], AbstractContextManager[object]] = nullcontext,
    ) -> None:
        self.run = run
        self._tell = tell
        self._committing = committing
        self.failure: BaseException | None = None
        self.is_paused = False
        self.is_stopping = False

    @property
    def is_over(self) -> bool:
        """Whether there is nothing more to do for it in this loop."""
        return self.is_stopping or self.failure is not None or self.run.is_finished or self.run.is_outdated

    def next_plan(self) -> Plan | None:
        if self.is_paused or self.is_over:
            return None
        try:
            return self.run.next_plan()
        except Exception as error:
            self.failure = error
            return None

    def take(self, plan: Plan, outcome: Outcome) -> None:
        """Commits what has run, and tells of it; what goes wrong is this member's failure, and nobody else's."""
        try:
            with self._committing():
                report = self.run.commit(plan, outcome)
            if report is not None:
                self._tell(report)
        except Exception as error:
            self.failure = error


def tick(executor: Executor, members: Iterable[Member]) -> bool:
    """Runs the next micro-batch of every member that has one, in one job; returns whether there was any."""
    planned = {member.run.key: (member, plan) for member in members if (plan := member.next_plan()) is not None}
    if not planned:
        return False
    outcomes = executor.run({key: plan for key, (_, plan) in planned.items()})
    for key, (member, plan) in planned.items():
        member.take(plan, outcomes[key])
    return True


class SharedLoop:
    """A loop in a thread of its own, which applications join and leave while it runs."""

    def __init__(self, executor: Executor, log: TopicLog) -> None:
        self._executor = executor
        self._log = log
        self._changed = threading.Condition()
        self._joining: list[Member] = []
        self._members: list[Member] = []
        self._is_closing = False
        self._failure: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name="headrace-shared-loop", daemon=True)
        self._thread.start()

    def run(self, member: Member) -> None:
        """Blocks until a member is over; raises what it has failed of."""
        with self._changed:
            self._joining.append(member)
            self._changed.notify_all()
            self._changed.wait_for(lambda: self._has_left(member))
        if self._failure is not None:
            raise self._failure
        if member.failure is not None:
            raise member.failure

    def _has_left(self, member: Member) -> bool:
        return (member.is_over and member not in self._members and member not in self._joining) or (
            self._failure is not None
        )

    def close(self) -> None:
        with self._changed:
            self._is_closing = True
            self._changed.notify_all()
        self._thread.join()

    def _run(self) -> None:
        try:
            while not self._is_closing:
                self._let_in_and_out()
                if not self._members:
                    with self._changed:
                        self._changed.wait_for(lambda: self._joining or self._is_closing, 1.0)
                elif not tick(self._executor, self._members):
                    self._wait()
        except BaseException as error:
            logger.exception("the loop of all queries has failed")
            self._failure = error
        finally:
            with self._changed:
                self._changed.notify_all()

    def _let_in_and_out(self) -> None:
        with self._changed:
            joining, self._joining = self._joining, []
            leaving = [member for member in self._members if member.is_over]
        for member in joining:
            try:
                self._executor.add(member.run.application)
                self._members.append(member)
            except Exception as error:
                member.failure = error
        for member in leaving:
            self._executor.remove(member.run.application)
            self._members.remove(member)
        if joining or leaving:
            with self._changed:
                self._changed.notify_all()

    def _wait(self) -> None:
        positions: Offsets = {}
        longest_s = LONGEST_WAIT_S
        for member in self._members:
            if not member.is_paused:
                wanted, within_s = member.run.waits_for()
                positions.update(wanted)
                longest_s = min(longest_s, within_s)
        if longest_s <= 0:
            return
        if positions:
            self._log.wait_for_data(positions, timedelta(seconds=longest_s))
        else:
            time.sleep(longest_s)

"""The loop of micro-batches: one tick runs the next batch of every application that has something to do.

An engine of its own has a loop with one member. Applications that share an executor, as the queries of a SQL server do,
share a loop, too (``shared_loop``): per tick one job with the tasks of all that have input, planned and committed each
for itself.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager, nullcontext, suppress
from datetime import timedelta
from typing import Protocol

from headrace.batches.application_run import ApplicationRun
from headrace.batches.executor import Executor
from headrace.batches.plan import Plan
from headrace.batches.reports import BatchReport, Outcome
from headrace.errors import UnknownTopicError
from headrace.topics.log import Offsets, TopicLog

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
        is_paused: Callable[[], bool] = lambda: False,
        is_stopping: Callable[[], bool] = lambda: False,
    ) -> None:
        self.run = run
        self._tell = tell
        self._committing = committing
        self._is_paused = is_paused
        self._is_stopping = is_stopping
        self.failure: BaseException | None = None

    @property
    def is_over(self) -> bool:
        """Whether there is nothing more to do for it in this loop."""
        return self._is_stopping() or self.failure is not None or self.run.is_finished or self.run.is_outdated

    def next_plan(self) -> Plan | None:
        if self._is_paused() or self.is_over:
            return None
        try:
            return self.run.next_plan()
        except Exception as error:
            self.failure = error
            return None

    def waits_for(self) -> tuple[Offsets, float]:
        """Returns the positions at which there may be something to do, and in how many seconds there is anyway."""
        return ({}, LONGEST_WAIT_S) if self._is_paused() else self.run.waits_for()

    def take(self, plan: Plan, outcome: Outcome) -> None:
        """Commits and reports an outcome; an error fails this member alone."""
        try:
            with self._committing():
                report = self.run.commit(plan, outcome)
            if report is not None:
                self._tell(report)
        except Exception as error:
            self.failure = error


class Loop(Protocol):
    """Runs the micro-batches of members."""

    def run(self, member: Member) -> None:
        """Blocks until a member is over; what it has failed of is in its ``failure``."""
        ...

    def cancel(self, key: str) -> None:
        """Ends what runs of an application, as far as it can be ended, from another thread."""
        ...


Planned = Mapping[str, tuple[Member, Plan]]


def plan_all(members: Iterable[Member]) -> Planned:
    """Returns the members that have a micro-batch to be run now, by the key of their application, with its plan."""
    return {member.run.key: (member, plan) for member in members if (plan := member.next_plan()) is not None}


def tell_moves(executor: Executor, planned: Planned) -> None:
    """Tells members which of their tasks go on elsewhere with the micro-batch that is run next."""
    for key, tasks in executor.moving({key: plan for key, (_, plan) in planned.items()}).items():
        planned[key][0].run.tell_moves(tasks)


def tick(executor: Executor, members: Iterable[Member]) -> bool:
    """Runs the next micro-batch of every member that has one, in one job; returns whether there was any."""
    planned = plan_all(members)
    if not planned:
        return False
    tell_moves(executor, planned)
    outcomes = executor.run({key: plan for key, (_, plan) in planned.items()})
    for key, (member, plan) in planned.items():
        member.take(plan, outcomes[key])
    return True


def wait_for_input(log: TopicLog, members: Iterable[Member], longest_s: float = LONGEST_WAIT_S) -> None:
    """Waits until a member may have something to do, but not for long."""
    positions: Offsets = {}
    for member in members:
        wanted, within_s = member.waits_for()
        positions.update(wanted)
        longest_s = min(longest_s, within_s)
    if longest_s <= 0:
        return
    if positions:
        # A topic that is gone is missed by the member that reads it.
        with suppress(UnknownTopicError):
            log.wait_for_data(positions, timedelta(seconds=longest_s))
    else:
        time.sleep(longest_s)


class SingleLoop:
    """The loop of one application, on an executor of its own."""

    def __init__(self, executor: Executor, log: TopicLog) -> None:
        self._executor = executor
        self._log = log

    def run(self, member: Member) -> None:
        self._executor.add(member.run.application)
        try:
            while not member.is_over:
                if not tick(self._executor, [member]) and not member.is_over:
                    wait_for_input(self._log, [member])
        finally:
            self._executor.remove(member.run.application)

    def cancel(self, key: str) -> None:
        self._executor.cancel([key])

"""A loop that many applications share: per tick one job with the tasks of all that have input.

None of them can hold up the others for long. A job that takes longer than it should is left to itself: the applications
outside of it go on with other jobs, and an application whose tasks took so long gets jobs of its own from then on. If a
job does not end at all, because a function never returns, it is ended, and each application that was in it is tried
alone: the one that hangs then holds up nobody but itself.
"""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Mapping
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from datetime import timedelta

from headrace.batches.executor import Executor
from headrace.batches.loop import LONGEST_WAIT_S, Member, Planned, plan_all, tell_moves, wait_for_input
from headrace.batches.reports import Outcome
from headrace.errors import StreamsError
from headrace.topics.log import TopicLog

logger = logging.getLogger(__name__)

_SLOW_S = 1.0
"""How long a job may hold up applications outside of it, and a task the other applications of its job."""
PATIENCE = timedelta(seconds=20)
_AT_FIRST = 6
"""How many times as long the first micro-batch of an application may take: its tasks are opened, and restored."""
_MOST_JOBS = 64
_MOST_SHARED = 2
"""Jobs of several that run at the same time: more of them would open their tasks in more and more processes."""
_MOST_ALONE = max(4, os.cpu_count() or 1)
"""Jobs of one application each that run at the same time; those that hang do not count."""

Job = Future[Mapping[str, Outcome]]


@dataclass
class _Running:
    """A running job: its applications, and its start."""

    planned: Planned
    since: float
    is_cancelled: bool = False


class SharedLoop:
    """Runs members on one executor, in a thread of its own; they join and leave while it runs.

    ``patience`` is how long a job of several may take until it is ended, and each of them is tried alone.
    """

    def __init__(self, executor: Executor, log: TopicLog, *, patience: timedelta = PATIENCE) -> None:
        self._executor = executor
        self._patience_s = patience.total_seconds()
        self._log = log
        self._changed = threading.Condition()
        self._joining: list[Member] = []
        self._members: list[Member] = []
        self._slow: dict[str, float] = {}
        """Keys of applications whose tasks take long, or may hang, and when each was in a job of its own last."""
        self._known: set[str] = set()
        """Keys of applications that have run a micro-batch."""
        self._jobs: dict[Job, _Running] = {}
        self._pool = ThreadPoolExecutor(_MOST_JOBS, "headrace-job")
        self._is_closing = False
        self._failure: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name="headrace-shared-loop", daemon=True)
        self._thread.start()

    def run(self, member: Member) -> None:
        """Blocks until a member is over; raises if the loop itself has failed."""
        with self._changed:
            self._joining.append(member)
            self._changed.notify_all()
            self._changed.wait_for(lambda: self._failure is not None or self._has_left(member))
        if self._failure is not None:
            message = f"the loop of all applications has failed: {self._failure}"
            raise StreamsError(message) from self._failure

    def _has_left(self, member: Member) -> bool:
        return member.is_over and member not in self._members and member not in self._joining

    def cancel(self, key: str) -> None:
        """Ends the job of an application; others that are in it are run again."""
        self._executor.cancel([key])

    def close(self) -> None:
        with self._changed:
            self._is_closing = True
            self._changed.notify_all()
        self._thread.join()
        self._pool.shutdown(wait=False, cancel_futures=True)

    def _run(self) -> None:
        try:
            while not self._is_closing:
                self._admit_and_release()
                if not self._members and not self._jobs:
                    with self._changed:
                        self._changed.wait_for(lambda: self._joining or self._is_closing, 1.0)
                    continue
                if self._start_jobs() or self._is_one_expected():
                    self._finish_jobs(LONGEST_WAIT_S)
                else:
                    busy = self._running_applications()
                    wait_for_input(self._log, [member for member in self._members if member.run.key not in busy])
                    self._finish_jobs(0)
        except BaseException as error:
            logger.exception("the loop of all applications has failed")
            self._failure = error
        finally:
            with self._changed:
                self._changed.notify_all()

    def _admit_and_release(self) -> None:
        with self._changed:
            joining, self._joining = self._joining, []
        for member in joining:
            try:
                self._executor.add(member.run.application)
                self._members.append(member)
            except Exception as error:
                member.failure = error
        busy = self._running_applications()
        leaving = [member for member in self._members if member.is_over and member.run.key not in busy]
        for member in leaving:
            self._members.remove(member)
            self._known.discard(member.run.key)
            if member.failure is None:
                # One that has failed in a job of its own is tried again in such a one.
                self._slow.pop(member.run.key, None)
            self._executor.remove(member.run.application)
        if joining or leaving:
            with self._changed:
                self._changed.notify_all()

    def _running_applications(self) -> set[str]:
        return {key for running in self._jobs.values() for key in running.planned}

    def _is_one_expected(self) -> bool:
        """Whether there is a job whose end is worth waiting for, as that of one that hangs is not."""
        now = time.monotonic()
        return any(now - running.since < self._patience_s for running in self._jobs.values())

    def _start_jobs(self) -> bool:
        """Starts a job for all applications with input, and one for each slow one; returns whether any was started."""
        now = time.monotonic()
        shared = [each for each in self._jobs.values() if not self._slow.keys() >= each.planned.keys()]
        young = sum(now - running.since < self._patience_s for running in shared)
        if young >= _MOST_SHARED or any(now - running.since < _SLOW_S for running in shared):
            # Applications that are not in the running job come with the next one.
            return False
        busy = self._running_applications()
        planned = plan_all(member for member in self._members if member.run.key not in busy)
        together = {key: planned[key] for key in planned if key not in self._slow}
        if together:
            self._start_job(together, now)
        for key in self._next_alone(planned, now):
            self._start_job({key: planned[key]}, now, apart=True)
        return bool(planned)

    def _start_job(self, planned: Planned, now: float, *, apart: bool = False) -> None:
        plans = {key: plan for key, (_, plan) in planned.items()}
        if not apart:
            tell_moves(self._executor, planned)
        self._jobs[self._pool.submit(self._executor.run, plans, apart=apart)] = _Running(planned, now)

    def _next_alone(self, planned: Planned, now: float) -> list[str]:
        """Returns the slow applications whose turn it is; the one that has waited longest comes first."""
        running = [each for each in self._jobs.values() if self._slow.keys() >= each.planned.keys()]
        places = _MOST_ALONE - sum(now - each.since < self._patience_s for each in running)
        waiting = sorted((key for key in planned if key in self._slow), key=self._slow.__getitem__)
        chosen = waiting[: max(0, places)]
        self._slow.update(dict.fromkeys(chosen, now))
        return chosen

    def _finish_jobs(self, seconds: float) -> None:
        if not self._jobs:
            return
        done, _ = wait(self._jobs, seconds, FIRST_COMPLETED)
        for job in done:
            planned = self._jobs.pop(job).planned
            error = job.exception()
            if error is not None:
                self._take_failure(planned, error)
                continue
            outcomes = job.result()
            self._known.update(planned)
            for key, (member, plan) in planned.items():
                outcome = outcomes[key]
                # To open its tasks takes long once, wherever it is done.
                if sum(report.seconds - report.opening for report in outcome.reports) > _SLOW_S:
                    self._slow.setdefault(key, 0.0)
                else:
                    self._slow.pop(key, None)
                if not member.is_over:
                    member.take(plan, outcome)
        self._end_stuck_jobs()

    def _end_stuck_jobs(self) -> None:
        """Ends jobs of several in which one holds up all the others: nothing is committed before a job has ended."""
        now = time.monotonic()
        for running in self._jobs.values():
            most_s = self._patience_s * (1 if self._known >= running.planned.keys() else _AT_FIRST)
            if len(running.planned) > 1 and now - running.since > most_s and not running.is_cancelled:
                running.is_cancelled = True
                logger.warning("a job of %d applications has not ended after %g s", len(running.planned), most_s)
                self._executor.cancel(running.planned.keys())

    def _take_failure(self, planned: Planned, error: BaseException) -> None:
        """A job as a whole has failed: alone it is the failure of its application; together, each is tried alone."""
        if len(planned) == 1:
            for member, _ in planned.values():
                member.failure = error
            return
        logger.warning("a job of %d applications failed, so each is tried alone: %s", len(planned), error)
        self._slow.update(dict.fromkeys(planned, 0.0))

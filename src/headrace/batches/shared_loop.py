"""A loop that many applications share: per tick one job with the tasks of all that have input.

None of them can hold up the others for long. A job that takes longer than it should is left to itself: who is not in it
goes on with other jobs, and an application whose tasks took so long gets jobs of its own from then on.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Mapping
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait

from headrace.batches.executor import Executor
from headrace.batches.loop import LONGEST_WAIT_S, Member, Planned, plan_all, wait_for_input
from headrace.batches.reports import Outcome
from headrace.errors import StreamsError
from headrace.topics.log import TopicLog

logger = logging.getLogger(__name__)

_SLOW_S = 1.0
"""How long a job may hold up those who are not in it, and a task those who are in the same job."""
_MOST_JOBS = 64

Job = Future[Mapping[str, Outcome]]


class SharedLoop:
    """Runs members on one executor, in a thread of its own; they join and leave while it runs."""

    def __init__(self, executor: Executor, log: TopicLog) -> None:
        self._executor = executor
        self._log = log
        self._changed = threading.Condition()
        self._joining: list[Member] = []
        self._members: list[Member] = []
        self._slow: set[str] = set()
        """Keys of applications whose tasks take long."""
        self._jobs: dict[Job, tuple[Planned, float]] = {}
        """What runs, and since when."""
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

    def cancel(self) -> None:
        """Ends all jobs: what of them was not committed is run again, but for members that are over."""
        self._executor.cancel()

    def close(self) -> None:
        with self._changed:
            self._is_closing = True
            self._changed.notify_all()
        self._thread.join()
        self._pool.shutdown(wait=False, cancel_futures=True)

    def _run(self) -> None:
        try:
            while not self._is_closing:
                self._let_in_and_out()
                if not self._members and not self._jobs:
                    with self._changed:
                        self._changed.wait_for(lambda: self._joining or self._is_closing, 1.0)
                    continue
                if not self._start_jobs() and not self._jobs:
                    wait_for_input(self._log, self._members)
                self._finish_jobs()
        except BaseException as error:
            logger.exception("the loop of all applications has failed")
            self._failure = error
        finally:
            with self._changed:
                self._changed.notify_all()

    def _let_in_and_out(self) -> None:
        with self._changed:
            joining, self._joining = self._joining, []
        for member in joining:
            try:
                self._executor.add(member.run.application)
                self._members.append(member)
            except Exception as error:
                member.failure = error
        busy = self._busy()
        leaving = [member for member in self._members if member.is_over and member.run.key not in busy]
        for member in leaving:
            self._members.remove(member)
            self._slow.discard(member.run.key)
            self._executor.remove(member.run.application)
        if joining or leaving:
            with self._changed:
                self._changed.notify_all()

    def _busy(self) -> set[str]:
        return {key for planned, _ in self._jobs.values() for key in planned}

    def _start_jobs(self) -> bool:
        """Starts a job for all who have input, and one for each that is slow; returns whether there was any."""
        now = time.monotonic()
        running = [since for planned, since in self._jobs.values() if not self._slow.issuperset(planned)]
        if any(now - since < _SLOW_S for since in running):
            # Those who are not in the job that runs come with the next one.
            return False
        busy = self._busy()
        planned = plan_all(member for member in self._members if member.run.key not in busy)
        together = {key: each for key, each in planned.items() if key not in self._slow}
        for several in (together, *({key: each} for key, each in planned.items() if key in self._slow)):
            if several:
                plans = {key: plan for key, (_, plan) in several.items()}
                self._jobs[self._pool.submit(self._executor.run, plans)] = several, now
        return bool(planned)

    def _finish_jobs(self) -> None:
        if not self._jobs:
            return
        done, _ = wait(self._jobs, LONGEST_WAIT_S, FIRST_COMPLETED)
        for job in done:
            planned, _ = self._jobs.pop(job)
            error = job.exception()
            if error is not None:
                self._take_failure(planned, error)
                continue
            outcomes = job.result()
            for key, (member, plan) in planned.items():
                outcome = outcomes[key]
                if sum(report.seconds for report in outcome.reports) > _SLOW_S:
                    self._slow.add(key)
                else:
                    self._slow.discard(key)
                if not member.is_over:
                    member.take(plan, outcome)

    def _take_failure(self, planned: Planned, error: BaseException) -> None:
        """A job as a whole has failed: alone it is the failure of its application; together, each is tried alone."""
        if len(planned) == 1:
            for member, _ in planned.values():
                member.failure = error
            return
        logger.warning("a job of %d applications failed, so each is tried alone: %s", len(planned), error)
        self._slow.update(planned)

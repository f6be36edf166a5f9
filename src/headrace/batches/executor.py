"""Executor protocol, and the executor that runs tasks in this process."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Protocol

from headrace.batches.application import Application
from headrace.batches.plan import Plan
from headrace.batches.reports import Outcome, TaskReport
from headrace.batches.task_runner import TaskRunner, has_work, skip_commit_check
from headrace.errors import ProcessorStateError, StreamsError
from headrace.topics.journal import EdgeBlob


class Executor(Protocol):
    """Runs micro-batches of any number of applications, level after level.

    A task that fails holds back everything behind it in its application, and nothing in others.
    """

    def add(self, application: Application) -> None:
        """Gets ready to run the tasks of an application."""
        ...

    def remove(self, application: Application) -> None:
        """Closes what is open of an application."""
        ...

    def run(self, plans: Mapping[str, Plan], *, apart: bool = False) -> Mapping[str, Outcome]:
        """Runs a micro-batch of each application, by its key.

        One that runs ``apart``, because it takes long, leaves the processes alone in which others have their tasks.
        """
        ...

    def moving(self, plans: Mapping[str, Plan]) -> Mapping[str, Collection[str]]:
        """Returns the tasks with work that will be run elsewhere than they were last, by application; each move once.

        It is only for telling: a move that cannot be foreseen is missing.
        """
        ...

    def cancel(self, keys: Collection[str]) -> None:
        """Ends every job in which one of these applications is, as far as it can be ended, from another thread."""
        ...

    def close(self) -> None: ...


def as_failure(task: str, error: BaseException) -> StreamsError:
    """Returns an error of a task as one of ours, with what was raised as its cause.

    >>> as_failure("0_1", ValueError("no number"))
    ProcessorStateError('task 0_1 failed with ValueError: no number')
    """
    if isinstance(error, StreamsError):
        return error
    message = f"task {task} failed with {type(error).__name__}: {error}"
    failure = ProcessorStateError(message)
    failure.__cause__ = error
    return failure


Arrange = Callable[[list[EdgeBlob]], None]


def _keep_order(blobs: list[EdgeBlob]) -> None:
    """Leaves blobs in the order in which they were sent."""


class LocalExecutor:
    """Runs tasks in this process, one after the other.

    Nothing has to be started for it, so it is there in milliseconds; what it has not is a second core, or a second
    machine. ``check`` is called before every commit and may raise; ``arrange`` may change the order in which blobs
    arrive, as a shuffle would.
    """

    def __init__(self, *, check: Callable[[], None] = skip_commit_check, arrange: Arrange = _keep_order) -> None:
        self._check = check
        self._arrange = arrange
        self._runners: dict[str, tuple[Application, TaskRunner]] = {}

    def add(self, application: Application) -> None:
        self._runners[application.key] = application, TaskRunner(application, check=self._check)

    def remove(self, application: Application) -> None:
        self._runners.pop(application.key)[1].close()

    def run(self, plans: Mapping[str, Plan], *, apart: bool = False) -> Mapping[str, Outcome]:
        return {name: self._run(plan, *self._runners[name]) for name, plan in plans.items()}

    def _run(self, plan: Plan, application: Application, runner: TaskRunner) -> Outcome:
        waiting: dict[str, list[EdgeBlob]] = {}
        reports: list[TaskReport] = []
        for level in range(application.layout.depth):
            for place in application.layout.tasks:
                blobs = waiting.pop(place.name, []) if place.level == level else []
                if place.level != level or not has_work(place, plan, blobs):
                    continue
                self._arrange(blobs)
                try:
                    edges, report = runner.run(place, plan, blobs)
                except Exception as error:
                    return Outcome(reports, as_failure(place.name, error))
                reports.append(report)
                _sort_into(waiting, edges)
        reports += [runner.restore(application.layout.by_name[task]) for task in plan.restores]
        return Outcome(reports)

    def moving(self, plans: Mapping[str, Plan]) -> Mapping[str, Collection[str]]:
        """Returns nothing: there is only one place."""
        return {}

    def cancel(self, keys: Collection[str]) -> None:
        """Does nothing: a function in this process can only be left behind."""

    def close(self) -> None:
        while self._runners:
            self._runners.popitem()[1][1].close()


def _sort_into(waiting: dict[str, list[EdgeBlob]], edges: Iterable[EdgeBlob]) -> None:
    for edge in edges:
        waiting.setdefault(edge.receiver, []).append(edge)

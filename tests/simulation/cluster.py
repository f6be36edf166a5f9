"""Drivers and workers of a history: processes that run the engine's own code.

A driver runs the loop of micro-batches. Its executor gives tasks to workers as Spark does: level after level, each task
in the worker that has it open if that one is free, again elsewhere if a worker is gone or not heard of, and once more
if what it has sent is lost.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from headrace.batches.application import Application
from headrace.batches.application_run import ApplicationRun
from headrace.batches.executor import as_failure
from headrace.batches.layout import Layout, TaskPlace
from headrace.batches.loop import Member, SingleLoop
from headrace.batches.plan import Plan
from headrace.batches.reports import Outcome, TaskReport, TaskResult
from headrace.batches.task_runner import TaskRunner, has_work
from headrace.config import StreamsConfig
from headrace.errors import StreamsError
from headrace.topics.journal import DurableLog, EdgeBlob
from headrace.topology.topology import Topology
from tests.simulation.disk import Disk, DiskPath
from tests.simulation.scheduler import Process, Scheduler
from tests.simulation.threads import Waiters

_MOST_ATTEMPTS = 4
_LOOK_S = 0.5


@dataclass(frozen=True)
class Machines:
    """Where workers run, and what may happen to them there."""

    disks: Sequence[Disk]
    workers: int
    affinity: float
    """That a task runs where it has run before."""
    unheard_s: float
    """After which a worker that does nothing is believed dead."""
    speculation: float
    lost_results: float
    """That what a level has sent is lost, and its tasks are run again."""
    run_behind_failures: bool = False
    """Rule 13 is switched off."""
    standbys: float = 0.0
    """That after a batch a worker keeps a standby copy of a task, or closes what it has of it."""
    decide: Callable[[Plan], None] | None = None
    """Rule 4 is switched off: the driver looks what was committed."""


class Worker:
    """A Python worker: it runs one task at a time, and keeps tasks open."""

    def __init__(self, process: Process, disk: Disk) -> None:
        self.process = process
        self.disk = disk
        self.is_busy = False
        self.runner: TaskRunner | None = None


class _Attempt:
    """A task that a worker is given."""

    def __init__(self, place: TaskPlace, worker: Worker, started: float) -> None:
        self.place = place
        self.worker = worker
        self.started = started
        self.result: TaskResult | None = None
        self.failure: BaseException | None = None
        self.is_over = False


class SimulatedExecutor:
    """Runs micro-batches on workers; see ``headrace.batches.executor.Executor``."""

    def __init__(self, scheduler: Scheduler, name: str, machines: Machines, open_log: Callable[[], DurableLog]) -> None:
        self._scheduler = scheduler
        self._name = name
        self._machines = machines
        self._open_log = open_log
        self._application: Application | None = None
        self._workers: list[Worker] = []
        self._started = 0
        self._of: dict[str, Worker] = {}
        self._changed = Waiters()

    def add(self, application: Application) -> None:
        self._application = application

    def remove(self, application: Application) -> None:
        """Lets workers go: they close their tasks, are killed, or stay behind."""
        for worker in self._workers:
            chance = self._scheduler.rng.random()
            if chance < 0.4:
                worker.process.kill()
            elif chance < 0.8 and not worker.is_busy and worker.runner is not None:
                worker.process.spawn(worker.runner.close, "close")

    def moving(self, plans: Mapping[str, Plan]) -> Mapping[str, Collection[str]]:
        return {}

    def cancel(self, keys: Collection[str]) -> None:
        pass

    def close(self) -> None:
        pass

    def run(self, plans: Mapping[str, Plan], *, apart: bool = False) -> Mapping[str, Outcome]:
        return {key: self._run(plan) for key, plan in plans.items()}

    def _run(self, plan: Plan) -> Outcome:
        application, machines = self._application, self._machines
        assert application is not None, "it was added"
        if machines.decide is not None:
            machines.decide(plan)
        blobs: dict[str, dict[str, Sequence[EdgeBlob]]] = {}
        """By receiver and sender: who is run again sends the same again."""
        results: dict[str, TaskResult] = {}
        failure: BaseException | None = None
        for level in range(application.layout.depth):
            work = [
                (place, own)
                for place in application.layout.tasks
                if place.level == level and has_work(place, plan, own := _received(blobs, place.name))
            ]
            failure = self._run_level(work, plan, results, blobs) or failure
            if failure is not None and not machines.run_behind_failures:
                break
            while self._scheduler.chance(machines.lost_results) and failure is None:
                self._scheduler.note(None, f"results of level {level} are lost")
                failure = self._run_level(work, plan, results, blobs, first_attempt=1)
            if failure is not None and not machines.run_behind_failures:
                break
        reports = [result.report for result in results.values()]
        if failure is None:
            reports += [self._restore(task) for task in plan.restores]
        while machines.standbys and self._scheduler.chance(machines.standbys):
            self._stand_by(application.layout.tasks)
        return Outcome(reports, failure)

    def _run_level(
        self,
        work: Sequence[tuple[TaskPlace, list[EdgeBlob]]],
        plan: Plan,
        results: dict[str, TaskResult],
        blobs: dict[str, dict[str, Sequence[EdgeBlob]]],
        first_attempt: int = 0,
    ) -> BaseException | None:
        """Runs tasks until each has a result or a failure; returns the first failure."""
        failure: BaseException | None = None
        received = {place.name: own for place, own in work}
        attempts = dict.fromkeys(received, first_attempt)
        running = {place.name: self._start(place, plan, own, first_attempt) for place, own in work}
        while running:
            self._changed.wait_for(lambda: any(each.is_over for each in running.values()), _LOOK_S)
            for name, attempt in list(running.items()):
                if attempt.is_over:
                    del running[name]
                    if attempt.result is None:
                        failure = failure or attempt.failure
                    else:
                        results[name] = attempt.result
                        _send(blobs, name, attempt.result.edges)
                elif attempt.worker.process.is_dead or self._is_unheard(attempt):
                    attempts[name] += 1
                    if attempts[name] > _MOST_ATTEMPTS:
                        message = f"task {name} was tried too often"
                        raise StreamsError(message)
                    self._workers = [each for each in self._workers if each is not attempt.worker]
                    running[name] = self._start(attempt.place, plan, received[name], attempts[name])
        return failure

    def _is_unheard(self, attempt: _Attempt) -> bool:
        now = self._scheduler.now
        if now - attempt.started > self._machines.unheard_s:
            return True
        return self._scheduler.chance(self._machines.speculation)

    def _start(self, place: TaskPlace, plan: Plan, blobs: list[EdgeBlob], number: int) -> _Attempt:
        worker = self._choose(place)
        attempt = _Attempt(place, worker, self._scheduler.now)
        worker.is_busy = True
        arrived = list(blobs)
        self._scheduler.rng.shuffle(arrived)

        def run() -> None:
            try:
                attempt.result = self._runner(worker).run(place, plan, arrived, attempt=number)
            except StreamsError as error:
                attempt.failure = as_failure(place.name, error)
            except Exception as error:
                self._scheduler.fail(error)
            worker.is_busy = False
            attempt.is_over = True
            self._changed.wake()

        worker.process.spawn(run, f"{place.name}@{plan.batch_id}#{number}")
        return attempt

    def _restore(self, task: str) -> TaskReport:
        application = self._application
        assert application is not None, "it was added"
        place = application.layout.by_name[task]
        worker = self._choose(place)
        worker.is_busy = True
        found: list[TaskReport] = []
        over = [False]

        def run() -> None:
            try:
                found.append(self._runner(worker).restore(place))
            except StreamsError as error:
                self._scheduler.note(worker.process, f"{task} is not restored: {error}")
            worker.is_busy = False
            over[0] = True
            self._changed.wake()

        worker.process.spawn(run, f"restore {task}")
        self._changed.wait_for(lambda: over[0] or worker.process.is_dead, self._machines.unheard_s)
        if not found:
            message = f"task {task} could not be restored"
            raise StreamsError(message)
        return found[0]

    def _stand_by(self, places: Sequence[TaskPlace]) -> None:
        """Lets a worker that has nothing to do follow a task, whoever runs it, or let it go; nobody waits for that."""
        rng = self._scheduler.rng
        free = [each for each in self._workers if not each.process.is_dead and not each.is_busy]
        if not free:
            return
        place, worker, keeps = rng.choice(places), rng.choice(free), rng.random() < 0.7
        worker.is_busy = True

        def run() -> None:
            try:
                runner = self._runner(worker)
                if keeps:
                    runner.follow(place)
                else:
                    runner.close_task(place)
            except StreamsError as error:
                self._scheduler.note(worker.process, f"{place.name} is not followed: {error}")
            except Exception as error:
                self._scheduler.fail(error)
            worker.is_busy = False
            self._changed.wake()

        worker.process.spawn(run, f"{'follow' if keeps else 'let go'} {place.name}")

    def _choose(self, place: TaskPlace) -> Worker:
        known = self._of.get(place.name)
        free = [each for each in self._workers if not each.process.is_dead and not each.is_busy]
        if known in free and self._scheduler.rng.random() < self._machines.affinity:
            return known
        self._workers = [each for each in self._workers if not each.process.is_dead]
        if not free or len(self._workers) < self._machines.workers:
            self._started += 1
            process = Process(self._scheduler, f"{self._name}-w{self._started}")
            worker = Worker(process, self._machines.disks[self._started % len(self._machines.disks)])
            process.on_death.append(self._changed.wake)
            self._workers.append(worker)
        else:
            worker = free[int(self._scheduler.rng.random() * len(free))]
        self._of[place.name] = worker
        return worker

    def _runner(self, worker: Worker) -> TaskRunner:
        if worker.runner is None:
            application = self._application
            assert application is not None, "it was added"
            directory = DiskPath(worker.disk, application.id)
            own = replace(application, log=self._open_log(), directory=directory)  # type: ignore[arg-type]
            worker.runner = TaskRunner(own)
        return worker.runner


def _received(blobs: Mapping[str, Mapping[str, Sequence[EdgeBlob]]], task: str) -> list[EdgeBlob]:
    return [edge for sent in blobs.get(task, {}).values() for edge in sent]


def _send(blobs: dict[str, dict[str, Sequence[EdgeBlob]]], sender: str, edges: Sequence[EdgeBlob]) -> None:
    """Hands blobs to their receivers, in place of those that the sender has sent before."""
    for sent in blobs.values():
        sent.pop(sender, None)
    for edge in edges:
        sent = blobs.setdefault(edge.receiver, {})
        sent[sender] = [*sent.get(sender, ()), edge]


_layouts: dict[tuple[int, int, tuple[tuple[str, int], ...]], Layout] = {}


def _shared(layout: Layout) -> Layout:
    """Returns one layout for all that are equal: they never change, and what follows from them is found out once."""
    key = id(layout.topology), id(layout.config), tuple(sorted(layout.partitions.items()))
    return _layouts.setdefault(key, layout)


class Driver:
    """A process that runs the application until it is stopped, fails or dies."""

    def __init__(
        self,
        scheduler: Scheduler,
        number: int,
        topology: Topology,
        config: StreamsConfig,
        machines: Machines,
        open_log: Callable[[], DurableLog],
        prepare: Callable[[DurableLog, Topology, StreamsConfig], None],
        on_started: Callable[[int], None],
    ) -> None:
        self.process = Process(scheduler, f"d{number}")
        self._scheduler = scheduler
        self._topology, self._config, self._machines = topology, config, machines
        self._open_log, self._prepare, self._on_started = open_log, prepare, on_started
        self.is_stopping = False
        self.failure: BaseException | None = None
        self.batches = 0
        self._actor = self.process.spawn(self._drive, "driver")

    @property
    def is_over(self) -> bool:
        return self.process.is_dead or self._actor.is_over

    def _drive(self) -> None:
        try:
            log = self._open_log()
            self._prepare(log, self._topology, self._config)
            layout = _shared(Layout.on(log, self._topology, self._config))
            executor = SimulatedExecutor(self._scheduler, self.process.name, self._machines, self._open_log)
            run = ApplicationRun(layout, log, DiskPath(Disk(), "driver"))  # type: ignore[arg-type]
            self._scheduler.note(self.process, f"has number {run.application.incarnation}")
            self._on_started(run.application.incarnation)
            member = Member(run, self._tell, is_stopping=lambda: self.is_stopping)
            try:
                SingleLoop(executor, log).run(member)
            finally:
                run.close()
            if member.failure is not None:
                raise member.failure
        except StreamsError as error:
            self.failure = error
            self._scheduler.note(self.process, f"fails: {type(error).__name__}: {error}")
        except Exception as error:
            self._scheduler.fail(error)

    def _tell(self, report: object) -> None:
        self.batches += 1

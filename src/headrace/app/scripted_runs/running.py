"""Many scripted programs on one executor, each with a log, a journal and a clock of its own."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

from headrace.app.scripted_runs.hosted import Hosted
from headrace.app.scripted_runs.script import Script
from headrace.batches.application_run import ApplicationRun
from headrace.batches.executor import Executor
from headrace.batches.layout import Layout
from headrace.batches.loop import Member, tick
from headrace.topics.embedded import EmbeddedLog


class HostedPrograms:
    """Programs that run together once; a failure ends the one that it is of."""

    def __init__(self, programs: Sequence[Hosted], directory: Path) -> None:
        self._programs = programs
        self._directory = directory
        self._logs: dict[str, EmbeddedLog] = {}
        self.layouts: dict[str, Layout] = {}
        for each in programs:
            log = self._logs[each.name] = EmbeddedLog(directory / "logs" / each.name, sync="none", map_size=1 << 24)
            each.make_topics(log)
            self.layouts[each.name] = Layout.on(log, each.topology, each.config)

    def run(self, executor: Executor) -> int:
        """Runs all scripts to their ends; returns how many jobs it took."""
        runs = {each.name: (each, Member(self._run_of(each), lambda _report: None)) for each in self._programs}
        for _, member in runs.values():
            executor.add(member.run.application)
        jobs = 0
        try:
            while runs:
                jobs += tick(executor, [member for _, member in runs.values()])
                for name, (hosted, member) in list(runs.items()):
                    if member.is_over:
                        hosted.failure = member.failure
                        del runs[name]
                        executor.remove(member.run.application)
                        member.run.close()
        finally:
            for _, member in runs.values():
                member.run.close()
        return jobs

    def _run_of(self, hosted: Hosted) -> ApplicationRun:
        return ApplicationRun(
            self.layouts[hosted.name],
            self._logs[hosted.name],
            self.state_directory(hosted.name),
            key=hosted.name,
            planner=lambda layout, log, _state: Script(hosted, layout, log),
        )

    def log(self, name: str) -> EmbeddedLog:
        return self._logs[name]

    def state_directory(self, name: str) -> Path:
        """Returns where the working copies of a program are."""
        return self._directory / "state" / name

    def close(self) -> None:
        while self._logs:
            self._logs.popitem()[1].close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

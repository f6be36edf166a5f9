"""Cases on Spark: many of them side by side, a record of each in every job.

The queries of a case run one after the other, because a later one reads what an earlier one wrote. So the first queries
of all cases run together, then all the second ones, and so on.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory

from headrace.app.scripted_runs.hosted import Hosted, Step
from headrace.errors import StreamsError
from headrace.sql.catalog.persistent_query import PersistentQuery
from headrace.topics.log import Output
from qtt_cases.case import Case
from qtt_cases.driving import Run, config_of, inputs_of, take
from qtt_cases.judge import judge_error, judge_run, judge_statements
from spark_host.run import Hosting

_QUERIES_PER_PACK = 100


@dataclass
class _Running:
    """A case whose statements were carried out, and how far its queries have run."""

    case: Case
    run: Run
    done: int = 0
    failure: BaseException | None = None

    def next(self) -> PersistentQuery | None:
        waiting = self.run.queries[self.done :]
        return waiting[0] if waiting and self.failure is None else None


@dataclass
class _Job:
    """The next query of a case as a program."""

    running: _Running
    query: PersistentQuery
    records: list[tuple[str, Output]]
    hosted: Hosted = field(init=False)

    def host(self, name: str) -> Hosted:
        topics = dict.fromkeys([*self.query.source_topics, self.query.sink_topic], 1)
        steps = [Step([(topic, [output])]) for topic, output in self.records]
        config = config_of(self.query)
        self.hosted = Hosted(name, self.query.topology, config, topics, [self.query.sink_topic], steps)
        return self.hosted

    def finish(self) -> None:
        topic = self.query.sink_topic
        written = [raw for answer in self.hosted.answers for raw in answer.get((topic, 0), ())]
        take(self.running.run, topic, [(None, raw[1], raw[2], raw[3], raw[4]) for raw in written])
        self.running.done += 1


def run_packs(
    cases: Sequence[Case], *, on_spark: bool, told: Callable[[str], None] = print
) -> list[tuple[str, str | None]]:
    """Runs cases and returns the id of each with its first difference."""
    results: dict[str, str | None] = {}
    waiting: list[_Running] = []
    for case in cases:
        try:
            outcome = judge_statements(case)
        except Exception as error:
            results[case["id"]] = f"{type(error).__name__}: {error}"
            continue
        if isinstance(outcome, Run):
            waiting.append(_Running(case, outcome))
        else:
            results[case["id"]] = outcome.difference
    while jobs := [
        _Job(running, query, inputs_of(running.case, running.run, query))
        for running in waiting
        if (query := running.next()) is not None
    ]:
        for start in range(0, len(jobs), _QUERIES_PER_PACK):
            _run_together(jobs[start : start + _QUERIES_PER_PACK], on_spark=on_spark, told=told)
    for running in waiting:
        results[running.case["id"]] = _verdict(running)
    return [(case["id"], results[case["id"]]) for case in cases]


def _run_together(jobs: Sequence[_Job], *, on_spark: bool, told: Callable[[str], None]) -> None:
    with TemporaryDirectory(prefix="qtt-") as folder:
        hosting = Hosting([job.host(f"p{number}") for number, job in enumerate(jobs)], Path(folder))
        try:
            hosting.run(on_spark=on_spark)
        finally:
            hosting.close()
    told(f"{len(jobs)} queries in {hosting.batches} jobs, {hosting.seconds:.0f} s")
    for job in jobs:
        if job.hosted.failure is not None:
            job.running.failure = job.hosted.failure
        else:
            job.finish()


def _verdict(running: _Running) -> str | None:
    if running.failure is None:
        return judge_run(running.case, running.run)
    expected = running.case["expectedException"]
    if expected is not None and isinstance(running.failure, StreamsError):
        return judge_error(expected, running.failure)
    return f"{type(running.failure).__name__}: {running.failure}"

"""Cases on Spark: all of them side by side, each with a log and a clock of its own.

The records of a step are read one after the other, a micro-batch for each, so that a case means the same here and on
the test driver.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from headrace.app.scripted_runs.hosted import Hosted
from headrace.app.scripted_runs.hosted import Step as Moment
from headrace.app.scripted_runs.running import HostedPrograms
from headrace.cli.case_files import Case, CaseFile, Step
from headrace.cli.cases import Formats, Outcome, difference, inputs_of, watched
from headrace.cli.targets import load_topology
from headrace.config import StreamsConfig
from headrace.errors import StreamsError
from headrace.spark.executor import SparkExecutor
from headrace.topics.log import Output
from headrace.topology import Topology

# Several updates of a row in one micro-batch are one update for a cache; the driver has them in batches of their own.
_WITHOUT_CACHES = {"statestore.cache.max.bytes": 0}

# One core has one Python worker, which keeps every task open from one micro-batch to the next.
_SETTINGS = {"spark.master": "local[1,1]"}


@dataclass
class _Run:
    """A case as a program with a script."""

    case: Case
    topology: Topology
    config: StreamsConfig
    formats: Formats
    moments: list[tuple[int, Moment]] = field(default_factory=list)
    """What happens, each with the index of its step."""
    failure: tuple[int, StreamsError] | None = None
    """What went wrong in which step: there nothing was compared."""

    def __post_init__(self) -> None:
        now_ms = 0
        for index, step in enumerate(self.case.steps):
            now_ms += step.advance_ms
            try:
                records = [(record["topic"], self.formats.input_of(record, now_ms)) for record in step.input]
            except StreamsError as error:
                self.failure = index, error
                return
            if step.advance_ms:
                self.moments.append((index, Moment(advance_ms=step.advance_ms)))
            self.moments += [(index, Moment([(topic, [record])])) for topic, record in records]

    def hosted(self, name: str) -> Hosted:
        written = {node.topic for node in self.topology.sink_nodes if isinstance(node.topic, str)}
        topics = {*inputs_of(self.topology), *written, *watched(self.case)}
        topics |= {topic for _, moment in self.moments for topic, _ in moment.records}
        external = sorted(topic for topic in topics if not self.topology.is_internal(topic))
        moments = [moment for _, moment in self.moments]
        return Hosted(name, self.topology, self.config, dict.fromkeys(external, 1), watched(self.case), moments)

    def outcome(self, hosted: Hosted) -> Outcome:
        """Compares what the program has answered."""
        for index, step in enumerate(self.case.steps):
            if self.failure is not None and self.failure[0] == index:
                error = self.failure[1]
                different: str | None = f"{type(error).__name__}: {error}"
            else:
                different = self._compare(index, step, hosted)
            if different is not None:
                return Outcome(self.case.name, f"step {index + 1}: {different}")
        return Outcome(self.case.name)

    def _compare(self, index: int, step: Step, hosted: Hosted) -> str | None:
        found: dict[str, list[Output]] = {topic: [] for topic in watched(self.case)}
        for (moment_of, _), answer in zip(self.moments, hosted.answers, strict=False):
            if moment_of == index:
                for (topic, partition), raws in answer.items():
                    found[topic] += [(partition, *raw[1:]) for raw in raws]
        try:
            return difference(step, found, self.formats)
        except StreamsError as error:
            return f"{type(error).__name__}: {error}"


def run_files_on_spark(files: Sequence[CaseFile]) -> Iterator[tuple[CaseFile, Outcome]]:
    """Runs the cases of files, and yields what came of them in their order."""
    runs: list[tuple[CaseFile, _Run]] = []
    for file in files:
        config = StreamsConfig.of(_config(file))
        topology = load_topology(file.topology, config, file.path.parent)
        formats = Formats(topology, config, file.topics)
        runs += [(file, _Run(case, topology, config, formats)) for case in file.cases]
    hosted = [run.hosted(f"c{number}") for number, (_, run) in enumerate(runs)]
    if hosted:
        _run_together(hosted)
    for (file, run), program in zip(runs, hosted, strict=True):
        if isinstance(program.failure, StreamsError):
            run.failure = run.moments[len(program.answers)][0], program.failure
        yield file, run.outcome(program)


def _config(file: CaseFile) -> dict[str, Any]:
    names = {"statestore.cache.max.bytes", "statestore_cache_max_bytes", "cache.max.bytes.buffering"}
    return dict(file.config) if names & file.config.keys() else {**_WITHOUT_CACHES, **file.config}


def _run_together(programs: Sequence[Hosted]) -> None:
    config = StreamsConfig.of({**_SETTINGS, **programs[0].config.extras})
    with TemporaryDirectory(prefix="headrace-test-") as name:
        executor = SparkExecutor(config, Path(name) / "spark")
        try:
            with HostedPrograms(programs, Path(name)) as hosted:
                hosted.run(executor)
        finally:
            executor.close()

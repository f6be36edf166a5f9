"""Runs cases on Spark: many side by side in one job per step."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from golden_cases.case import Case
from golden_cases.drive import Observed, innermost, java_name, rows, store_nodes
from golden_cases.effects import EffectFile
from headrace import StreamsConfig, Topology
from headrace.app.scripted_runs.hosted import Hosted, Step
from headrace.topics.log import Raw
from spark_host.run import Hosting


@dataclass
class SparkRun:
    """One run of one case."""

    case: Case
    topology: Topology
    config: StreamsConfig
    effects: EffectFile
    observed: Observed = field(default_factory=Observed)

    def hosted(self, name: str) -> Hosted:
        outputs = sorted(self.case["outputs"])
        return Hosted(
            name,
            self.topology,
            self.config,
            dict.fromkeys([*self.case["topics"], *outputs], 1),
            outputs,
            [_step(step) for step in self.case["steps"]],
            after_step=lambda _: self.observed.effects.append(self.effects.take()),
        )

    def take(self, hosted: Hosted) -> None:
        """Takes over what the topics have got."""
        for answer in hosted.answers:
            found = [_row(topic, raw) for topic in hosted.watched for raw in answer.get((topic, 0), ())]
            self.observed.steps.append(found)

    def fail(self, error: BaseException) -> None:
        """Notes what ended the run."""
        self.observed.failure = error
        self.observed.steps.append({"error": java_name(error), "cause": java_name(innermost(error))})
        self.observed.effects.append(self.effects.take())


def run_together(runs: Sequence[SparkRun], directory: Path, *, on_spark: bool, restart_every: int = 0) -> int:
    """Runs cases side by side, those that throw included; returns how many jobs it took."""
    hosted = [run.hosted(f"p{number}") for number, run in enumerate(runs)]
    hosting = Hosting(hosted, directory)
    try:
        hosting.run(on_spark=on_spark, restart_every=restart_every)
        for run, program in zip(runs, hosted, strict=True):
            run.take(program)
            if program.failure is not None:
                run.fail(program.failure)
                continue
            run.observed.dropped = int(program.counters.get("dropped-records-total", 0))
            stores = hosting.stores(program.name)
            run.observed.stores = {name: rows(stores, run.case, node) for name, node in store_nodes(run.case)}
            stores.close()
    finally:
        hosting.close()
    return hosting.batches


def _step(step: Case) -> Step:
    if "advance_ms" in step:
        return Step(advance_ms=step["advance_ms"])
    headers = tuple((name, value.encode()) for name, value in step.get("headers", ()))
    return Step([(step["topic"], [(None, step["ts"], _bytes(step["key"]), _bytes(step["value"]), headers)])])


def _bytes(text: str | None) -> bytes | None:
    return None if text is None else text.encode()


def _text(data: bytes | None) -> str | None:
    return None if data is None else data.decode()


def _row(topic: str, raw: Raw) -> tuple[object, ...]:
    _, timestamp_ms, key, value, headers = raw
    return topic, _text(key), _text(value), timestamp_ms, tuple((name, _text(each)) for name, each in headers)

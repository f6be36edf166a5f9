"""An application that is looked at without one that runs: a fake at the seam, above an embedded log."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from headrace import Consumed, EmbeddedLog, KStream, Materialized, Produced, Serdes, StreamsBuilder, StreamsConfig
from headrace.console.asgi_application import make_application
from headrace.console.monitored_application import Failed
from headrace.console.recorder import Recorder
from headrace.metrics.names import Metrics
from headrace.metrics.recording import Recording
from headrace.runtime.late_samples import LateSample
from headrace.runtime.measures import Measure
from headrace.topics.log import TopicLog
from headrace.topology.topology import Topology
from tests.console.client import Client


def counting(builder: StreamsBuilder) -> None:
    words: KStream[Any, Any] = builder.stream("words", Consumed(name="words-source"))
    counts = words.group_by_key().count(materialized=Materialized("counts"))
    counts.to_stream().to("out", Produced(value_serde=Serdes.long(), name="out-sink"))


@dataclass(frozen=True)
class Batch:
    batch_id: int = 0
    records_in: int = 0
    records_out: int = 0
    duration_ms: float = 10.0
    lag: int = 0
    state_rows: int = 0
    dropped: int = 0
    late: int = 0
    phases: dict[str, float] = field(default_factory=lambda: {"wait": 1.0, "run": 8.0, "publish": 1.0})
    tasks: tuple[Any, ...] = ()


@dataclass(frozen=True)
class TaskFigures:
    task: str = "0_0"
    records: int = 0
    written: int = 0
    rows: int = 0
    seconds: float = 0.01
    counters: dict[str, float] = field(default_factory=dict)
    consumed: dict[str, int] = field(default_factory=dict)
    produced: dict[str, int] = field(default_factory=dict)
    nodes: dict[str, int] = field(default_factory=dict)
    measures: dict[str, Measure] = field(default_factory=dict)
    late: tuple[LateSample, ...] = ()
    restored: int = 0


class FakeObserved:
    """What a test says that an application is."""

    def __init__(self, directory: Path, **settings: Any) -> None:
        self.config = StreamsConfig.of({"application_id": "app", "state_dir": str(directory), **settings})
        builder = StreamsBuilder(self.config)
        counting(builder)
        self.topology: Topology = builder.build(self.config)
        self._log = EmbeddedLog(directory / "log", sync="none")
        for topic, partitions in {"words": 2, "out": 1, "app-counts-changelog": 2}.items():
            self._log.create_topic(topic, partitions=partitions)
        self.log_failure: Exception | None = None
        self.state_name = "RUNNING"
        self.state_since_ms = 0
        self.is_paused = False
        self.started_ms: int | None = 0
        self.failures: Sequence[Failed] = ()
        self.recording = Recording("app")

    @property
    def log(self) -> TopicLog:
        if self.log_failure is not None:
            raise self.log_failure
        return self._log

    def metrics(self) -> Metrics:
        return Metrics(self.recording.values(), self.recording.summary())

    def close(self) -> None:
        self._log.close()


class Clock:
    def __init__(self) -> None:
        self.now_ms = 1_000_000

    def __call__(self) -> int:
        return self.now_ms


class Site:
    """The console of a fake, without a socket."""

    def __init__(self, directory: Path, *, token: str | None = None, **settings: Any) -> None:
        self.observed = FakeObserved(directory, **settings)
        self.clock = Clock()
        self.recorder = Recorder(self.observed, now_ms=self.clock)
        application = make_application(None, self.observed, self.recorder, token=token)
        self.client = Client(application)

    def get(self, path: str, **options: Any) -> Any:
        return self.client.get(path, **options)

    def close(self) -> None:
        self.client.close()
        self.observed.close()

"""An engine that does what a test tells it, and an application around it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from queue import SimpleQueue
from typing import Any, cast

from headrace import Materialized, StreamsBuilder, StreamsConfig
from headrace.app import Streams, StreamsState
from headrace.batches.batch_engine import EngineListener
from headrace.batches.reports import BatchReport
from headrace.errors import StreamsError
from headrace.topics.embedded import EmbeddedLog
from headrace.topics.journal import DurableLog
from headrace.topology.topology import Topology

SOON = 20.0
"""Seconds after which a test is taken to hang."""

Action = Callable[[EngineListener], object]


class FakeEngine:
    """Runs actions in its thread, one after the other: ``engine.do(started)``. ``stop`` ends ``run``."""

    def __init__(
        self,
        topology: Topology,
        config: StreamsConfig,
        log: DurableLog,
        *,
        listener: EngineListener,
        directory: Path,
        keep_open: Sequence[int] = (),
    ) -> None:
        self.config, self.log, self.directory = config, log, directory
        self.runs: list[bool] = []
        self.paused: list[bool] = []
        self.is_stopped = False
        self._listener = listener
        self._actions: SimpleQueue[Action | None] = SimpleQueue()

    def do(self, *actions: Action | None) -> None:
        for action in actions:
            self._actions.put(action)

    def run(self, *, until_end: bool = False) -> None:
        self.runs.append(until_end)
        while (action := self._actions.get(timeout=SOON)) is not None:
            action(self._listener)

    def stop(self) -> None:
        self.is_stopped = True
        self._actions.put(None)

    def cancel(self) -> None:
        self.stop()

    def pause(self) -> None:
        self.paused.append(True)

    def resume(self) -> None:
        self.paused.append(False)

    def metrics(self) -> dict[str, Any]:
        return {"batches": 7}


def started(listener: EngineListener) -> None:
    listener.on_started()


def batch(number: int) -> Action:
    return lambda listener: listener.on_batch(cast("BatchReport", number))


def fails(error: BaseException | None = None) -> Action:
    def act(listener: EngineListener) -> None:
        raise StreamsError("boom") if error is None else error

    return act


END = None
"""Lets the engine's ``run`` return by itself."""


class Engines:
    """Makes fake engines, which begin with the actions given here."""

    def __init__(self, *actions: Action | None) -> None:
        self._actions = actions
        self.made: list[FakeEngine] = []

    def __call__(self, *args: Any, **options: Any) -> FakeEngine:
        engine = FakeEngine(*args, **options)
        engine.do(*self._actions)
        self.made.append(engine)
        return engine

    @property
    def one(self) -> FakeEngine:
        (engine,) = self.made
        return engine


class States:
    """A state listener that remembers, and can be waited on."""

    def __init__(self) -> None:
        self.seen: list[StreamsState] = []
        self._news: SimpleQueue[StreamsState] = SimpleQueue()

    def __call__(self, new: StreamsState, old: StreamsState) -> None:
        self.seen.append(new)
        self._news.put(new)

    def until(self, wanted: StreamsState) -> None:
        while self._news.get(timeout=SOON) is not wanted:
            pass


def counting(store: str = "counts", *, source: str = "in", sink: str = "out") -> Topology:
    """Counts by key, into a store that can be queried."""
    builder = StreamsBuilder()
    counts = builder.stream(source).group_by_key().count(materialized=Materialized(store))
    counts.to_stream().to(sink)
    return builder.build()


def config(tmp_path: Path, **settings: Any) -> StreamsConfig:
    return StreamsConfig(**{"application_id": "app", "state_dir": tmp_path, "log_sync": "none", **settings})


def make_topics(tmp_path: Path, **partitions: int) -> None:
    with EmbeddedLog(tmp_path / "log", sync="none") as log:
        for name, number in partitions.items():
            log.create_topic(name, partitions=number)


def application(tmp_path: Path, engines: Engines, topology: Topology | None = None, **settings: Any) -> Streams:
    return Streams(topology or counting(), config(tmp_path, **settings), engine=engines)

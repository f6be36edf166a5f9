"""A query that is cancelled while Spark starts it; what stands for Spark here does only that."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest

from headrace import EmbeddedLog, StreamsBuilder, StreamsConfig
from headrace.spark import query as query_module
from headrace.spark.layout import Program
from headrace.spark.planner import Planner
from headrace.spark.query import Query

SOON = 20.0


class Started:
    """Stands for Spark's handle of a query."""

    def __init__(self) -> None:
        self.stopped = threading.Event()

    def stop(self) -> None:
        self.stopped.set()

    def awaitTermination(self) -> None:
        assert self.stopped.wait(SOON)


class CancelledWhileItStarts(Query):
    """Is cancelled before there is a handle."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.started = Started()
        # What leads from a frame to the start of its query.
        self.writeStream = self

    def _levels(self, *_: Any) -> Any:
        return self

    def foreachBatch(self, _runner: Any) -> CancelledWhileItStarts:
        return self

    def queryName(self, _name: str) -> CancelledWhileItStarts:
        return self

    def option(self, _name: str, _value: str) -> CancelledWhileItStarts:
        return self

    def start(self) -> Started:
        self.cancel()
        return self.started


def test_query_that_is_cancelled_while_it_starts_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(query_module, "open_session", lambda *_, **__: None)
    monkeypatch.setattr(query_module, "close_session", lambda _session: None)
    log = EmbeddedLog(tmp_path / "log", sync="none")
    log.create_topic("in")
    log.create_topic("out")
    builder = StreamsBuilder()
    builder.stream("in").to("out")
    config = StreamsConfig.of({"application_id": "app", "state_dir": str(tmp_path)})
    program = Program.on(log, builder.build(), config)
    query = CancelledWhileItStarts({"": program}, log, directory=tmp_path / "app", checkpoint=tmp_path / "checkpoint")
    stopping, paused = threading.Event(), threading.Event()
    planner = Planner(query.application, available_now=False, stopping=stopping, paused=paused)
    query.run(planner, on_batch=lambda _batch, _tasks: None, stopping=stopping)
    assert query.started.stopped.is_set()

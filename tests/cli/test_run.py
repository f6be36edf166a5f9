from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, cast

import pytest

from headrace import Serdes
from headrace.app.streams import Streams
from headrace.batches.reports import BatchReport
from headrace.errors import ProcessingError
from headrace.topics.embedded import EmbeddedLog
from tests.app.kit import END, Action, Engines, fails, started
from tests.cli.conftest import Command

TARGET = "examples.word_count:build"


@dataclass(frozen=True)
class Report:
    batch_id: int = 0
    records_in: int = 1_200
    records_out: int = 300
    duration_ms: float = 12.5
    lag: int = 7
    state_rows: int = 40
    dropped: int = 0
    late: int = 2
    changelogged: int = 40
    phases: Mapping[str, float] = field(default_factory=lambda: {"run": 10.0})


def batch(report: Report) -> Action:
    return lambda listener: listener.on_batch(cast("BatchReport", report))


Start = Callable[..., Engines]


@pytest.fixture
def engines(monkeypatch: pytest.MonkeyPatch) -> Start:
    """Makes `headrace run` use engines that do what the test says."""

    def use(*actions: Action | None) -> Engines:
        made = Engines(*actions)
        monkeypatch.setattr("headrace.cli.run.Streams", partial(Streams, engine=made))
        return made

    return use


def test_run_until_the_end(headrace: Command, log: EmbeddedLog, engines: Start) -> None:
    log.create_topic("lines")
    made = engines(started, batch(Report()), END)
    done = headrace("run", TARGET, "--until-end")
    assert made.one.runs == [True]
    assert made.one.directory.name == "word_count"
    assert "word_count: running\n" in done.err
    assert "word_count: 1,200 records read, 300 written, 40 to changelogs, 2 late, 1 micro-batch in" in done.err
    assert done.out == ""


def test_batches_as_json(headrace: Command, log: EmbeddedLog, engines: Start) -> None:
    log.create_topic("lines")
    engines(started, batch(Report()), batch(Report(1)), END)
    done = headrace("run", TARGET, "--until-end", "--json", "--quiet")
    assert [row["batch_id"] for row in done.rows] == [0, 1]
    assert done.rows[0]["phases"] == {"run": 10.0}
    assert done.err == ""


def test_names_and_settings(headrace: Command, log: EmbeddedLog, engines: Start, tmp_path: Any) -> None:
    log.create_topic("lines")
    made = engines(started, END)
    headrace("run", TARGET, "--until-end", "--application-id", "counting", "--set", "spark.master=local[1,4]")
    (tmp_path / "app.json").write_text(json.dumps({"application.id": "from-file"}))
    headrace("run", TARGET, "--until-end", "--config", tmp_path / "app.json")
    assert [engine.directory.name for engine in made.made] == ["counting", "from-file"]


MODULE = """
from datetime import timedelta
from headrace import Response, Serdes, StreamsConfig

config = StreamsConfig(
    application_id="shouting", commit_interval=timedelta(seconds=1), extras={"spark.master": "local[1,4]"}
)

def skip(context, error):
    return Response.resume()

def build(builder):
    builder.stream("lines").to("loud")
"""


def test_config_of_the_module_is_taken_and_options_go_before_it(
    headrace: Command, log: EmbeddedLog, engines: Start, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "shouting_module.py").write_text(MODULE)
    log.create_topic("lines")
    made = engines(started, END)
    headrace("run", "shouting_module", "--until-end")
    headrace(
        *("run", "shouting_module.py", "--until-end", "--application-id", "other", "--set", "commit.interval.ms=5"),
        *("--set", "deserialization.exception.handler=shouting_module:skip", "--set", "default.value.serde=long"),
    )
    first, second = (engine.config for engine in made.made)
    assert (first.application_id, first.commit_interval_ms) == ("shouting", 1000)
    assert (second.application_id, second.commit_interval_ms) == ("other", 5)
    assert second.extras == first.extras == {"spark.master": "local[1,4]"}
    assert second.default_value_serde == Serdes.long()
    assert getattr(second.deserialization_exception_handler, "__name__", "") == "skip"


def test_config_of_the_module_that_is_wrong_is_named(
    headrace: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "wrong_module.py").write_text("config = {'aplication.id': 'x'}\ndef build(builder): ...\n")
    done = headrace("run", "wrong_module", code=2)
    assert "config of module 'wrong_module': setting 'aplication.id' is unknown; did you mean" in done.err
    (tmp_path / "plain_module.py").write_text("def build(builder): ...\n")
    done = headrace("run", "plain_module", "--set", "processing.exception.handler=plain_module:skipp", code=2)
    assert "processing.exception.handler: 'plain_module' has no 'skipp'" in done.err


def test_missing_topics(headrace: Command, log: EmbeddedLog, engines: Start) -> None:
    engines(started, END)
    assert "headrace topics create lines" in headrace("run", TARGET, "--until-end", code=1).err
    done = headrace("run", TARGET, "--until-end", "--create-topics", 3)
    assert "created topic 'lines' with 3 partitions" in done.err
    assert log.describe_topic("word-counts").partitions == 3


def test_a_failure_ends_with_1(headrace: Command, log: EmbeddedLog, engines: Start) -> None:
    log.create_topic("lines")
    engines(started, fails(ProcessingError("node 'split-into-words' failed")))
    done = headrace("run", TARGET, code=1)
    assert "error: node 'split-into-words' failed" in done.err


def test_an_application_that_runs_is_not_reset_or_run_again(
    headrace: Command, log: EmbeddedLog, engines: Start
) -> None:
    log.create_topic("lines")
    seen: list[str] = []

    def look(_listener: object) -> None:
        seen.append(headrace("reset", "word_count", "--yes", code=1).err)

    engines(started, look, END)
    headrace("run", TARGET, "--until-end")
    assert "is in use by" in seen[0]

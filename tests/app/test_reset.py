"""Starting over: everything that was saved goes, and a crash in the middle leaves nothing half done."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any, cast

import pytest

from headrace import StreamsBuilder
from headrace.app import Streams
from headrace.app import reset as resetting
from headrace.app.description import Description
from headrace.app.directories import open_log
from headrace.app.reset import reset_application
from headrace.batches.batch_engine import EngineListener
from headrace.batches.reports import BatchReport
from headrace.config import StreamsConfig
from headrace.errors import IllegalStateError, LockError
from headrace.topics.embedded import EmbeddedLog
from headrace.views.membership import Member, MembershipTable
from headrace.views.metadata import HostInfo
from tests.app.kit import END, SOON, Engines, FakeEngine, application, config, counting

RAN = "what a run leaves behind"
VIEW = Member("view-1", HostInfo("localhost", 8080), 0, {"0_0": -1})


class LeavingTraces(FakeEngine):
    """Does to the log and to the directories what a run does."""

    def run(self, *, until_end: bool = False) -> None:
        if self.log.last_batch("app") is None:
            self.log.open_journal("app", []).commit(0, [], {("in", 0): 5})
        for path in (self.directory / "0_0", self.directory / "global"):
            path.mkdir(parents=True, exist_ok=True)
            (path / "0").write_text(RAN)
        (self.directory / "spark.log").write_text("kept")


def run_once(place: Path, **settings: Any) -> None:
    streams = Streams(counting(), config(place, **settings), engine=LeavingTraces)
    streams.start(until_end=True)
    assert streams.wait(timedelta(seconds=SOON))


def traces(settled: StreamsConfig) -> list[str]:
    log = open_log(settled)
    try:
        found = [f"topic {name}" for name in log.topics() if name.startswith("app-")]
        found += ["positions"] if log.positions("app") else []
        found += ["batch"] if log.last_batch("app") else []
        found += ["description"] if log.application_description("app") else []
    finally:
        log.close()
    directory = Path(settled.state_dir) / "app"
    found += sorted(path.name for path in directory.iterdir() if path.name not in ("lock", "spark.log"))
    return found


ALL = ["topic app-counts-changelog", "positions", "batch", "description", "0_0", "global"]


def test_clean_up_deletes_what_a_run_has_left_but_neither_lock_nor_log(place: Path) -> None:
    run_once(place)
    assert traces(config(place)) == ALL
    with EmbeddedLog(place / "log", sync="none") as log:
        MembershipTable("app", log).announce(VIEW)
    application(place, Engines()).clean_up()
    assert traces(config(place)) == []
    assert sorted(path.name for path in (place / "app").iterdir()) == ["lock", "spark.log"]
    run_once(place)
    assert traces(config(place)) == ALL


@pytest.mark.parametrize("value", [b"{}", b"a page", VIEW.pack()], ids=["object", "text", "view"])
def test_clean_up_leaves_a_topic_alone_that_is_only_called_like_that_of_views(place: Path, value: bytes) -> None:
    # What the topology reads stays even if it looks like it.
    topology = counting(source="app-views") if value == VIEW.pack() else counting()
    with EmbeddedLog(place / "log", sync="none") as log:
        log.create_topic("app-views", configs={"cleanup.policy": "compact"})
        MembershipTable("app", log).announce(VIEW)
        log.append("app-views", [(0, 0, b"view-2", value, ())])
    Streams(topology, config(place), engine=Engines()).clean_up()
    assert traces(config(place)) == ["topic app-views"]


def test_clean_up_deletes_the_topic_of_views_that_have_all_said_goodbye(place: Path) -> None:
    with EmbeddedLog(place / "log", sync="none") as log:
        MembershipTable("app", log).announce(VIEW)
        MembershipTable("app", log).leave(VIEW.id, 1)
    application(place, Engines()).clean_up()
    assert traces(config(place)) == []


def test_clean_up_without_anything_to_clean(place: Path) -> None:
    streams = application(place, Engines())
    streams.clean_up()
    streams.clean_up()
    with streams:
        """It can be started afterwards."""
    streams.clean_up()
    assert traces(config(place)) == []


def test_clean_up_is_refused_while_the_application_runs(place: Path) -> None:
    with application(place, Engines()) as streams:
        with pytest.raises(IllegalStateError, match=r"clean_up\(\) is not possible in state REBALANCING: close"):
            streams.clean_up()
        with pytest.raises(LockError):
            application(place, Engines()).clean_up()


def test_clean_up_from_a_listener_of_the_running_application_is_refused(place: Path) -> None:
    refused: list[Exception] = []

    def clean_up(batch: object) -> None:
        try:
            streams.clean_up()
        except IllegalStateError as error:
            refused.append(error)

    def one_batch(listener: EngineListener) -> None:
        listener.on_batch(cast("BatchReport", 1))

    streams = application(place, Engines(one_batch, END))
    streams.add_batch_listener(clean_up)
    streams.start(until_end=True)
    assert streams.wait(timedelta(seconds=SOON))
    assert len(refused) == 1


class Crash(BaseException):
    """The end of the process."""


def steps(monkeypatch: pytest.MonkeyPatch, at: int) -> None:
    """Lets a reset crash after so many of its steps."""
    done = 0

    def counted(step: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **options: Any) -> Any:
            nonlocal done
            if done == at:
                raise Crash
            done += 1
            return step(*args, **options)

        return call

    log = EmbeddedLog
    monkeypatch.setattr(Description, "write", counted(Description.write))
    monkeypatch.setattr(resetting, "_delete", counted(resetting._delete))
    monkeypatch.setattr(log, "reset_application", counted(log.reset_application))


@pytest.mark.parametrize("at", range(4))
def test_reset_that_crashes_is_finished_by_the_next_start(
    place: Path, monkeypatch: pytest.MonkeyPatch, at: int
) -> None:
    run_once(place)
    with monkeypatch.context() as patched:
        steps(patched, at)
        if at == 3:
            application(place, Engines()).clean_up()
        else:
            with pytest.raises(Crash):
                application(place, Engines()).clean_up()
    before: list[list[str]] = []

    def look(listener: EngineListener) -> None:
        before.append(traces(config(place)))

    streams = application(place, Engines(look, END))
    streams.start(until_end=True)
    assert streams.wait(timedelta(seconds=SOON))
    nothing_begun = at == 0
    assert before == [ALL if nothing_begun else ["topic app-counts-changelog", "description"]]


@pytest.mark.parametrize("at", range(1, 3))
def test_reset_that_crashes_is_finished_by_the_next_reset(
    place: Path, monkeypatch: pytest.MonkeyPatch, at: int
) -> None:
    run_once(place)
    with monkeypatch.context() as patched:
        steps(patched, at)
        with pytest.raises(Crash):
            application(place, Engines()).clean_up()
    application(place, Engines()).clean_up()
    assert traces(config(place)) == []


def test_reset_knows_the_internal_topics_without_the_topology(place: Path) -> None:
    run_once(place)
    log = open_log(config(place))
    log.create_topic("app-of-somebody-else-changelog")
    reset_application(config(place), log)
    assert [name for name in log.topics() if name.startswith("app-")] == ["app-of-somebody-else-changelog"]
    log.close()


def test_reset_works_without_a_directory(place: Path) -> None:
    run_once(place)
    shutil.rmtree(place / "app")
    application(place, Engines()).clean_up()
    assert traces(config(place)) == []


def test_reset_without_a_description_deletes_the_changelogs_of_all_stores(place: Path) -> None:
    """Also of those that nobody has named: what is left there would be restored after the next batch."""
    builder = StreamsBuilder()
    builder.stream("in").group_by_key().count().to_stream().to("out")
    topology = builder.build()
    log = open_log(config(place))
    with Streams(topology, config(place), log=log, engine=Engines()):
        assert any(topic.endswith("-changelog") for topic in log.topics())
    log.describe_application("app", b"damaged")
    Streams(topology, config(place), log=log, engine=Engines()).clean_up()
    assert log.topics() == ["in", "out"]
    log.close()

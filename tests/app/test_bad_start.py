"""Refused starts: the answer comes before anything runs, and nothing is changed."""

from __future__ import annotations

import json
import resource
import shutil
import subprocess
import sys
import time
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from headrace import StreamsBuilder
from headrace.app import Streams, StreamsState
from headrace.app.description import Description
from headrace.app.directories import application_directory, log_directory, open_log
from headrace.app.fingerprint import Fingerprint
from headrace.app.reset import reset_application
from headrace.errors import (
    ConfigError,
    IncompatibleTopologyError,
    LogError,
    MissingDependencyError,
    MissingSourceTopicError,
    RetriableError,
    StateDirectoryError,
    TopologyError,
)
from headrace.topics.embedded import EmbeddedLog
from tests.app.kit import END, SOON, Engines, application, config, counting


def test_builder_instead_of_its_topology() -> None:
    builder = StreamsBuilder()
    with pytest.raises(TopologyError, match=r"it runs a Topology; found its builder; call \.build\(\)"):
        Streams(builder, {"application.id": "app"})  # type: ignore[arg-type]


def test_something_else_than_a_topology() -> None:
    with pytest.raises(TopologyError, match="it runs a Topology; found str 'orders'; pass what"):
        Streams("orders", {"application.id": "app"})  # type: ignore[arg-type]


@pytest.mark.parametrize("wrong", [None, "app", 5])
def test_something_else_than_a_configuration(wrong: Any) -> None:
    with pytest.raises(ConfigError, match="the configuration is a StreamsConfig or a mapping; found"):
        Streams(counting(), wrong)


def test_configuration_as_a_mapping(tmp_path: Path) -> None:
    streams = Streams(counting(), {"application.id": "orders", "state.dir": tmp_path})
    assert streams.config.application_id == "orders"
    assert repr(streams) == "<Streams 'orders': CREATED>"


def test_missing_topic_changes_nothing_and_the_start_can_be_repeated(tmp_path: Path) -> None:
    engines = Engines(END)
    streams = application(tmp_path, engines)
    with pytest.raises(MissingSourceTopicError, match="`headrace topics create in --partitions 1`"):
        streams.start()
    assert streams.state is StreamsState.CREATED
    assert engines.made == []
    log = open_log(config(tmp_path))
    log.create_topic("in")
    log.close()
    streams.start(until_end=True)
    assert streams.wait(timedelta(seconds=SOON))


def test_absent_broker_is_told_within_seconds(tmp_path: Path) -> None:
    begun = time.monotonic()
    with pytest.raises(RetriableError, match=r"Kafka at '127\.0\.0\.1:1' did not answer .* bootstrap_servers is right"):
        application(tmp_path, Engines(), bootstrap_servers="127.0.0.1:1").start()
    assert time.monotonic() - begun < 10


def test_without_pyspark_the_command_that_installs_it_is_told(place: Path) -> None:
    script = """
import sys
import time
sys.modules["pyspark"] = None
from headrace.app import Streams
from tests.app.kit import config, counting
from headrace.errors import MissingDependencyError
from pathlib import Path
try:
    Streams(counting(), config(Path(sys.argv[1]))).start()
except MissingDependencyError as error:
    print(error)
"""
    done = subprocess.run(
        [sys.executable, "-c", script, str(place)],
        capture_output=True,
        text=True,
        check=False,
        cwd=Path(__file__).parents[2],
    )
    assert done.stderr == ""
    assert "running a topology needs Apache Spark" in done.stdout
    assert "run `pip install 'headrace[spark]'`" in done.stdout
    assert issubclass(MissingDependencyError, ImportError)


def test_state_directory_that_is_a_file(tmp_path: Path) -> None:
    (tmp_path / "state").write_text("mine")
    with pytest.raises(StateDirectoryError, match=r"state/app' cannot be made: .*set state_dir to another one"):
        application(tmp_path, Engines(), state_dir=tmp_path / "state").start()


def test_state_directory_that_may_not_be_written(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(self: Path, **options: Any) -> None:
        raise PermissionError(13, "Permission denied")

    with monkeypatch.context() as patched:
        patched.setattr(Path, "mkdir", refuse)
        streams = application(place, Engines())
        with pytest.raises(StateDirectoryError, match="Permission denied; set state_dir to a directory that this user"):
            streams.start()


FULL = """
import resource, sys
from pathlib import Path
from tests.app.kit import Engines, application
from headrace.errors import StateDirectoryError
streams = application(Path(sys.argv[1]), Engines())
_, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
resource.setrlimit(resource.RLIMIT_FSIZE, (0, hard))
try:
    streams.start()
except StateDirectoryError as error:
    message = str(error)
resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))
print(message, flush=True)
with streams:
    pass
"""


def test_full_disk_is_said_and_the_start_can_be_repeated(place: Path) -> None:
    """The limit of the file size stands for the end of the disk."""
    assert resource.getrlimit(resource.RLIMIT_FSIZE)[1] == resource.RLIM_INFINITY, "the test needs a free hand"
    done = subprocess.run(
        [sys.executable, "-c", FULL, str(place)],
        capture_output=True,
        text=True,
        check=False,
        cwd=Path(__file__).parents[2],
    )
    assert done.stderr == ""
    assert "app/lock' cannot be written: File too large; the disk is full" in done.stdout


def test_directory_of_another_application(place: Path) -> None:
    ran(place)
    (place / "app").rename(place / "orders")
    with pytest.raises(StateDirectoryError, match="belongs to the application 'app', and this is 'orders'"):
        application(place, Engines(), application_id="orders").start()


def describe(place: Path, description: bytes) -> None:
    log = open_log(config(place))
    log.describe_application("app", description)
    log.close()


def test_description_of_another_version(place: Path) -> None:
    ran(place)
    describe(place, json.dumps({"format": 99}).encode())
    with pytest.raises(StateDirectoryError, match=r"in the format 99; .*`headrace reset app`"):
        application(place, Engines()).start()


@pytest.mark.parametrize("content", [b"{", b"[]", b"{}", b'{"format": 3, "topology": 5}', b"\xff"])
def test_damaged_description(place: Path, content: bytes) -> None:
    ran(place)
    describe(place, content)
    with pytest.raises(StateDirectoryError, match=r"cannot be read .*start over with `headrace reset app`"):
        application(place, Engines()).start()
    application(place, Engines()).clean_up()
    with application(place, Engines()):
        """It starts."""


def test_checkpoint_of_an_earlier_version(place: Path) -> None:
    (place / "app" / "checkpoint" / "offsets").mkdir(parents=True)
    with pytest.raises(StateDirectoryError, match=r"is a checkpoint of an earlier version .*`headrace reset app`"):
        application(place, Engines()).start()
    application(place, Engines()).clean_up()
    with application(place, Engines()):
        """It starts."""


def test_directory_that_is_empty_while_the_log_has_results(place: Path) -> None:
    ran(place)
    log = open_log(config(place))
    log.open_journal("app", []).commit(0, [], {("in", 0): 5})
    log.close()
    shutil.rmtree(place / "app")
    with application(place, Engines()):
        """What is known is in the log, so it starts, as on another machine."""


def test_positions_that_a_reset_has_left(place: Path) -> None:
    log = open_log(config(place))
    log.begin_at("app", {("in", 0): 5})
    log.close()
    with application(place, Engines()):
        """It starts."""


def ran(place: Path) -> None:
    streams = application(place, Engines(END)).start(until_end=True)
    assert streams.wait(timedelta(seconds=SOON))


def test_engine_that_cannot_be_made_leaves_everything_free(place: Path) -> None:
    def broken(*args: Any, **options: Any) -> Any:
        message = "this master is wrong"
        raise ConfigError(message)

    streams = Streams(counting(), config(place), engine=broken)
    with pytest.raises(ConfigError, match="this master is wrong"):
        streams.start()
    assert streams.state is StreamsState.CREATED
    with application(place, Engines()):
        """It starts."""


def test_engine_is_told_where_everything_is(place: Path) -> None:
    engines = Engines()
    with application(place, engines):
        assert engines.one.directory == place / "app"
        assert "in" in engines.one.log.topics()
    with pytest.raises(LogError, match="is closed"):
        engines.one.log.topics()


def test_log_elsewhere_has_its_own_setting(tmp_path: Path) -> None:
    assert log_directory(config(tmp_path, log_dir=tmp_path / "topics")) == tmp_path / "topics"


def test_places_are_absolute(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    assert application_directory(config(Path("state"))) == tmp_path / "state" / "app"


@pytest.mark.parametrize("name", [".", ".."])
def test_application_id_that_is_no_folder_of_its_own(tmp_path: Path, name: str) -> None:
    with pytest.raises(ConfigError, match=f"cannot be '{name}'"):
        application_directory(config(tmp_path, application_id=name))


@pytest.mark.parametrize("setting", ["state_dir", "log_dir"])
def test_places_are_paths_of_a_file_system(tmp_path: Path, setting: str) -> None:
    streams = Streams(counting(), config(tmp_path, **{setting: "s3://bucket/state"}), engine=Engines())
    with pytest.raises(ConfigError, match=f"{setting} must be a path of a file system; found 's3://bucket/state'"):
        streams.start()


def test_saved_fingerprint_is_what_the_next_start_is_compared_with(place: Path) -> None:
    ran(place)
    log = open_log(config(place))
    saved = Description.read(log, "app")
    assert saved is not None
    assert saved.internal_topics == ("app-counts-changelog",)
    assert saved.topology == Fingerprint.of(counting(), {"in": 2})
    # On another machine, too: what is known lies in the log.
    shutil.rmtree(place / "app")
    with pytest.raises(IncompatibleTopologyError):
        application(place, Engines(), counting("other")).start()
    assert Description.read(log, "app") == saved
    log.close()


def test_the_name_of_another_program_that_has_left_state_is_refused(place: Path) -> None:
    """As under the ``application.id`` of a Kafka Streams application: its stores would be empty, without a word."""
    with EmbeddedLog(place / "log", sync="none") as log:
        log.create_topic("app-counts-changelog", partitions=1, configs={"cleanup.policy": "compact"})
        log.append("app-counts-changelog", [(0, 1, b"a", b"1", ())])
    with pytest.raises(IncompatibleTopologyError, match=r"such as Kafka Streams, .*headrace reset app"):
        application(place, Engines(END)).start()
    with EmbeddedLog(place / "log", sync="none") as log:
        reset_application(config(place), log, ["app-counts-changelog"])
    application(place, Engines(END)).start(until_end=True).wait()

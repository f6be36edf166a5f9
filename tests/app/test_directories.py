"""Directories of an application: the default is the user's alone, its own one is closed, a log may be shared."""

from __future__ import annotations

import ast
import os
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from headrace import StreamsConfig
from headrace.app import directories
from headrace.app.directories import open_log
from headrace.app.engine import local_engine
from headrace.app.reset import reset_application
from headrace.app.streams import Streams
from headrace.config import DEFAULT_STATE_DIR
from headrace.errors import StateDirectoryError
from headrace.topics.embedded import EmbeddedLog
from tests.app.kit import END, Engines, application, config, counting

SOURCE = Path(__file__).parents[2] / "src" / "headrace"


def mode(path: Path) -> str:
    return stat.filemode(path.lstat().st_mode)


DEFAULTS = """
from headrace import EmbeddedLog, Streams, StreamsBuilder, StreamsConfig
from headrace.app.engine import local_engine
from headrace.app.directories import open_log
config = StreamsConfig(application_id="app")
builder = StreamsBuilder()
builder.stream("in").group_by_key().count().to_stream().to("out")
log = open_log(config)
log.create_topic("in")
Streams(builder.build(), config, log=log, engine=local_engine).run(until_end=True)
"""


def test_default_directories_are_closed_to_others(tmp_path: Path) -> None:
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    subprocess.run([sys.executable, "-c", DEFAULTS], env=environment, check=True, umask=0)
    made = tmp_path / f"headrace-{os.geteuid()}"
    assert {each.name for each in made.iterdir()} == {"state"}
    for directory in (made, made / "state", made / "state" / "log", made / "state" / "app"):
        assert mode(directory) == "drwx------", directory


def test_default_directory_is_that_of_the_user() -> None:
    assert os.fspath(StreamsConfig().state_dir) == DEFAULT_STATE_DIR
    assert Path(DEFAULT_STATE_DIR).parent.name == f"headrace-{os.geteuid()}"


def open_to_others(base: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    base.mkdir()
    base.chmod(0o755)


def a_link(base: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    base.with_name("elsewhere").mkdir(mode=0o700)
    base.symlink_to(base.with_name("elsewhere"))


def somebody_elses(base: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    base.mkdir(mode=0o700)
    owner = os.geteuid()
    monkeypatch.setattr(os, "geteuid", lambda: owner + 1)


@pytest.mark.parametrize("prepare", [open_to_others, a_link, somebody_elses])
@pytest.mark.parametrize("with_log", [False, True], ids=["opens", "given"])
def test_default_directory_that_somebody_has_prepared_is_refused(
    prepare: Callable[[Path, pytest.MonkeyPatch], None],
    with_log: bool,  # noqa: FBT001 - a parameter of the test
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    base = tmp_path / "headrace-1"
    monkeypatch.setattr(directories, "DEFAULT_STATE_DIR", str(base / "state"))
    settings = config(base / "state")
    prepare(base, monkeypatch)
    with EmbeddedLog(tmp_path / "log", sync="none") as log:
        log.create_topic("in")
        refused = r"headrace-1' must be a directory that only user \d+ can enter; .*; or set state_dir to"
        with pytest.raises(StateDirectoryError, match=refused):
            Streams(counting(), settings, engine=Engines(END), log=log if with_log else None).start()
        with pytest.raises(StateDirectoryError, match=refused):
            reset_application(settings, log)
        with pytest.raises(StateDirectoryError, match=refused):
            open_log(settings)
    assert list(base.iterdir()) == []


def test_directory_of_an_application_that_others_can_write_is_refused(place: Path) -> None:
    (place / "app").mkdir()
    (place / "app").chmod(0o770)
    with pytest.raises(StateDirectoryError, match=r"app' must be a directory that only user \d+ can write; .*chmod"):
        application(place, Engines()).start()
    assert list((place / "app").iterdir()) == []


def test_directory_of_an_application_that_is_somebody_elses_is_refused(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    somebody_elses(place / "app", monkeypatch)
    with pytest.raises(StateDirectoryError, match=r"app' must be a directory that only user \d+ can write"):
        application(place, Engines()).start()
    assert list((place / "app").iterdir()) == []


def test_directory_of_an_application_that_others_can_read_is_closed(place: Path) -> None:
    (place / "app").mkdir()
    (place / "app").chmod(0o755)
    with application(place, Engines()):
        assert mode(place / "app") == "drwx------"


def test_log_that_several_users_share_is_taken_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "shared").mkdir()
    (tmp_path / "shared").chmod(0o770)
    settings = config(tmp_path / "state", log_dir=tmp_path / "shared")
    log = open_log(settings)
    log.create_topic("in")
    Streams(counting(), settings, log=log, engine=local_engine).run(until_end=True)
    log.close()
    assert mode(tmp_path / "shared") == "drwxrwx---"
    assert mode(tmp_path / "state" / "app") == "drwx------"


def test_nothing_but_spark_reads_pickles() -> None:
    """So whoever can write a log, a working copy or a view can write data, and no code."""
    modules, loads = {"pickle", "cloudpickle", "marshal", "shelve", "dill"}, {"load", "loads", "Unpickler", "open"}
    reading = set()
    for path in SOURCE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            match node:
                case ast.Attribute(value=ast.Name(id=module), attr=name) if module in modules and name in loads:
                    reading.add(path.relative_to(SOURCE).parts[0])
                case ast.ImportFrom(module=str(module)) if module in modules:
                    reading.add(path.relative_to(SOURCE).parts[0])
    assert reading == {"spark"}

"""An archive is used when it is complete, made by one process at a time, and done without when that cannot be."""

import fcntl
import os
from pathlib import Path

import pytest

from headrace.spark.class_archive import ClassArchive, class_archive
from headrace.spark.java import Java

WHOLE = b"\xa8\xab\x0b\xf0" + bytes(5000)


@pytest.fixture
def java(tmp_path: Path) -> Java:
    runtime = tmp_path / "jdk"
    (runtime / "lib" / "server").mkdir(parents=True)
    (runtime / "lib" / "server" / "classes.jsa").touch()
    return Java(home=runtime, version="17.0.15", build="17.0.15+6", runtime=runtime)


@pytest.fixture
def home(tmp_path: Path) -> Path:
    jars = tmp_path / "spark" / "jars"
    jars.mkdir(parents=True)
    (jars / "spark-core.jar").write_bytes(b"jar")
    return tmp_path / "spark"


class Jvm:
    """Writes what a test wants where a JVM is told to write its archive."""

    def __init__(self, content: bytes | None = WHOLE) -> None:
        self.runs = 0
        self._content = content

    def __call__(self, options: tuple[str, ...]) -> None:
        self.runs += 1
        (option,) = options
        draft = Path(option.removeprefix("-XX:ArchiveClassesAtExit="))
        assert not draft.exists()
        if self._content is not None:
            draft.write_bytes(self._content)


def test_archive_is_used_once_it_is_made(tmp_path: Path, java: Java, home: Path) -> None:
    archive, jvm = class_archive(tmp_path, java, home), Jvm()
    assert (archive.path, archive.options()) == (None, ())
    assert archive.make(jvm, wait=True)
    assert archive.make(jvm, wait=True)
    assert jvm.runs == 1
    again = class_archive(tmp_path, java, home)
    assert again.path is not None
    assert again.options() == (f"-XX:SharedArchiveFile={again.path}",)
    assert again.path.read_bytes() == WHOLE
    assert sorted(path.name for path in again.path.parent.iterdir()) == ["archive.jsa", "lock"]


@pytest.mark.parametrize(
    "content", [None, b"", bytes(4), bytes(4) + WHOLE[4:]], ids=["nothing", "empty", "no header yet", "killed"]
)
def test_incomplete_archive_is_thrown_away(tmp_path: Path, java: Java, home: Path, content: bytes | None) -> None:
    archive = class_archive(tmp_path, java, home)
    assert not archive.make(Jvm(content), wait=True)
    assert archive.options() == ()
    assert archive.directory is not None
    assert [path.name for path in archive.directory.iterdir()] == ["lock"]
    assert archive.make(Jvm(), wait=True)


def test_draft_of_a_killed_process_is_no_obstacle(tmp_path: Path, java: Java, home: Path) -> None:
    archive = class_archive(tmp_path, java, home)
    assert archive.directory is not None
    (archive.directory / "draft.jsa").write_bytes(bytes(100))
    assert archive.make(Jvm(), wait=True)


def test_two_processes_do_not_make_it_at_once(tmp_path: Path, java: Java, home: Path) -> None:
    archive, jvm = class_archive(tmp_path, java, home), Jvm()
    assert archive.directory is not None
    with open(archive.directory / "lock", "ab") as other:
        fcntl.flock(other, fcntl.LOCK_EX)
        assert not archive.make(jvm, wait=False)
        assert jvm.runs == 0
    assert archive.make(jvm, wait=False)


def test_changed_jars_and_java_get_an_archive_of_their_own(tmp_path: Path, java: Java, home: Path) -> None:
    places = []
    for build, size in (("17.0.15+6", 1), ("17.0.15+6", 2), ("21.0.4+7", 2)):
        (home / "jars" / "spark-core.jar").write_bytes(bytes(size))
        changed = Java(home=java.home, version="17", build=build, runtime=java.runtime)
        places.append(class_archive(tmp_path, changed, home).directory)
    assert len(set(places)) == 3


def test_archives_that_nobody_uses_are_deleted(tmp_path: Path, java: Java, home: Path) -> None:
    for number in range(6):
        archive = class_archive(tmp_path, java, home, [f"{number}.jar"])
        assert archive.directory is not None
        archive.make(Jvm(), wait=True)
        os.utime(archive.directory, (number, number))
    assert len(list((tmp_path / "classes").iterdir())) == 3


def test_archive_that_was_to_blame_is_discarded(tmp_path: Path, java: Java, home: Path) -> None:
    archive = class_archive(tmp_path, java, home)
    archive.make(Jvm(), wait=True)
    archive.discard()
    assert class_archive(tmp_path, java, home).path is None


def test_there_is_no_archive_where_nothing_can_be_written(tmp_path: Path, java: Java, home: Path) -> None:
    (tmp_path / "file").touch()
    for cache in (None, tmp_path / "file"):
        archive, jvm = class_archive(cache, java, home), Jvm()
        assert archive == ClassArchive(None, java)
        assert (archive.path, archive.options(), archive.make(jvm, wait=True), jvm.runs) == (None, (), False, 0)

"""An archive is used when it is complete, made by one JVM at a time, and done without when that cannot be."""

import fcntl
import os
from pathlib import Path

import pytest

from headrace.spark.class_archive import ClassArchive, class_archive
from headrace.spark.java import Java

WHOLE = b"\xa8\xab\x0b\xf0" + bytes(5000) + b"TransformWithStateInPySparkStateServer" + bytes(100)


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


def candidate(archive: ClassArchive) -> Path:
    (option,) = archive.options
    return Path(option.removeprefix("-XX:ArchiveClassesAtExit="))


def test_first_start_makes_a_candidate_and_the_next_uses_it(tmp_path: Path, java: Java, home: Path) -> None:
    first = class_archive(tmp_path, java, home)
    candidate(first).write_bytes(WHOLE)
    first.release()
    second = class_archive(tmp_path, java, home)
    assert second.archive is not None
    assert second.options == (f"-XX:SharedArchiveFile={second.archive}",)
    assert second.archive.read_bytes() == WHOLE
    assert not candidate(first).exists()


def test_candidate_of_a_running_jvm_is_left_alone(tmp_path: Path, java: Java, home: Path) -> None:
    first = class_archive(tmp_path, java, home)
    assert first.lock is not None
    inherited = os.dup(first.lock)
    first.release()
    candidate(first).write_bytes(bytes(100))
    assert class_archive(tmp_path, java, home) == ClassArchive()
    assert candidate(first).exists()
    os.close(inherited)
    again = class_archive(tmp_path, java, home)
    assert candidate(again) == candidate(first)
    again.release()


@pytest.mark.parametrize(
    "content",
    [b"", bytes(4), bytes(4) + WHOLE[4:], WHOLE[:4000]],
    ids=["empty", "no header yet", "killed before the header", "no query was run"],
)
def test_useless_candidate_is_thrown_away(tmp_path: Path, java: Java, home: Path, content: bytes) -> None:
    first = class_archive(tmp_path, java, home)
    candidate(first).write_bytes(content)
    first.release()
    second = class_archive(tmp_path, java, home)
    assert second.archive is None
    assert not candidate(second).exists()
    second.release()


def test_changed_jars_and_java_get_an_archive_of_their_own(tmp_path: Path, java: Java, home: Path) -> None:
    places = []
    for build, size in (("17.0.15+6", 1), ("17.0.15+6", 2), ("21.0.4+7", 2)):
        (home / "jars" / "spark-core.jar").write_bytes(bytes(size))
        changed = Java(home=java.home, version="17", build=build, runtime=java.runtime)
        archive = class_archive(tmp_path, changed, home)
        places.append(candidate(archive).parent)
        archive.release()
    assert len(set(places)) == 3


def test_archives_that_nobody_uses_are_deleted(tmp_path: Path, java: Java, home: Path) -> None:
    for number in range(6):
        archive = class_archive(tmp_path, java, home, [f"{number}.jar"])
        os.utime(candidate(archive).parent, (number, number))
        archive.release()
    assert len(list((tmp_path / "classes").iterdir())) == 3


def test_archive_that_was_to_blame_is_discarded(tmp_path: Path, java: Java, home: Path) -> None:
    first = class_archive(tmp_path, java, home)
    candidate(first).write_bytes(WHOLE)
    first.release()
    class_archive(tmp_path, java, home).discard()
    third = class_archive(tmp_path, java, home)
    assert third.archive is None
    third.release()


def test_there_is_no_archive_where_nothing_can_be_written(tmp_path: Path, java: Java, home: Path) -> None:
    assert class_archive(None, java, home) == ClassArchive()
    (tmp_path / "file").touch()
    assert class_archive(tmp_path / "file", java, home) == ClassArchive()


def test_there_is_no_archive_where_files_cannot_be_locked(
    tmp_path: Path, java: Java, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_descriptor: int, _operation: int) -> None:
        raise OSError

    monkeypatch.setattr(fcntl, "flock", refuse)
    assert class_archive(tmp_path, java, home) == ClassArchive()

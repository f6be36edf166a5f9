"""The contract of environments: engines on disk that are written together, in LMDB and in RocksDB."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from headrace.errors import InvalidStateStoreError, ProcessorStateError
from headrace.state import Changes
from headrace.state.engines.environment import OWN, Environment
from tests.state.conftest import ENVIRONMENTS, OpenEnvironment

LONG = b"k" * 600


@pytest.fixture(params=list(ENVIRONMENTS))
def kind(request: pytest.FixtureRequest) -> str:
    found: str = request.param
    return found


@pytest.fixture
def opened(kind: str) -> OpenEnvironment:
    return ENVIRONMENTS[kind]


@pytest.fixture
def environment(opened: OpenEnvironment, tmp_path: Path) -> Iterator[Environment]:
    environment = opened(tmp_path)
    yield environment
    environment.close()


def test_an_environment_says_what_it_is(environment: Environment, kind: str) -> None:
    assert environment.kind == kind


def test_rows_survive(opened: OpenEnvironment, tmp_path: Path) -> None:
    environment = opened(tmp_path)
    environment.apply({"one": Changes(rows={b"a": b"1"}), "two": Changes(rows={LONG: b"2"})})
    environment.close()
    environment = opened(tmp_path)
    assert environment.engine("one").get(b"a") == b"1"
    assert environment.engine("two").get(LONG) == b"2"
    environment.close()


@pytest.mark.parametrize("name", ["default", "KSTREAM-JOINTHIS-0000000005-store", "counts/0", "größe", OWN])
def test_any_name_of_a_store_is_the_name_of_an_engine(opened: OpenEnvironment, tmp_path: Path, name: str) -> None:
    environment = opened(tmp_path)
    assert environment.names() == []
    engine = environment.engine(name)
    assert environment.engine(name) is engine
    engine.put(b"a", b"1")
    assert environment.names() == [name]
    environment.close()
    environment = opened(tmp_path)
    assert environment.names() == [name]
    assert list(environment.engine(name).scan()) == [(b"a", b"1")]
    environment.close()


def test_names_are_in_order(environment: Environment) -> None:
    for name in ("b", OWN, "a"):
        environment.engine(name)
    assert environment.names() == [OWN, "a", "b"]


def test_engines_do_not_see_each_other(environment: Environment) -> None:
    one, two = environment.engine("one"), environment.engine("two")
    environment.apply({"one": Changes(rows={b"a": b"1"}), "two": Changes(rows={b"a": b"2"})})
    one.clear()
    assert (one.get(b"a"), two.get(b"a")) == (None, b"2")


def test_steps_are_made_one_after_the_other(environment: Environment) -> None:
    environment.apply(
        {"one": Changes(rows={b"a": b"1", b"b": b"1", b"c": b"1", b"d": b"1"})},
        {"one": Changes(ranges=((b"a", b"c"), (b"c", b"c\0"), (b"x", b"d")), rows={b"b": b"2"})},
        {"one": Changes(rows={b"d": None, b"e": b"3"}), OWN: Changes(rows={b"offset": b"7"})},
    )
    assert list(environment.engine("one").scan()) == [(b"b", b"2"), (b"e", b"3")]
    assert environment.engine(OWN).get(b"offset") == b"7"


def test_changes_of_several_engines_are_made_together_or_not_at_all(environment: Environment) -> None:
    broken: dict[bytes, bytes | None] = {b"b": "not bytes"}  # type: ignore[dict-item]  # that is the point
    with pytest.raises((TypeError, ValueError)):
        environment.apply({"one": Changes(rows={b"a": b"1"}), "two": Changes(rows=broken)})
    assert environment.engine("one").get(b"a") is None


WRITER = """
import os, signal, sys
from pathlib import Path
from headrace.state import Changes
from tests.state.conftest import ENVIRONMENTS
environment = ENVIRONMENTS[sys.argv[1]](Path(sys.argv[2]))
for number in range(100):
    row = Changes(rows={b"%d" % number: b"x" * 100})
    environment.apply({"one": row, "two": row, ".": Changes(rows={b"offset": b"%d" % number})})
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_what_was_applied_survives_the_death_of_the_process(kind: str, opened: OpenEnvironment, tmp_path: Path) -> None:
    done = subprocess.run([sys.executable, "-c", WRITER, kind, str(tmp_path)], check=False)
    assert done.returncode == -signal.SIGKILL
    environment = opened(tmp_path)
    assert environment.engine(OWN).get(b"offset") == b"99"
    assert {environment.engine(name).count() for name in ("one", "two")} == {100}
    environment.close()


def test_a_snapshot_sees_all_engines_at_one_moment(environment: Environment) -> None:
    environment.apply({"one": Changes(rows={b"a": b"1", b"b": b"1"}), "two": Changes(rows={b"a": b"1"})})
    snapshot = environment.snapshot()
    one, two, three = (snapshot.engine(name) for name in ("one", "two", "three"))
    snapshot.begin()
    environment.apply(
        {
            "one": Changes(ranges=((b"b", b"c"),), rows={b"a": b"2", b"c": b"2"}),
            "two": Changes(rows={b"a": None}),
            "three": Changes(rows={b"a": b"2"}),
        }
    )
    assert list(one.scan()) == [(b"a", b"1"), (b"b", b"1")]
    assert list(one.scan(b"a", b"b", reverse=True)) == [(b"a", b"1")]
    assert (one.get(b"a"), one.get(b"c"), one.count()) == (b"1", None, 2)
    assert (two.get(b"a"), three.get(b"a"), three.count(), list(three.scan())) == (b"1", None, 0, [])
    snapshot.begin()
    assert list(one.scan(reverse=True)) == [(b"c", b"2"), (b"a", b"2")]
    assert (two.get(b"a"), three.get(b"a")) == (None, b"2")
    snapshot.end()


def test_what_a_snapshot_sees_is_over_when_it_ends(environment: Environment) -> None:
    environment.engine("one").put(b"a", b"1")
    snapshot = environment.snapshot()
    seen = snapshot.engine("one")
    for _ in range(2):
        with pytest.raises(InvalidStateStoreError, match="is over"):
            seen.get(b"a")
        snapshot.begin()
        assert seen.get(b"a") == b"1"
        snapshot.end()
        with pytest.raises(InvalidStateStoreError, match="is over"):
            list(seen.scan())


def test_a_snapshot_cannot_be_written(environment: Environment) -> None:
    environment.engine("one").put(b"a", b"1")
    snapshot = environment.snapshot()
    seen = snapshot.engine("one")
    snapshot.begin()
    writes: list[Callable[[], None]] = [
        lambda: seen.put(b"a", b"2"),
        lambda: seen.delete(b"a"),
        lambda: seen.delete_range(b"a", b"b"),
        lambda: seen.apply(Changes(rows={b"a": b"2"})),
        seen.clear,
    ]
    for write in writes:
        with pytest.raises(InvalidStateStoreError, match="a view only reads"):
            write()
    assert seen.get(b"a") == b"1"
    snapshot.end()


def test_rows_are_read_while_they_are_pinned_and_written_afterwards(environment: Environment) -> None:
    engine = environment.engine("one")
    engine.put(b"a", b"1")
    environment.pin()
    assert (engine.get(b"a"), list(engine.scan())) == (b"1", [(b"a", b"1")])
    environment.unpin()
    engine.put(b"a", b"2")
    assert engine.get(b"a") == b"2"


def test_an_environment_knows_its_rows_and_its_size(environment: Environment) -> None:
    environment.engine("one").apply(Changes(rows={b"%d" % number: os.urandom(1000) for number in range(500)}))
    environment.engine("two")
    environment.engine(OWN).put(b"offset", b"7")
    environment.flush()
    figures = environment.metrics()
    assert {name.partition("/")[2] for name in figures} == {"", "one", "two"}
    assert figures["estimate-num-keys/one"] == 500
    assert figures["estimate-num-keys/two"] == 0
    assert figures["disk-bytes"] == environment.disk_bytes() >= 500_000


def test_a_closed_environment_says_which_directory(opened: OpenEnvironment, tmp_path: Path) -> None:
    environment = opened(tmp_path)
    engine = environment.engine("one")
    environment.close()
    with pytest.raises(ProcessorStateError, match=f"the state directory '{tmp_path}' cannot be used: "):
        engine.get(b"a")
    with pytest.raises(ProcessorStateError, match=f"the state directory '{tmp_path}' cannot be used: "):
        list(engine.scan())


def test_a_directory_that_cannot_be_made_is_named(opened: OpenEnvironment, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(ProcessorStateError, match=f"the state directory '{tmp_path}/file' cannot be opened: "):
        opened(tmp_path / "file")

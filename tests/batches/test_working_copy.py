"""The working copy of a task: what is written when, by whom, and what is thrown away."""

from __future__ import annotations

import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from headrace import StreamsConfig
from headrace.batches import working_copy
from headrace.batches.working_copy import Applied, WorkingCopy, describe, died_running, discard
from headrace.errors import ProcessorStateError, RetriableError
from headrace.state.engines.changes import Changes
from headrace.state.engines.environment import DISK_ENGINES, OWN, Kind

CONFIG = StreamsConfig()
ROWS = {b"key-%d" % number: b"x" * 100 for number in range(1000)}


ON_DISK = pytest.mark.parametrize("kind", DISK_ENGINES)


def opened(directory: Path, kind: Kind = "lmdb") -> WorkingCopy:
    return WorkingCopy(directory, {"store": kind}, CONFIG)


def settle(copy: WorkingCopy, offset: int, **rows: str | None) -> None:
    """Takes over rows that a batch has committed up to an offset of its changelog."""
    changes = {key.encode(): None if value is None else value.encode() for key, value in rows.items()}
    copy.settle({"store": Changes(rows=changes)}, {"store": Applied("topic", offset)})


def written(copy: WorkingCopy, store: str = "store") -> int:
    return copy.engine(store).base.count()


def content(copy: WorkingCopy) -> dict[bytes, bytes]:
    return dict(copy.engine("store").scan())


def on_disk(directory: Path, kind: Kind = "lmdb") -> tuple[dict[bytes, bytes], int]:
    """Returns what somebody finds who opens the folder now, and up to which offset."""
    copy = opened(directory, kind)
    try:
        applied = copy.applied("store")
        return content(copy), -1 if applied is None else applied.offset
    finally:
        copy.close()


@ON_DISK
def test_rows_are_seen_at_once_and_written_later(tmp_path: Path, kind: Kind) -> None:
    copy = opened(tmp_path / "0_0", kind)
    settle(copy, 2, a="1", b="2")
    settle(copy, 3, a="3")
    assert content(copy) == {b"a": b"3", b"b": b"2"}
    assert written(copy) == 0
    copy.close()
    # Nothing was written, neither rows nor how far they reach.
    assert on_disk(tmp_path / "0_0", kind) == ({}, -1)


@ON_DISK
def test_rows_and_their_offsets_are_written_together(tmp_path: Path, kind: Kind) -> None:
    copy = opened(tmp_path / "0_0", kind)
    settle(copy, 2, a="1", b="2")
    copy.write()
    settle(copy, 4, a="3", b=None)
    copy.close()
    assert on_disk(tmp_path / "0_0", kind) == ({b"a": b"1", b"b": b"2"}, 2)


def test_rows_are_written_when_they_are_many(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(working_copy, "_LASTING", working_copy._LASTING._replace(rows=3))
    copy = opened(tmp_path / "0_0")
    settle(copy, 3, a="1", b="2", c="3")
    assert written(copy) == 0
    # The same rows again are no more of them.
    settle(copy, 4, a="2")
    assert written(copy) == 0
    settle(copy, 5, d="4")
    assert written(copy) == 4
    copy.close()
    assert on_disk(tmp_path / "0_0")[1] == 5


def test_rows_are_written_when_time_has_passed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    now = 100.0
    monkeypatch.setattr(time, "monotonic", lambda: now)
    copy = opened(tmp_path / "0_0")
    settle(copy, 1, a="1")
    now += 9
    settle(copy, 2, a="2")
    assert written(copy) == 0
    now += 2
    settle(copy, 3, b="3")
    assert written(copy) == 2
    copy.close()


@ON_DISK
def test_what_changes_again_soon_is_written_once(tmp_path: Path, kind: Kind) -> None:
    copy = opened(tmp_path / "0_0", kind)
    for number in range(100):
        settle(copy, number, a=str(number), **{f"short-{number}": "x"})
        settle(copy, number, **{f"short-{number}": None})
    copy.write()
    assert written(copy) == 1
    copy.close()
    assert on_disk(tmp_path / "0_0", kind) == ({b"a": b"99"}, 99)


def test_the_last_one_to_open_a_copy_is_the_one_who_writes(tmp_path: Path) -> None:
    copy = opened(tmp_path / "0_0")
    settle(copy, 1, a="mine")
    settle_elsewhere(tmp_path / "0_0")
    # What is there now was written by one of ours, so it is as good as what this one knows.
    assert copy.is_untouched()
    for change in (copy.write, lambda: copy.wipe(["store"])):
        with pytest.raises(ProcessorStateError, match="was opened by another process; it goes on there"):
            change()
    copy.close()
    assert on_disk(tmp_path / "0_0") == ({b"a": b"theirs"}, 2)


def test_who_has_lost_its_copy_to_another_process_tries_again(tmp_path: Path) -> None:
    taken, deleted = opened(tmp_path / "0_0"), opened(tmp_path / "0_1")
    settle(taken, 1, a="mine")
    settle(deleted, 1, a="mine")
    settle_elsewhere(tmp_path / "0_0")
    shutil.rmtree(tmp_path / "0_1")
    for copy in (taken, deleted):
        with pytest.raises(RetriableError, match=r"the working copy '.*' was (opened|deleted) by another process"):
            copy.write()
        copy.close()


ELSEWHERE = """
import sys
import time
from pathlib import Path
from tests.batches.test_working_copy import opened, settle
copy = opened(Path(sys.argv[1]))
settle(copy, 2, a="theirs")
copy.write()
"""


def settle_elsewhere(directory: Path) -> None:
    """Another process opens the copy, and writes."""
    root = Path(__file__).parents[2]
    subprocess.run([sys.executable, "-c", ELSEWHERE, str(directory)], check=True, cwd=root)


@pytest.mark.parametrize("damage", ["truncate", "overwrite", "delete", "replace"])
def test_a_damaged_copy_is_recognised_and_thrown_away(tmp_path: Path, damage: str) -> None:
    copy = opened(tmp_path / "0_0")
    copy.settle({"store": Changes(rows=dict(ROWS))}, {"store": Applied("topic", 1)})
    copy.write()
    assert copy.is_untouched()
    file = tmp_path / "0_0" / "lmdb" / "data.mdb"
    if damage == "truncate":
        with file.open("r+b") as found:
            found.truncate(8192)
    elif damage == "overwrite":
        with file.open("r+b") as found:
            found.seek(20_000)
            found.write(b"\xff" * 5_000)
    elif damage == "delete":
        file.unlink()
    else:
        data = file.read_bytes()
        file.unlink()
        file.write_bytes(data)
    assert not copy.is_untouched()
    copy.close()
    assert on_disk(tmp_path / "0_0") == ({}, -1)


def test_a_copy_that_was_never_finished_is_thrown_away(tmp_path: Path) -> None:
    copy = opened(tmp_path / "0_0")
    settle(copy, 1, a="1")
    copy.write()
    copy.close()
    (tmp_path / "0_0" / "lmdb" / "seal").unlink()
    assert on_disk(tmp_path / "0_0") == ({}, -1)


@ON_DISK
@pytest.mark.parametrize("another_boot", [True, False])
def test_a_copy_from_before_a_reboot_or_of_another_version_is_thrown_away(
    tmp_path: Path, kind: Kind, monkeypatch: pytest.MonkeyPatch, *, another_boot: bool
) -> None:
    copy = opened(tmp_path / "0_0", kind)
    settle(copy, 1, a="1")
    copy.write()
    copy.close()
    assert on_disk(tmp_path / "0_0", kind) == ({b"a": b"1"}, 1)
    if another_boot:
        monkeypatch.setattr(working_copy, "boot_id", lambda: "another boot")
    else:
        monkeypatch.setattr(working_copy, "_LAYOUT", 1_000)
    assert on_disk(tmp_path / "0_0", kind) == ({}, -1)


@ON_DISK
def test_a_copy_whose_state_cannot_be_read_is_thrown_away(tmp_path: Path, kind: Kind) -> None:
    copy = opened(tmp_path / "0_0", kind)
    settle(copy, 1, a="1")
    copy.write()
    environment = copy._parts[kind].environment
    environment.apply({OWN: Changes(rows={b"state": b"\xff of another version"})})
    copy._parts[kind]._write_seal()
    copy.close()
    assert on_disk(tmp_path / "0_0", kind) == ({}, -1)


@ON_DISK
def test_wiping_leaves_an_empty_copy_that_can_be_used(tmp_path: Path, kind: Kind) -> None:
    copy = opened(tmp_path / "0_0", kind)
    settle(copy, 1, a="1")
    copy.write()
    copy.wipe(["store"])
    assert (content(copy), copy.applied("store")) == ({}, None)
    settle(copy, 7, b="2")
    copy.write()
    copy.close()
    assert on_disk(tmp_path / "0_0", kind) == ({b"b": b"2"}, 7)


def test_a_process_that_dies_in_a_batch_leaves_a_mark(tmp_path: Path) -> None:
    assert not died_running(tmp_path / "0_0", 7)
    copy = opened(tmp_path / "0_0")
    copy.begin(7)
    assert died_running(tmp_path / "0_0", 7)
    assert not died_running(tmp_path / "0_0", 8)
    copy.end()
    assert not died_running(tmp_path / "0_0", 7)
    copy.close()


def test_a_batch_sees_the_copy_as_it_was_at_its_beginning(tmp_path: Path) -> None:
    copy = opened(tmp_path / "0_0")
    settle(copy, 1, a="1")
    copy.write()
    copy.begin(1)
    settle_elsewhere(tmp_path / "0_0")
    assert content(copy) == {b"a": b"1"}
    copy.end()
    assert content(copy) == {b"a": b"theirs"}
    copy.close()


def test_a_copy_in_a_folder_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "0_0").write_text("a file")
    with pytest.raises(ProcessorStateError, match=r"0_0.* (cannot be deleted|cannot be opened)"):
        opened(tmp_path / "0_0")


def test_a_folder_can_be_described_and_discarded(tmp_path: Path) -> None:
    copy = opened(tmp_path / "0_0")
    settle(copy, 1, a="1", b="2")
    copy.write()
    copy.close()
    info = describe(tmp_path / "0_0", CONFIG)
    assert (info.task, dict(info.stores)) == ("0_0", {"store": 2})
    assert info.size > 0
    discard(tmp_path / "0_0")
    assert not (tmp_path / "0_0").exists()
    discard(tmp_path / "0_0")


def test_stores_of_one_task_may_be_in_different_engines(tmp_path: Path) -> None:
    kinds: dict[str, Kind] = {"fast": "lmdb", "large": "rocksdb", "small": "in_memory"}
    copy = WorkingCopy(tmp_path / "0_0", kinds, CONFIG)
    for number, store in enumerate(kinds):
        copy.settle({store: Changes(rows={b"k": store.encode()})}, {store: Applied("topic", number)})
    copy.write()
    assert {store: copy.engine(store).get(b"k") for store in kinds} == {each: each.encode() for each in kinds}
    assert set(copy.metrics()) == {"lmdb", "rocksdb"}
    copy.close()
    assert describe(tmp_path / "0_0", CONFIG).stores == {"fast": 1, "large": 1}
    again = WorkingCopy(tmp_path / "0_0", kinds, CONFIG)
    # What is in memory only is gone, and known to be.
    assert [again.applied(store) for store in kinds] == [Applied("topic", 0), Applied("topic", 1), None]
    assert again.engine("small").get(b"k") is None
    again.close()


def test_rows_of_joins_are_written_only_when_there_are_many(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # Neither does a time have to pass for others, nor is any long enough for rows of joins.
    monkeypatch.setattr(working_copy, "_LASTING", working_copy._LASTING._replace(seconds=-1.0))
    monkeypatch.setattr(working_copy, "_JOINS", working_copy._JOINS._replace(rows=2))
    kinds: dict[str, Kind] = {"count": "lmdb", "left": "lmdb"}
    copy = WorkingCopy(tmp_path / "0_0", kinds, CONFIG, joins=["left"])
    for number in (1, 2):
        row = Changes(rows={str(number).encode(): b"x"})
        copy.settle(dict.fromkeys(kinds, row), {store: Applied("topic", number) for store in kinds})
    assert (written(copy, "count"), written(copy, "left")) == (2, 0)
    copy.settle({"left": Changes(rows={b"3": b"x"})}, {"left": Applied("topic", 3)})
    copy.close()
    assert describe(tmp_path / "0_0", CONFIG).stores == {"count": 2, "left": 3}


def test_rows_of_joins_that_cannot_be_used_leave_others_alone(tmp_path: Path) -> None:
    copy = WorkingCopy(tmp_path / "0_0", {"count": "lmdb", "left": "lmdb"}, CONFIG, joins=["left"])
    for store in ("count", "left"):
        copy.settle({store: Changes(rows={b"a": b"1"})}, {store: Applied("topic", 1)})
    copy.write()
    copy.wipe(["left"])
    assert [copy.engine(store).get(b"a") for store in ("count", "left")] == [b"1", None]
    assert (copy.applied("count"), copy.applied("left")) == (Applied("topic", 1), None)
    copy.close()

"""The chunk log and the working copy against a plain dict, through crashes, cleaning and lost copies."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headrace.spark import chunks as chunk_module
from headrace.spark.chunks import EMPTY, ChunkLog, Head, Version
from headrace.spark.working_copy import WorkingCopy, describe, died_in
from headrace.state.changes import Changes
from headrace.state.overlay import OverlayEngine


class FakeCells:
    """What Spark keeps for a task: writes are seen by the next batch only if the batch commits."""

    def __init__(self) -> None:
        self._head: Head | None = None
        self._chunks: dict[int, bytes] = {}
        self.staged_head: Head | None = None
        self.staged: dict[int, bytes | None] = {}

    def read_head(self) -> Head | None:
        return self._head

    def write_head(self, head: Head) -> None:
        self.staged_head = head

    def read(self, sequence: int) -> bytes | None:
        return self.staged.get(sequence, self._chunks.get(sequence))

    def write(self, sequence: int, data: bytes) -> None:
        self.staged[sequence] = data

    def remove(self, sequence: int) -> None:
        self.staged[sequence] = None

    def commit(self) -> None:
        self._head = self.staged_head or self._head
        for sequence, data in self.staged.items():
            if data is None:
                del self._chunks[sequence]
            else:
                self._chunks[sequence] = data
        self.rollback()

    def rollback(self) -> None:
        self.staged_head, self.staged = None, {}

    @property
    def count(self) -> int:
        return len(self._chunks)


def write(
    cells: FakeCells,
    copy: WorkingCopy,
    rows: dict[bytes, bytes | None],
    *,
    ranges: tuple[tuple[bytes, bytes], ...] = (),
) -> Changes:
    """Runs a batch that changes one store, on a copy that is brought up to date first."""
    log = ChunkLog(cells)
    copy.catch_up(log)
    overlay = OverlayEngine(copy.engine("store"))
    for start, stop in ranges:
        overlay.delete_range(start, stop)
    for key, value in rows.items():
        if value is None:
            overlay.delete(key)
        else:
            overlay.put(key, value)
    changes = overlay.changes()
    log.append({"store": changes}, live_rows=copy.rows(["store"]), current=lambda _, key: overlay.get(key))
    log.save(b"memory")
    return changes


def content(copy: WorkingCopy) -> dict[bytes, bytes]:
    return dict(copy.engine("store").scan())


def test_a_copy_catches_up_by_the_chunks_it_misses(tmp_path: Path) -> None:
    cells, copy = FakeCells(), WorkingCopy(tmp_path / "0_0")
    for number in range(3):
        write(cells, copy, {b"key": b"%d" % number, b"other-%d" % number: b""})
        cells.commit()
    assert copy.version.sequence == 2
    copy.catch_up(ChunkLog(cells))
    assert content(copy) == {b"key": b"2", b"other-0": b"", b"other-1": b"", b"other-2": b""}
    assert copy.version == ChunkLog(cells).version


def test_what_spark_did_not_commit_never_reaches_the_copy(tmp_path: Path) -> None:
    cells, copy = FakeCells(), WorkingCopy(tmp_path / "0_0")
    write(cells, copy, {b"key": b"committed"})
    cells.commit()
    write(cells, copy, {b"key": b"failed"})
    cells.rollback()
    copy.catch_up(ChunkLog(cells))
    assert content(copy) == {b"key": b"committed"}


def test_a_copy_of_another_history_is_rebuilt(tmp_path: Path) -> None:
    mine, other = FakeCells(), FakeCells()
    copy = WorkingCopy(tmp_path / "0_0")
    for cells, value in ((other, b"other"), (mine, b"mine")):
        fresh = WorkingCopy(tmp_path / value.decode())
        write(cells, fresh, {value: value})
        cells.commit()
        write(cells, fresh, {b"second": value})
        cells.commit()
    copy.catch_up(ChunkLog(other))
    # The same number of chunks, but not the same ones.
    copy.catch_up(ChunkLog(mine))
    assert content(copy) == {b"mine": b"mine", b"second": b"mine"}


def test_settled_changes_are_those_of_the_chunk(tmp_path: Path) -> None:
    cells, copy = FakeCells(), WorkingCopy(tmp_path / "0_0")
    changes = write(cells, copy, {b"key": b"1"})
    cells.commit()
    assert copy.settle({"store": changes}, EMPTY, ChunkLog(cells).version)
    assert content(copy) == {b"key": b"1"}
    # Whoever comes with the same changes once more finds them done.
    assert copy.settle({"store": changes}, EMPTY, ChunkLog(cells).version)
    assert not copy.settle({"store": changes}, Version(7, "x"), Version(8, "y"))


@pytest.mark.parametrize("damage", ["truncate", "overwrite", "delete", "replace"])
def test_a_damaged_copy_is_recognised_and_rebuilt(tmp_path: Path, damage: str) -> None:
    cells, copy = FakeCells(), WorkingCopy(tmp_path / "0_0")
    write(cells, copy, {b"key-%d" % number: b"x" * 100 for number in range(1000)})
    cells.commit()
    copy.catch_up(ChunkLog(cells))
    whole = content(copy)
    file = tmp_path / "0_0" / "data.mdb"
    if damage == "truncate":
        with file.open("r+b") as opened:
            opened.truncate(8192)
    elif damage == "overwrite":
        with file.open("r+b") as opened:
            opened.seek(20_000)
            opened.write(b"\xff" * 5_000)
    elif damage == "delete":
        file.unlink()
    else:
        data = file.read_bytes()
        file.unlink()
        file.write_bytes(data)
    assert not copy.is_untouched()
    copy.close()
    again = WorkingCopy(tmp_path / "0_0")
    assert again.version == EMPTY
    again.catch_up(ChunkLog(cells))
    assert content(again) == whole


def test_a_copy_from_before_a_reboot_is_rebuilt(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cells, copy = FakeCells(), WorkingCopy(tmp_path / "0_0")
    write(cells, copy, {b"key": b"1"})
    cells.commit()
    copy.catch_up(ChunkLog(cells))
    copy.close()
    monkeypatch.setattr("headrace.spark.working_copy.boot_id", lambda: b"another boot")
    again = WorkingCopy(tmp_path / "0_0")
    assert ChunkLog(cells).after(again.version) is None
    again.catch_up(ChunkLog(cells))
    assert content(again) == {b"key": b"1"}


def test_a_process_that_dies_in_a_batch_leaves_a_mark(tmp_path: Path) -> None:
    copy = WorkingCopy(tmp_path / "0_0")
    copy.begin("7")
    assert died_in(tmp_path / "0_0", "7")
    assert not died_in(tmp_path / "0_0", "8")
    copy.end()
    assert not died_in(tmp_path / "0_0", "7")


def test_large_changes_are_split(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chunk_module, "CHUNK_ROWS", 10)
    cells, copy = FakeCells(), WorkingCopy(tmp_path / "0_0")
    rows: dict[bytes, bytes | None] = {b"%03d" % number: b"x" for number in range(35)}
    write(cells, copy, rows, ranges=((b"a", b"b"),))
    cells.commit()
    assert cells.count == 4
    copy.catch_up(ChunkLog(cells))
    assert content(copy) == rows


def test_the_log_stays_small_when_few_rows_change_often(tmp_path: Path) -> None:
    cells, copy = FakeCells(), WorkingCopy(tmp_path / "0_0")
    write(cells, copy, {b"cold-%d" % number: b"" for number in range(5_000)})
    cells.commit()
    for number in range(200):
        write(cells, copy, {b"hot-%d" % (number * 100 % 700 + place): b"%d" % number for place in range(100)})
        cells.commit()
    live = len(content(copy))
    assert ChunkLog(cells).weight < 2.2 * live + 2_500
    assert cells.count < 150
    lost = WorkingCopy(tmp_path / "new host")
    lost.catch_up(ChunkLog(cells))
    copy.catch_up(ChunkLog(cells))
    assert content(lost) == content(copy)


def test_a_folder_can_be_described(tmp_path: Path) -> None:
    cells, copy = FakeCells(), WorkingCopy(tmp_path / "0_0")
    write(cells, copy, {b"key": b"1"})
    cells.commit()
    copy.catch_up(ChunkLog(cells))
    copy.close()
    info = describe(tmp_path / "0_0")
    assert (info.task, info.version.sequence, dict(info.stores)) == ("0_0", 1, {"store": 1})


KEYS = st.integers(0, 40).map(lambda number: b"k%02d" % number)
BATCHES = st.lists(
    st.tuples(
        st.dictionaries(KEYS, st.none() | st.binary(max_size=3), max_size=15),
        st.lists(st.tuples(KEYS, KEYS), max_size=1),
        st.sampled_from(["commit", "commit", "fail", "lose copy", "other host"]),
    ),
    max_size=30,
)


@settings(max_examples=60, deadline=None)
@given(batches=BATCHES, seed=st.integers(0, 1000))
def test_any_history_gives_the_rows_of_a_dict(
    tmp_path_factory: pytest.TempPathFactory,
    batches: list[tuple[dict[bytes, bytes | None], list[tuple[bytes, bytes]], str]],
    seed: int,
) -> None:
    directory, model = tmp_path_factory.mktemp("copies"), dict[bytes, bytes]()
    cells, hosts = FakeCells(), [WorkingCopy(directory / "a"), WorkingCopy(directory / "b")]
    chooser = random.Random(seed)
    chunk_rows, slack = chunk_module.CHUNK_ROWS, chunk_module._SLACK
    chunk_module.CHUNK_ROWS, chunk_module._SLACK = 7, 5
    try:
        for rows, ranges, fate in batches:
            copy = chooser.choice(hosts) if fate == "other host" else hosts[0]
            write(cells, copy, rows, ranges=tuple(ranges))
            if fate == "fail":
                cells.rollback()
                continue
            cells.commit()
            for start, stop in ranges:
                model = {key: value for key, value in model.items() if not start <= key < stop}
            model.update({key: value for key, value in rows.items() if value is not None})
            model = {key: value for key, value in model.items() if rows.get(key, value) is not None}
            if fate == "lose copy":
                hosts[0].close()
                hosts[0] = WorkingCopy(directory / f"{len(hosts)}-{chooser.random()}")
        for copy in hosts:
            copy.catch_up(ChunkLog(cells))
            assert content(copy) == model
    finally:
        chunk_module.CHUNK_ROWS, chunk_module._SLACK = chunk_rows, slack
        for copy in hosts:
            copy.close()

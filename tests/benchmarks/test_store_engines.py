"""The benchmark of store engines at a tiny size, which compares what it reads, and its bound on memory."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.memory_limit import join_group, memory_group, parse_bytes
from benchmarks.store_engines import measure_apart, show


def test_benchmark_of_store_engines_runs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = {kind: measure_apart(kind, 5_000, tmp_path / kind, 60, None) for kind in ("lmdb", "rocksdb")}
    assert [figures.rows for figures in found.values()] == [5_000, 5_000]
    show(found)
    assert "range scans, rows/s, µs of processor" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("groups", "parent", "limit"),
    [("4:memory:/mine\n0::/", "memory/mine", "memory.limit_in_bytes"), ("0::/mine", "mine", "memory.max")],
)
def test_memory_is_bounded_by_a_group_below_the_own_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, groups: str, parent: str, limit: str
) -> None:
    own = tmp_path / parent
    own.mkdir(parents=True)
    # The kernel removes a group with its files, as no other file system does.
    monkeypatch.setattr(Path, "rmdir", lambda path: [file.unlink() for file in path.iterdir()])
    with memory_group(parse_bytes("2g"), root=tmp_path, groups=groups) as group:
        assert group.parent == own
        assert (group / limit).read_text() == str(2 << 30)
        join_group(group)
        assert (group / "cgroup.procs").exists()
    assert not list(group.iterdir())


def test_a_bound_that_cannot_be_read_is_refused() -> None:
    with pytest.raises(ValueError, match="as in 2g; found 'much'"):
        parse_bytes("much")

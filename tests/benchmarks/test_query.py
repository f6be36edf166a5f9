"""The benchmark of queries at a tiny size: it compares its answers itself."""

from pathlib import Path

import pytest

from benchmarks.query import run


def test_benchmark_of_queries_runs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run(2_000, 200, 2, tmp_path)
    assert "key query p99" in capsys.readouterr().out

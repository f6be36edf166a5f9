"""The benchmark of metrics runs; what it finds is not judged here."""

from __future__ import annotations

from benchmarks.metrics_cost import run


def test_it_runs_in_a_small_size() -> None:
    rate, share = run(10_000, "INFO")
    assert rate > 0
    assert 0 <= share < 1

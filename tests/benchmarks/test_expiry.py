"""The benchmark of expiry runs on a small table; what it finds is not judged here."""

from __future__ import annotations

import pytest

from benchmarks import expiry


@pytest.mark.parametrize("case", expiry.cases(3_000), ids=lambda case: case.name)
def test_rows_expire_on_one_side_only(case: expiry.Case, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(expiry, "BATCH", 1_000)
    monkeypatch.setattr(expiry, "COMMITS", 3)
    found = expiry.measure(case, 3_000, rounds=1)
    assert found.expired > 100
    assert min(found.lasting, found.expiring, found.worst) > 0

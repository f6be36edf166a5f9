"""The benchmark of metrics runs; what it finds is not judged here."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.metrics_cost import BATCH, Spread, fill, is_off, losses, run
from headrace.metrics.recording import Recording
from tests.views.kit import Place


def test_every_other_micro_batch_runs_without_metrics(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    recorded: list[int] = []
    add = Recording.add

    def noted(recording: Recording, batch: object, tasks: object = ()) -> None:
        recorded.append(batch.batch_id)  # type: ignore[attr-defined]
        add(recording, batch, tasks)  # type: ignore[arg-type]

    monkeypatch.setattr(Recording, "add", noted)
    place = Place(tmp_path, **{"in": 2})
    fill(place, 8 * BATCH)
    seconds = run(place, "INFO", is_off=is_off)
    place.close()
    assert len(seconds) >= 6
    assert all(each > 0 for each in seconds.values())
    assert recorded
    assert not any(is_off(each) for each in recorded)
    assert len(losses(seconds)) >= 2


def test_losses_are_those_of_neighbours() -> None:
    assert losses({3: 5.0, 4: 0.9, 5: 1.0, 6: 1.0, 7: 0.9, 8: 3.0}) == pytest.approx([0.1, 0.1])


def test_spread_holds_the_median() -> None:
    spread = Spread.of([each / 100 for each in range(101)])
    assert spread.median == 0.5
    assert spread.quartiles == pytest.approx((0.245, 0.755))
    assert 0.3 < spread.low < 0.5 < spread.high < 0.7

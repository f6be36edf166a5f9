from __future__ import annotations

import pytest

from headrace.batches import planner


@pytest.fixture(autouse=True)
def asked_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tasks that are being restored are asked without a pause how far they are."""
    monkeypatch.setattr(planner, "_ASK_EVERY", 0.0)

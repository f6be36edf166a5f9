"""A server on Spark that is killed under load; ``kill_soak`` is the long version."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.sql.server.kill_soak import AGAIN, Soak, opened_log

pytestmark = pytest.mark.spark


def test_killed_server_goes_on_and_counts_every_row_once(tmp_path: Path) -> None:
    with opened_log("embedded", tmp_path) as (log, settings):
        soak = Soak(tmp_path, log, settings, queries=5, rate=50, seed=3)
        try:
            soak.run(1, [AGAIN])
        finally:
            soak.close()

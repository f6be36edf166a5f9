"""The topologies of a long run: enough of them, with every kind of store, whatever its seed."""

from __future__ import annotations

from pathlib import Path

import pytest

from headrace.topology.queryable_stores import logged_stores
from tests.takeover.cases import FEWEST, STORE_KINDS, Application, selected_cases


@pytest.mark.parametrize("seed", range(4))
def test_every_selection_has_all_kinds_of_stores(tmp_path: Path, seed: int) -> None:
    cases = selected_cases(every=4, seed=seed)
    assert len(cases) >= FEWEST
    kinds = set()
    for case in cases:
        application = Application("app", case)
        topology = application.topology(application.config("localhost:9092", tmp_path))
        kinds |= {topology.store_builders[store].kind for store in logged_stores(topology, "app")}
    assert kinds == STORE_KINDS

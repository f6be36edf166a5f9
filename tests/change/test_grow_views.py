"""Views after a growth: every row once, in the partition where its key is looked for."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

from headrace import Streams
from headrace.app.engine import local_engine
from headrace.errors import InvalidStateStoreError
from headrace.topics.journal import DurableLog
from headrace.views import QueryableStoreTypes
from tests.change.kit import Program
from tests.change.test_grow_refusals import counting, grown, started


def rows(program: Program) -> tuple[list[tuple[str, Any]], dict[str, Any]]:
    """Returns what a running application answers: all rows, and each by its key."""
    deadline = time.monotonic() + 30
    with Streams(program.topology, program.config, log=program.log, engine=local_engine) as streams:
        while True:
            try:
                store = streams.store("counts", QueryableStoreTypes.key_value_store())
                found = sorted((row.key, row.value) for row in store.all())
                return found, {key: store.get(key) for key, _ in found}
            except InvalidStateStoreError:
                # The view is being built.
                assert time.monotonic() < deadline
                time.sleep(0.02)


def test_views_follow_a_growth(log: DurableLog, tmp_path: Path) -> None:
    program = started(log, tmp_path, counting, "in")
    before = rows(program)
    grown(program, **{"in": 6})
    assert rows(program) == before
    assert before[0] == sorted((f"k{number}", 1) for number in range(10))

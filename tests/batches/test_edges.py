"""Records over repartition edges: what is sent page by page arrives as if it had been sent at once."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from headrace import StreamsBuilder
from headrace.batches import task_runner
from tests.batches.kit import Bench

COUNT = 9_000


def run(directory: Path) -> list[tuple[str | None, Any]]:
    """Sends records over two edges, and returns what arrives in the end, in its order."""

    def build(builder: StreamsBuilder) -> None:
        once = builder.stream("in").select_key(lambda _, value: str(value % 7)).repartition()
        once.select_key(lambda _, value: "all").repartition().to("out")

    bench = Bench(directory, build, {"in": 2, "out": 1})
    bench.write("in", *((str(number % 5), number, number // 3) for number in range(COUNT)))
    bench.driver().run()
    return bench.read("out")


def test_pages_arrive_in_the_order_in_which_all_would_arrive_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    at_once = run(tmp_path / "once")
    assert sorted(value for _, value in at_once) == list(range(COUNT))
    # Pages of some thousand records, so that tasks of both levels send while they still read.
    monkeypatch.setattr(task_runner, "_PAGE_BYTES", 50_000)
    assert run(tmp_path / "pages") == at_once

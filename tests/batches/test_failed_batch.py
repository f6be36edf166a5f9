"""A micro-batch that fails between two levels: nothing behind it runs on a part of its input."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from headrace import Streams, StreamsBuilder
from headrace.app.engine import local_engine
from headrace.topics.journal import DurableLog
from tests.app.kit import config
from tests.batches.failed_batch import check_that_all_results_come_once


def test_a_record_that_cannot_be_read_loses_no_results_of_others(log: DurableLog, tmp_path: Path) -> None:
    def run(build: Callable[[StreamsBuilder], Any], **settings: Any) -> None:
        builder = StreamsBuilder()
        build(builder)
        Streams(builder.build(), config(tmp_path, **settings), log=log, engine=local_engine).run(until_end=True)

    check_that_all_results_come_once(log, run)

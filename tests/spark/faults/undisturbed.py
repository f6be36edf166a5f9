"""The application when nothing happens to it: in this process, without Spark, and with all of its input at once."""

from __future__ import annotations

from pathlib import Path

from headrace import EmbeddedLog, Streams
from headrace.app.engine import local_engine
from headrace.topics.log import Output
from tests.spark.faults import shop


def run_undisturbed(directory: Path, inputs: list[tuple[str, Output]]) -> EmbeddedLog:
    """Returns the log that it leaves; close it after use."""
    log = EmbeddedLog(directory / "log", sync="none")
    shop.create_topics(log)
    shop.append(log, inputs)
    config = shop.config(directory, "local")
    Streams(shop.build(), config, log=log, engine=local_engine).run(until_end=True)
    return log

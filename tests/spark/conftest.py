"""One JVM and one Spark context serve all tests of a process."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from headrace import EmbeddedLog, StreamsConfig
from tests.logs import run_on_logs

if TYPE_CHECKING:
    from tests.spark.stand import Stand


@pytest.fixture(scope="session")
def spark_context(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Keeps Spark's context open between tests: starting it takes longer than most of them."""
    from headrace.spark.context import close_context, open_context
    from tests.spark.stand import MASTER

    context = open_context(StreamsConfig.of({"spark.master": MASTER}), directory=tmp_path_factory.mktemp("spark"))
    yield
    close_context(context)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    run_on_logs(metafunc, "stand")


@pytest.fixture
def stand(request: pytest.FixtureRequest, tmp_path: Path, spark_context: None) -> Iterator[Stand]:
    from tests.spark.stand import Stand

    if request.param == "kafka":
        yield Stand(tmp_path, request.getfixturevalue("kafka"))
        return
    with EmbeddedLog(tmp_path / "log", sync="none") as log:
        yield Stand(tmp_path, log)

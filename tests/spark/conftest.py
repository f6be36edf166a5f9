"""One JVM and one Spark context serve all tests of a process."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from headrace import StreamsConfig
from tests.spark.stand import MASTER, Stand


@pytest.fixture(scope="session")
def spark_context(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Keeps Spark's context open between tests: starting it takes longer than most of them."""
    from headrace.spark.session import close_session, open_session

    config = StreamsConfig.of({"spark.master": MASTER})
    session = open_session(config, partitions=2, directory=tmp_path_factory.mktemp("spark"))
    yield
    close_session(session)


@pytest.fixture
def stand(tmp_path: Path, spark_context: None) -> Iterator[Stand]:
    made = Stand(tmp_path)
    yield made
    made.log.close()

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("confluent_kafka")

from headrace.devtools.kafka_broker.jars import check_jars, jars_digest
from headrace.errors import LogError


def test_jars_are_known_by_their_names_and_contents(tmp_path: Path) -> None:
    (tmp_path / "a.jar").write_bytes(b"1")
    first = jars_digest(tmp_path)
    (tmp_path / "a.jar").write_bytes(b"2")
    second = jars_digest(tmp_path)
    (tmp_path / "a.jar").rename(tmp_path / "b.jar")
    assert len({first, second, jars_digest(tmp_path)}) == 3


def test_other_jars_than_the_tested_ones_are_refused(tmp_path: Path) -> None:
    (tmp_path / "kafka.jar").write_bytes(b"something else")
    with pytest.raises(LogError, match="are not the ones that were tested"):
        check_jars(tmp_path)

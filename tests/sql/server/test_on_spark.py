"""Persistent queries on Spark: several of them in one JVM, and what they write."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from tests.sql.server.kit import SOON, SqlPlace

pytestmark = pytest.mark.spark

SETTINGS = {"spark.master": "local[1,1]", "spark.driver.memory": "1g"}


def test_queries_share_one_jvm(place: SqlPlace) -> None:
    client = place.server(SETTINGS, engine=None)
    client.ksql("CREATE STREAM S (K INT KEY, V STRING) WITH (KAFKA_TOPIC='s', VALUE_FORMAT='JSON', PARTITIONS=1);")
    client.ksql(
        "CREATE STREAM LOUD AS SELECT K, UCASE(V) AS V FROM S;"
        "CREATE TABLE COUNTS AS SELECT V, COUNT(*) AS N FROM LOUD GROUP BY V;"
    )
    client.ksql("INSERT INTO S VALUES (1, 'a'); INSERT INTO S VALUES (2, 'a'); INSERT INTO S VALUES (3, 'b');")
    client.settle()
    assert [row["V"] for row in client.values("LOUD")] == ["A", "A", "B"]
    counts = {raw[2]: row["N"] for raw, row in zip(client.records("COUNTS"), client.values("COUNTS"), strict=True)}
    assert counts == {b"A": 2, b"B": 1}
    client.ksql("TERMINATE CSAS_LOUD_0; INSERT INTO LOUD VALUES (4, 'B');")
    client.settle()
    assert client.values("COUNTS")[-1] == {"N": 2}


def test_query_is_terminated_while_its_function_hangs(place: SqlPlace, tmp_path: Path) -> None:
    settings = {"ksql.functions.python.modules": "tests.sql.server", "ksql.streams.shutdown.timeout.ms": 300}
    client = place.server({**SETTINGS, **settings}, engine=None)
    entered = tmp_path / "entered"
    client.ksql(
        "CREATE STREAM S (K INT KEY, V INT) WITH (KAFKA_TOPIC='s', VALUE_FORMAT='JSON', PARTITIONS=1);"
        "CREATE FUNCTION HANG AS 'tests.sql.server.hanging:block_elsewhere';"
        f"CREATE STREAM STUCK AS SELECT K, HANG(V, '{entered}') AS V FROM S; INSERT INTO S VALUES (1, 10);"
    )
    deadline = time.monotonic() + SOON.total_seconds()
    while not entered.exists():
        assert time.monotonic() < deadline, client.ksql("EXPLAIN CSAS_STUCK_0;")
        time.sleep(0.05)
    client.ksql("TERMINATE CSAS_STUCK_0; CREATE STREAM FREE AS SELECT K, V + 1 AS V FROM S;")
    client.settle()
    assert client.values("FREE") == [{"V": 11}]
    assert client.values("STUCK") == []

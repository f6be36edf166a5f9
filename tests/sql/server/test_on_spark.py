"""Persistent queries on Spark: several of them in one JVM, and what they write."""

from __future__ import annotations

import pytest

from tests.sql.server.kit import SqlPlace

pytestmark = pytest.mark.spark


def test_queries_share_one_jvm(place: SqlPlace) -> None:
    client = place.server({"spark.master": "local[1,1]", "spark.driver.memory": "1g"}, engine=None)
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

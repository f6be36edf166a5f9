"""Persistent queries on Spark: several of them in one JVM, and what they write."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest
from pyspark import SparkContext

from headrace.config import StreamsConfig
from headrace.spark.spark_engine import SharedSparkEngines
from tests.sql.server.kit import SqlPlace, until
from tests.sql.server.test_time_to_live import check_expiry_by_stream_time

pytestmark = pytest.mark.spark

SETTINGS = {"spark.master": "local[1,1]", "spark.driver.memory": "1g"}
FUNCTIONS = {"ksql.functions.python.modules": "tests.sql.server", "ksql.streams.shutdown.timeout.ms": 300}


def test_queries_share_one_jvm_and_their_rows_expire(place: SqlPlace) -> None:
    client = place.server(SETTINGS, engine=None)
    client.ksql("CREATE STREAM S (K INT KEY, V STRING) WITH (KAFKA_TOPIC='s', VALUE_FORMAT='JSON', PARTITIONS=1);")
    client.ksql(
        "CREATE STREAM LOUD AS SELECT K, UCASE(V) AS V FROM S;"
        "CREATE TABLE COUNTS AS SELECT V, COUNT(*) AS N FROM LOUD GROUP BY V;"
        "CREATE STREAM FIRSTS AS SELECT DISTINCT ON (V) WITHIN 1 DAY V, K FROM LOUD PARTITION BY V;"
    )
    client.ksql("INSERT INTO S VALUES (1, 'a'); INSERT INTO S VALUES (2, 'a'); INSERT INTO S VALUES (3, 'b');")
    client.settle()
    assert [row["V"] for row in client.values("LOUD")] == ["A", "A", "B"]
    counts = {raw[2]: row["N"] for raw, row in zip(client.records("COUNTS"), client.values("COUNTS"), strict=True)}
    assert counts == {b"A": 2, b"B": 1}
    assert client.values("FIRSTS") == [{"K": 1}, {"K": 3}]
    client.ksql("TERMINATE CSAS_LOUD_0; INSERT INTO LOUD VALUES (4, 'B');")
    client.settle()
    assert client.values("FIRSTS") == [{"K": 1}, {"K": 3}]
    assert client.values("COUNTS")[-1] == {"N": 2}
    check_expiry_by_stream_time(client)


def test_query_is_terminated_while_its_function_hangs(place: SqlPlace, tmp_path: Path) -> None:
    client = place.server({**SETTINGS, **FUNCTIONS}, engine=None)
    entered = tmp_path / "entered"
    client.ksql(
        "CREATE STREAM S (K INT KEY, V INT) WITH (KAFKA_TOPIC='s', VALUE_FORMAT='JSON', PARTITIONS=1);"
        "CREATE FUNCTION HANG AS 'tests.sql.server.hanging:block_elsewhere';"
        f"CREATE STREAM STUCK AS SELECT K, HANG(V, '{entered}') AS V FROM S; INSERT INTO S VALUES (1, 10);"
    )
    until(entered.exists)
    client.ksql("TERMINATE CSAS_STUCK_0; CREATE STREAM FREE AS SELECT K, V + 1 AS V FROM S;")
    client.settle()
    assert client.values("FREE") == [{"V": 11}]
    assert client.values("STUCK") == []


def test_server_that_waits_has_spark_ready_and_takes_over(place: SqlPlace) -> None:
    first = place.server()
    first.ksql(
        "CREATE STREAM S (K INT KEY, V INT) WITH (KAFKA_TOPIC='s', VALUE_FORMAT='JSON', PARTITIONS=1);"
        "CREATE TABLE N AS SELECT K, COUNT(*) AS N FROM S GROUP BY K; INSERT INTO S VALUES (1, 10);"
    )
    first.settle()
    second = place.server(SETTINGS, engine=None)
    until(lambda: SparkContext._active_spark_context is not None)
    assert not second.server.host.metrics("CTAS_N_0")
    first.close()
    second.ksql("INSERT INTO S VALUES (1, 20);")
    until(lambda: second.values("N") == [{"N": 1}, {"N": 2}])


def test_function_that_hangs_holds_up_its_own_query_alone(place: SqlPlace, tmp_path: Path) -> None:
    entered = tmp_path / "entered"
    config = StreamsConfig.of({**SETTINGS, "application.id": "sql", "state.dir": str(tmp_path)})
    engines = SharedSparkEngines(config, place.log, tmp_path / "engine", patience=timedelta(seconds=2))
    client = place.server(FUNCTIONS, engine=engines)
    client.ksql(
        "CREATE STREAM S (K INT KEY, V INT) WITH (KAFKA_TOPIC='s', VALUE_FORMAT='JSON', PARTITIONS=1);"
        "CREATE FUNCTION HANG AS 'tests.sql.server.hanging:block_elsewhere';"
        f"CREATE STREAM STUCK AS SELECT K, HANG(V, '{entered}') AS V FROM S;"
        "CREATE STREAM FREE AS SELECT K, V + 1 AS V FROM S;"
        "CREATE TABLE N AS SELECT K, COUNT(*) AS N FROM S GROUP BY K;"
    )
    client.settle()
    # All of them have it in one job.
    client.ksql("INSERT INTO S VALUES (1, 10);")
    until(entered.exists)
    until(lambda: (client.values("FREE"), client.values("N")) == ([{"V": 11}], [{"N": 1}]))
    client.ksql("INSERT INTO S VALUES (1, 20);")
    until(lambda: (client.values("FREE")[1:], client.values("N")[1:]) == ([{"V": 21}], [{"N": 2}]))
    client.ksql("TERMINATE CSAS_STUCK_0;")
    client.settle()
    assert client.values("STUCK") == []
    described = client.ksql("SHOW QUERIES EXTENDED;")[0]["queryDescriptions"]
    assert [(each["state"], each["queryErrors"]) for each in described] == [("RUNNING", [])] * 2
    client.close()
    engines.close()

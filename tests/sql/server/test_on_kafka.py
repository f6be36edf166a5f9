"""A server whose topics, the command topic among them, are in Kafka."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING
from uuid import uuid4

import pytest

from headrace.app.engine import local_engine
from headrace.sql.server.sql_server import SqlServer
from tests.sql.server.kit import SOON, Client

if TYPE_CHECKING:
    from headrace.topics.kafka import KafkaLog

pytestmark = pytest.mark.kafka


def test_topics_are_made_as_the_statement_says(tmp_path: Path, kafka: KafkaLog) -> None:
    own = f"T{uuid4().hex[:8].upper()}"
    settings = {"state.dir": str(tmp_path), "bootstrap.servers": kafka.bootstrap_servers, "ksql.service.id": f"{own}_"}
    text = (
        f"CREATE STREAM S (V INT) WITH (KAFKA_TOPIC='{own}-s', VALUE_FORMAT='JSON', PARTITIONS=2, REPLICAS=%d, "
        "RETENTION_MS=60000);"
    )
    client = Client(SqlServer(settings, listen="localhost:0", log=kafka, engine=local_engine).start())
    try:
        # There is one broker.
        status, error = client.error(text % 3)
        assert (status, error["error_code"]) == (400, 40001)
        assert "replication" in error["message"].lower()
        assert f"{own}-s" not in kafka.topics()
        client.ksql(text % 1)
        made = kafka.describe_topic(f"{own}-s")
        assert (made.partitions, made.configs["retention.ms"]) == (2, "60000")
        client.ksql("DROP STREAM S DELETE TOPIC;")
        assert f"{own}-s" not in kafka.topics()
    finally:
        client.close()


def test_restarted_server_goes_on(tmp_path: Path, kafka: KafkaLog) -> None:
    own = f"T{uuid4().hex[:8].upper()}"
    settings = {
        "state.dir": str(tmp_path),
        "bootstrap.servers": kafka.bootstrap_servers,
        "ksql.service.id": f"{own}_",
        "ksql.output.topic.name.prefix": f"{own}-",
    }
    expected = [{"N": 1}]
    for start in (1, 2):
        client = Client(SqlServer(settings, listen="localhost:0", log=kafka, engine=local_engine).start())
        try:
            if start == 1:
                client.ksql(
                    f"CREATE STREAM S (K INT KEY, V STRING) WITH (KAFKA_TOPIC='{own}-s', VALUE_FORMAT='JSON', "
                    "PARTITIONS=1); CREATE TABLE N AS SELECT V, COUNT(*) AS N FROM S GROUP BY V;"
                )
                assert client.error("CREATE TABLE N AS SELECT V, COUNT(*) AS N FROM S GROUP BY V;")[0] == 400
            client.ksql(f"INSERT INTO S VALUES ({start}, 'a');")
            # Each task commits for itself: who has read is not yet who has written.
            deadline = time.monotonic() + SOON.total_seconds()
            while len(client.records(f"{own}-N")) < start and time.monotonic() < deadline:
                time.sleep(0.05)
            assert client.values(f"{own}-N") == expected
            assert client.query("SELECT * FROM N WHERE V = 'a';")[1] == {"row": {"columns": ["a", start]}}
        finally:
            client.close()
        expected = [{"N": 1}, {"N": 2}]

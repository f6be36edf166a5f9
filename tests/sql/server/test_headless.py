"""The statements of a file, and no others."""

from __future__ import annotations

from pathlib import Path

import pytest

from headrace.app.engine import local_engine
from headrace.sql.errors import SqlStatementError
from headrace.sql.server.headless import run_file
from headrace.sql.server.sql_server import SqlServer
from tests.sql.server.kit import Client, SqlPlace

STATEMENTS = """
SET 'auto.offset.reset' = 'earliest';
DEFINE topic = 's';
CREATE STREAM S (K INT KEY, V STRING) WITH (KAFKA_TOPIC='${topic}', VALUE_FORMAT='JSON', PARTITIONS=1);
CREATE TABLE N AS SELECT V, COUNT(*) AS N FROM S GROUP BY V;
"""


def _server(place: SqlPlace, path: Path) -> SqlServer:
    settings = {"state.dir": str(place.directory), "log.sync": "none"}
    server = SqlServer(settings, listen="localhost:0", log=place.log, engine=local_engine, accepts_statements=False)
    try:
        run_file(server.service, path)
    except BaseException:
        server.stop()
        raise
    return server.start()


def test_file_runs_at_every_start(place: SqlPlace, tmp_path: Path) -> None:
    path = tmp_path / "queries.sql"
    path.write_text(STATEMENTS)
    for expected in (1, 2):
        client = Client(_server(place, path))
        try:
            place.log.append("s", [(None, 0, None, b'{"V":"a"}', ())])
            client.settle()
            assert client.values("N")[-1] == {"N": expected}
            assert client.http.post("/ksql", json={"ksql": "SHOW STREAMS;"}).status_code == 400
            assert client.http.get("/healthcheck").json()["isHealthy"]
        finally:
            client.close()
    assert not any("commands" in topic for topic in place.log.topics())


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/ksql", '{"ksql": "SHOW STREAMS;"}'),
        ("/ksql/terminate", '{"deleteTopicList": [".*"]}'),
        ("/inserts-stream", '{"target": "S"}\n{"V": "a"}'),
    ],
)
def test_server_of_a_file_is_read_only(place: SqlPlace, tmp_path: Path, path: str, body: str) -> None:
    statements = tmp_path / "queries.sql"
    statements.write_text(STATEMENTS)
    client = Client(_server(place, statements))
    try:
        topics = place.log.topics()
        found = client.http.post(path, content=body)
        assert (found.status_code, found.json()["error_code"]) == (400, 40000)
        assert "read-only" in found.json()["message"]
        assert client.server.service.engine.catalog.queries.keys() == {"CTAS_N_0"}
        assert client.server.host.status("CTAS_N_0").state.name == "RUNNING"
        assert (place.log.topics(), client.records("s")) == (topics, [])
        read = client.http.post("/query", json={"ksql": "SELECT * FROM N;"})
        assert read.status_code == 200
    finally:
        client.close()


def test_functions_of_a_file_come_from_modules_that_the_server_trusts(place: SqlPlace, tmp_path: Path) -> None:
    path = tmp_path / "queries.sql"
    path.write_text("CREATE FUNCTION Q AS 'headrace.sql.types:quoted';" + STATEMENTS)
    with pytest.raises(SqlStatementError, match=r"start it with --set ksql\.functions\.python\.modules"):
        _server(place, path)


@pytest.mark.parametrize(
    "text",
    [
        "SET 'no.such.setting' = '1';" + STATEMENTS,
        "SHOW STREAMS;",
        "CREATE TYPE T AS INT;",
        STATEMENTS + "INSERT INTO S VALUES (1, 'a');",
    ],
)
def test_file_must_start_queries_and_ask_nothing(place: SqlPlace, tmp_path: Path, text: str) -> None:
    path = tmp_path / "queries.sql"
    path.write_text(text)
    with pytest.raises(SqlStatementError, match=r"queries\.sql"):
        _server(place, path)

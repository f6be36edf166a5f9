"""Connectors of a real Connect worker: a file becomes a stream, a stream becomes a file."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import pytest

from headrace.app.engine import local_engine
from headrace.cli.sql.client import SqlClient
from headrace.cli.sql.screen import Screen
from headrace.cli.sql.session import Session
from headrace.sql.server.sql_server import SqlServer
from tests.sql.server.kit import SOON, Client

if TYPE_CHECKING:
    from headrace.topics.kafka import KafkaLog

pytestmark = pytest.mark.kafka


@pytest.fixture
def client(tmp_path: Path, kafka: KafkaLog, worker_url: str) -> Iterator[Client]:
    settings = {
        "state.dir": str(tmp_path),
        "bootstrap.servers": kafka.bootstrap_servers,
        "ksql.service.id": f"T{uuid4().hex[:8]}_",
        "ksql.connect.url": worker_url,
    }
    made = Client(SqlServer(settings, listen="localhost:0", log=kafka, engine=local_engine).start())
    try:
        yield made
    finally:
        for each in made.ksql("SHOW CONNECTORS;")[0]["connectors"]:
            made.ksql(f"DROP CONNECTOR `{each['name']}`;")
        made.close()


def wait_for(found: Callable[[], Any], expected: Any) -> None:
    deadline = time.monotonic() + SOON.total_seconds()
    while (last := found()) != expected and time.monotonic() < deadline:
        time.sleep(0.05)
    assert last == expected


def test_lines_of_a_file_become_rows_and_rows_become_lines(
    client: Client, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lines, loud = tmp_path / "lines.txt", tmp_path / "loud.txt"
    lines.write_text("tea\nmilk\n")
    client.ksql(
        "CREATE STREAM lines (line STRING) WITH (KAFKA_TOPIC='lines', PARTITIONS=1, FORMAT='KAFKA');"
        "CREATE STREAM loud WITH (KAFKA_TOPIC='loud') AS SELECT UCASE(line) AS line FROM lines;"
        f"CREATE SOURCE CONNECTOR reads WITH ('connector.class'='FileStreamSource', 'topic'='lines', 'file'='{lines}');"
        f"CREATE SINK CONNECTOR `writes` WITH ('connector.class'='FileStreamSink', 'topics'='loud', 'file'='{loud}');"
    )
    wait_for(lambda: loud.read_text() if loud.exists() else "", "TEA\nMILK\n")
    with lines.open("a") as more:
        more.write("bread\n")
    wait_for(loud.read_text, "TEA\nMILK\nBREAD\n")

    [described] = client.ksql("DESCRIBE CONNECTOR reads;")
    assert described["@type"] == "connector_description"
    assert described["connectorClass"] == "FileStreamSource"
    assert described["status"]["name"] == "READS"
    assert described["status"]["type"] == "source"
    assert described["status"]["connector"]["state"] == "RUNNING"
    assert [task["state"] for task in described["status"]["tasks"]] == ["RUNNING"]
    assert described["topics"] == ["lines"]
    assert [source["name"] for source in described["sources"]] == ["LINES"]

    session = Session(SqlClient(client.server.url), Screen())
    capsys.readouterr()
    session.run("SHOW CONNECTORS; DESCRIBE CONNECTOR `writes`;")
    worker = described["status"]["connector"]["worker_id"]
    assert capsys.readouterr().out.splitlines() == [
        "Connector   Type     Class              State",
        "READS       source   FileStreamSource   RUNNING (1/1 tasks RUNNING)",
        "writes      sink     FileStreamSink     RUNNING (1/1 tasks RUNNING)",
        "CONNECTOR writes",
        "  class: FileStreamSink",
        "  type: sink",
        "  state: RUNNING",
        f"  worker: {worker}",
        "Task   State     Error",
        "   0   RUNNING",
        "Topic",
        "loud",
        "Source   Type     Read from",
        "LOUD     STREAM   loud",
    ]


def test_task_that_fails_is_shown_with_its_error(
    client: Client, kafka: KafkaLog, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    kafka.create_topic("loud", partitions=1)
    place = tmp_path / "nowhere" / "loud.txt"
    client.ksql(
        f"CREATE SINK CONNECTOR c WITH ('connector.class'='FileStreamSink', 'topics'='loud', 'file'='{place}');"
    )
    wait_for(lambda: client.ksql("SHOW CONNECTORS;")[0]["connectors"][0]["state"], "WARNING (0/1 tasks RUNNING)")
    [task] = client.ksql("DESCRIBE CONNECTOR c;")[0]["status"]["tasks"]
    assert "\n" in task["trace"], "the whole stack"
    session = Session(SqlClient(client.server.url), Screen())
    capsys.readouterr()
    session.run("DESCRIBE CONNECTOR c;")
    assert capsys.readouterr().out.splitlines()[-1] == f"   0   FAILED   {task['trace'].splitlines()[0]}"


def test_plugins_are_those_of_the_worker(client: Client) -> None:
    [answer] = client.ksql("SHOW CONNECTOR PLUGINS;")
    plugins = {each["className"]: each["type"] for each in answer["connectorsPlugins"]}
    assert answer["@type"] == "connector_plugins_list"
    assert plugins["org.apache.kafka.connect.file.FileStreamSourceConnector"] == "source"
    assert plugins["org.apache.kafka.connect.file.FileStreamSinkConnector"] == "sink"


def test_connector_is_made_once_and_dropped_once(client: Client, tmp_path: Path) -> None:
    made = f"c WITH ('connector.class'='FileStreamSource', 'topic'='lines', 'file'='{tmp_path / 'none'}');"
    [created] = client.ksql(f"CREATE SOURCE CONNECTOR {made}")
    assert created["@type"] == "connector_info"
    assert created["info"]["name"] == "C"
    assert created["info"]["config"]["topic"] == "lines"
    assert created["info"]["type"] == "source"
    status, error = client.error(f"CREATE SOURCE CONNECTOR {made}")
    assert (status, error["error_code"], error["message"]) == (409, 40900, "Connector C already exists")
    [warning] = client.ksql(f"CREATE SOURCE CONNECTOR IF NOT EXISTS {made}")
    assert (warning["@type"], warning["message"]) == ("warning_entity", "Connector C already exists")

    [dropped] = client.ksql("DROP CONNECTOR c;")
    assert dropped == {
        "@type": "drop_connector",
        "statementText": "DROP CONNECTOR c;",
        "connectorName": "C",
        "warnings": [],
    }
    assert client.ksql("SHOW CONNECTORS;")[0]["connectors"] == []
    status, error = client.error("DROP CONNECTOR c;")
    assert (status, error["error_code"]) == (404, 40400)
    assert error["message"] == "Failed to drop connector: Connector C not found"
    [warning] = client.ksql("DROP CONNECTOR IF EXISTS c;")
    assert (warning["@type"], warning["message"]) == ("warning_entity", "Connector 'C' does not exist.")
    status, error = client.error("DESCRIBE CONNECTOR c;")
    assert (status, error["message"]) == (404, "Failed to query connector status: No status found for connector C")


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ("'connector.class'='FileStreamSource'", "Validation error: topic - "),
        ("'connector.class'='FileStreamSource', 'topic'='t', 'tasks.max'='none'", "Validation error: tasks.max - "),
        ("'connector.class'='Nowhere'", "Failed to find any class that implements Connector and which name matches"),
    ],
)
def test_what_the_worker_finds_wrong_is_told(client: Client, settings: str, said: str) -> None:
    status, error = client.error(f"CREATE SOURCE CONNECTOR c WITH ({settings});")
    assert (status, error["error_code"]) == (400, 40001)
    assert said in error["message"]
    assert client.ksql("SHOW CONNECTORS;")[0]["connectors"] == []

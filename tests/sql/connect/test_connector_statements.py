"""Statements about connectors on a server, with answers that a worker gives in a bad moment."""

from __future__ import annotations

import pytest

from tests.sql.connect.stub_worker import StubWorker
from tests.sql.server.kit import Client, SqlPlace

CREATE = "CREATE SOURCE CONNECTOR lines WITH ('connector.class' = 'Lines', 'password' = 'secret');"
VALID = "PUT /connector-plugins/Lines/config/validate"


@pytest.fixture
def client(place: SqlPlace, stub: StubWorker) -> Client:
    stub.answer("GET /connectors", (200, []))
    stub.answer(VALID, (200, {"configs": []}))
    return place.server({"ksql.connect.url": stub.url})


@pytest.mark.parametrize(
    "text",
    [CREATE, "DROP CONNECTOR c;", "SHOW CONNECTORS;", "SHOW CONNECTOR PLUGINS;", "DESCRIBE CONNECTOR c;"],
)
def test_without_a_worker_statements_say_which_setting_names_one(place: SqlPlace, text: str) -> None:
    status, error = place.server().error(text)
    assert (status, error["error_code"]) == (400, 40001)
    assert error["message"] == "No Connect worker is configured; set ksql.connect.url"


def test_created_connector_is_the_answer_and_secrets_are_not(client: Client, stub: StubWorker) -> None:
    info = {"name": "LINES", "config": {"name": "LINES"}, "tasks": [], "type": "source"}
    stub.answer("POST /connectors", (201, info))
    assert client.ksql(CREATE) == [
        {
            "@type": "connector_info",
            "statementText": CREATE.replace("secret", "[string]"),
            "info": info,
            "warnings": [],
        }
    ]
    config = {"connector.class": "Lines", "password": "secret", "name": "LINES"}
    assert stub.requests == ["GET /connectors", VALID, "POST /connectors"]
    assert stub.bodies == [None, config, {"name": "LINES", "config": config}]
    assert client.server.service.position == 0, "the command topic knows nothing of connectors"


def test_connector_of_the_other_kind_is_made_with_a_warning(client: Client, stub: StubWorker) -> None:
    stub.answer("POST /connectors", (201, {"name": "LINES", "config": {}, "tasks": [], "type": "sink"}))
    [answer] = client.ksql(CREATE)
    assert answer["warnings"] == [{"message": "LINES is a SINK CONNECTOR"}]


def test_settings_that_the_worker_refuses_are_an_error_of_the_statement(client: Client, stub: StubWorker) -> None:
    problem = {"value": {"name": "topic", "errors": ["Missing", "Empty"]}}
    stub.answer(VALID, (200, {"configs": [problem, {"value": {"name": "file", "errors": ["No file"]}}]}))
    status, error = client.error(CREATE)
    assert (status, error["error_code"], error["@type"]) == (400, 40001, "statement_error")
    assert error["message"] == "Validation error: topic - Missing. Empty\nfile - No file"
    assert error["statementText"] == CREATE.replace("secret", "[string]")
    assert "POST /connectors" not in stub.requests


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ("'topic' = 't'", "Validation error: Connector config contains no connector type; set 'connector.class'"),
        ("'connector.class' = ' '", "Validation error: Connector type cannot be empty"),
    ],
)
def test_connector_without_a_class_is_refused(client: Client, settings: str, message: str) -> None:
    status, error = client.error(f"CREATE SINK CONNECTOR c WITH ({settings});")
    assert (status, error["message"]) == (400, message)


def test_worker_that_fails_is_an_error_of_the_server(client: Client, stub: StubWorker) -> None:
    stub.answer("POST /connectors", (500, {"error_code": 500, "message": "Out of luck"}))
    status, error = client.error(CREATE)
    assert (status, error["error_code"]) == (500, 50000)
    assert error["message"] == "Failed to create connector: Out of luck"
    stub.answer(VALID, (503, "<p>Later</p>"))
    status, error = client.error(CREATE)
    assert (status, error["error_code"]) == (503, 50300)
    assert error["message"].startswith(f"Failed to validate connector: the Connect worker at {stub.url} answers as")


def test_class_that_the_worker_does_not_have_is_an_error_of_the_statement(client: Client, stub: StubWorker) -> None:
    stub.answer(VALID, (500, {"error_code": 500, "message": "Failed to find any class"}))
    status, error = client.error(CREATE)
    assert (status, error["message"]) == (400, "Validation error: Failed to find any class")


def test_one_bad_connector_keeps_the_others_from_being_made(client: Client, stub: StubWorker) -> None:
    stub.answer(VALID, (200, {"configs": []}), (200, {"configs": [{"value": {"name": "x", "errors": ["No"]}}]}))
    status, error = client.error(
        f"CREATE STREAM s (v STRING) WITH (KAFKA_TOPIC='s', PARTITIONS=1, FORMAT='JSON'); {CREATE}"
        f"{CREATE.replace('lines', 'others')}"
    )
    assert (status, error["message"]) == (400, "Validation error: x - No")
    assert "POST /connectors" not in stub.requests
    assert client.ksql("SHOW STREAMS;")[0]["streams"] == []


def test_list_has_connectors_that_are_just_gone_or_just_there(client: Client, stub: StubWorker) -> None:
    stub.answer("GET /connectors", (200, ["gone", "b", "a", "c"]))
    for name, kind in (("a", "source"), ("b", "sink"), ("c", "sink")):
        stub.answer(f"GET /connectors/{name}", (200, {"type": kind, "config": {"connector.class": "X"}}))
    running = {"connector": {"state": "RUNNING"}}
    states = [{"state": "RUNNING"}, {"state": "FAILED"}]
    stub.answer("GET /connectors/a/status", (200, {**running, "tasks": states}))
    stub.answer("GET /connectors/b/status", (200, {**running, "tasks": states[1:]}))
    stub.answer("GET /connectors/c/status", (200, {"connector": {"state": "PAUSED"}, "tasks": []}))
    [answer] = client.ksql("LIST CONNECTORS;")
    assert answer["@type"] == "connector_list"
    assert answer["connectors"] == [
        {"name": "a", "type": "source", "className": "X", "state": "RUNNING (1/2 tasks RUNNING)"},
        {"name": "b", "type": "sink", "className": "X", "state": "WARNING (0/1 tasks RUNNING)"},
        {"name": "c", "type": "sink", "className": "X", "state": "PAUSED"},
        {"name": "gone", "type": "unknown", "className": None, "state": None},
    ]
    warning = "Could not describe connector gone: GET /connectors/gone not found"
    assert answer["warnings"] == [{"message": warning}]
    assert [each["name"] for each in client.ksql("SHOW SINK CONNECTORS;")[0]["connectors"]] == ["b", "c"]


def test_connector_without_a_state_yet_is_shown(client: Client, stub: StubWorker) -> None:
    stub.answer("GET /connectors", (200, ["new"]))
    stub.answer("GET /connectors/new", (200, {"type": "sink", "config": {"connector.class": "X"}}))
    [answer] = client.ksql("SHOW CONNECTORS;")
    assert answer["connectors"] == [{"name": "new", "type": "sink", "className": "X", "state": "UNASSIGNED"}]
    assert answer["warnings"] == []
    [answer] = client.ksql("DESCRIBE CONNECTOR `new`;")
    state = {"state": "UNASSIGNED", "worker_id": ""}
    assert answer["status"] == {"name": "new", "connector": state, "tasks": [], "type": "sink"}


@pytest.mark.parametrize(
    ("status", "warnings"),
    [(404, []), (500, [{"message": "Could not list related topics due to error: no"}])],
)
def test_connector_is_described_without_its_topics_if_need_be(
    client: Client, stub: StubWorker, status: int, warnings: list[object]
) -> None:
    state = {"name": "a", "connector": {"state": "RUNNING", "worker_id": "w"}, "tasks": [], "type": "sink"}
    stub.answer("GET /connectors/a", (200, {"type": "sink", "config": {"connector.class": "X"}}))
    stub.answer("GET /connectors/a/status", (200, state))
    stub.answer("GET /connectors/a/topics", (status, {"message": "no"}))
    [answer] = client.ksql("DESCRIBE CONNECTOR `a`;")
    assert answer == {
        "@type": "connector_description",
        "statementText": "DESCRIBE CONNECTOR `a`;",
        "connectorClass": "X",
        "status": state,
        "sources": [],
        "topics": [],
        "warnings": warnings,
    }


def test_worker_is_no_setting_of_a_client(client: Client) -> None:
    status, error = client.error("SET 'ksql.connect.url' = 'http://elsewhere:8083';")
    assert status == 400
    assert "it is a setting of the server" in error["message"]

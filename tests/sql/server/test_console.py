"""Console API of a server: scripts with their events, queries with their graphs, and access."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from starlette.routing import Route

from headrace.app.engine import local_engine
from headrace.sql.server.headless import run_file
from headrace.sql.server.sql_server import SqlServer
from tests.sql.server.kit import SOON, Client, SqlPlace

EARLIEST = {"auto.offset.reset": "earliest"}
SYSTEM = "ALTER SYSTEM 'auto.offset.reset'='earliest';"
MADE = """
CREATE STREAM ORDERS (ID INT KEY, ITEM STRING, CENTS BIGINT)
  WITH (KAFKA_TOPIC='orders', VALUE_FORMAT='JSON', PARTITIONS=2);
CREATE TABLE TOTALS AS SELECT ITEM, SUM(CENTS) AS CENTS FROM ORDERS GROUP BY ITEM;
INSERT INTO ORDERS VALUES (1, 'tea', 4611686018427387905);
"""


def run(client: Client, sql: str, **body: Any) -> list[dict[str, Any]]:
    """Returns the events of a script that comes to its end."""
    found = client.http.post("/console/api/run", json={"sql": sql, **body})
    assert found.status_code == 200, found.text
    assert found.headers["content-type"] == "application/x-ndjson"
    return [json.loads(line) for line in found.text.splitlines()]


def kinds(events: list[dict[str, Any]]) -> list[str]:
    return [next(iter(event)) for event in events]


def only(events: list[dict[str, Any]], kind: str) -> list[Any]:
    return [event[kind] for event in events if kind in event]


def wait_for(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + SOON.total_seconds()
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


@pytest.fixture
def filled(client: Client) -> Client:
    run(client, MADE, settings=EARLIEST)
    client.settle()
    return client


def test_statements_are_carried_out_one_after_the_other(client: Client) -> None:
    events = run(client, MADE)
    assert kinds(events) == [
        *("statement", "entity", "done"),
        *("statement", "entity", "done"),
        *("statement", "done"),
        "session",
    ]
    assert [(one["index"], one["of"], one["line"]) for one in only(events, "statement")] == [
        (0, 3, 2),
        (1, 3, 4),
        (2, 3, 5),
    ]
    assert only(events, "entity")[1]["commandStatus"]["queryId"] == "CTAS_TOTALS_0"
    assert only(events, "done")[-1] == "One row written"


def test_rows_come_with_all_their_digits(filled: Client) -> None:
    events = run(filled, "SELECT CENTS, ITEM FROM TOTALS WHERE ITEM = 'tea';")
    columns = events[1]
    assert (columns["columns"], columns["push"]) == (
        [{"name": "CENTS", "type": "BIGINT"}, {"name": "ITEM", "type": "STRING"}],
        False,
    )
    assert only(events, "row") == [["4611686018427387905", "tea"]]


def test_push_query_in_a_script_ends_with_its_limit(filled: Client) -> None:
    events = run(filled, "SELECT ID FROM ORDERS EMIT CHANGES LIMIT 1; SHOW TABLES;", settings=EARLIEST)
    assert events[1]["push"]
    assert kinds(events) == ["statement", "columns", "row", "done", "statement", "entity", "done", "session"]
    assert only(events, "done")[0] == "Limit Reached"


def test_push_query_says_where_it_reads(filled: Client) -> None:
    push = "SELECT ID FROM ORDERS EMIT CHANGES LIMIT 0;"
    for settings, from_beginning in ((EARLIEST, True), ({"auto.offset.reset": "latest"}, False), ({}, False)):
        columns = run(filled, push, settings=settings)[1]
        assert (columns["sources"], columns["from_beginning"]) == (["ORDERS"], from_beginning), settings
    printed = run(filled, "PRINT 'orders' FROM BEGINNING LIMIT 1;")[1]
    assert printed == {"print": "orders", "from_beginning": True}


def test_rows_that_are_gone_say_so(filled: Client) -> None:
    rich = "CREATE TABLE RICH AS SELECT ITEM, SUM(CENTS) AS C FROM ORDERS GROUP BY ITEM HAVING SUM(CENTS) > 10;"
    run(filled, rich, settings=EARLIEST)
    run(filled, "INSERT INTO ORDERS VALUES (2, 'jam', 50); INSERT INTO ORDERS VALUES (2, 'jam', -45);")
    filled.settle()
    events = run(filled, "SELECT * FROM RICH EMIT CHANGES LIMIT 3;", settings=EARLIEST)
    assert [event for event in events if "row" in event and event["row"][0] == "jam"] == [
        {"row": ["jam", "50"]},
        {"row": ["jam", None], "tombstone": True},
    ]


def test_records_of_a_topic_are_lines(filled: Client) -> None:
    lines = only(run(filled, "PRINT 'orders' FROM BEGINNING LIMIT 1;"), "line")
    assert 'key: 1, value: {"ITEM":"tea","CENTS":4611686018427387905}' in lines[-1]


def test_what_was_set_lasts_for_the_script_and_is_handed_back(filled: Client) -> None:
    script = "SET 'auto.offset.reset'='earliest'; DEFINE s = 'ORDERS'; SELECT ID FROM ${s} EMIT CHANGES LIMIT 1;"
    events = run(filled, script, variables={"other": "X"})
    assert only(events, "row") == [["1"]]
    assert events[-1] == {"session": {"settings": EARLIEST, "variables": {"OTHER": "X", "S": "ORDERS"}}}


@pytest.mark.parametrize(
    ("sql", "line", "column", "said"),
    [
        ("SHOW STREAMS;\n  SELCT 1;", 2, 3, "line 2:3: Syntax Error\nUnknown statement 'SELCT'"),
        ("SHOW STREAMS;\n\n SELECT *\n FORM ORDERS;", 4, 2, "line 4:2: Syntax Error\nExpecting 'FROM'"),
        ("SHOW STREAMS; SELECT * FORM ORDERS;", 1, 24, "line 1:24"),
        ("SHOW ${x};\nSELECT 'tea", 2, 12, "not closed"),
        ("-- SELECT 'x'\nSELECT '🍵', @ FROM ORDERS;", 2, 13, "line 2:13"),
    ],
)
def test_wrong_grammar_is_shown_where_it_is_and_nothing_is_done(
    filled: Client, sql: str, line: int, column: int, said: str
) -> None:
    position = filled.server.service.position
    [event] = run(filled, sql)
    error = event["error"]
    assert (error["line"], error["column"]) == (line, column)
    assert said in error["message"]
    assert "Statement:" not in error["message"]
    assert filled.server.service.position == position


def test_wrong_name_is_shown_where_it_is(filled: Client) -> None:
    events = run(filled, "SHOW STREAMS;\nSELECT ID,\n  NOPE FROM ORDERS EMIT CHANGES;\nSHOW TABLES;")
    assert kinds(events) == ["statement", "entity", "done", "statement", "error", "session"]
    error = only(events, "error")[0]
    assert (error["line"], error["column"]) == (3, 3)
    assert error["message"] == "line 3:3: SELECT column 'NOPE' cannot be resolved."


def test_with_variables_the_place_is_the_statement(filled: Client) -> None:
    events = run(filled, "SHOW STREAMS;\n DESCRIBE ${s};\nSHOW TABLES;", variables={"s": "NOPE"})
    assert (only(events, "error")[0]["line"], only(events, "error")[0]["column"]) == (2, 2)
    assert "statement" in kinds(events)


def test_error_while_rows_are_read_is_told(filled: Client) -> None:
    error = only(run(filled, "PRINT nope;"), "error")[0]
    assert "Could not find topic 'nope'" in error["message"]


def test_nothing_to_run_is_no_error(client: Client) -> None:
    assert kinds(run(client, " -- nothing\n")) == ["session"]


@pytest.mark.parametrize(
    "body", [{}, {"sql": 5}, {"sql": "SHOW STREAMS;", "settings": []}, {"sql": "x", "settings": {"nope.nope": "1"}}]
)
def test_request_that_is_wrong_is_refused(client: Client, body: dict[str, Any]) -> None:
    found = client.http.post("/console/api/run", json=body)
    assert found.status_code == 400
    assert found.json()["message"]


def test_push_query_ends_when_the_page_is_left(filled: Client) -> None:
    endpoint = filled.server.application.state.endpoint
    body = {"sql": "SELECT ID FROM ORDERS EMIT CHANGES; DROP STREAM NOPE;", "settings": EARLIEST}
    with filled.http.stream("POST", "/console/api/run", json=body) as answer:
        lines = answer.iter_lines()
        assert [next(iter(json.loads(next(lines)))) for _ in range(3)] == ["statement", "columns", "row"]
        assert len(endpoint.push_queries()) == 1
    wait_for(lambda: not endpoint.push_queries())


def test_push_query_that_is_ended_elsewhere_ends_the_script(filled: Client) -> None:
    body = {"sql": "SELECT ID FROM ORDERS EMIT CHANGES; CREATE TYPE T AS INT;", "settings": EARLIEST}
    with filled.http.stream("POST", "/console/api/run", json=body) as answer:
        lines = answer.iter_lines()
        events = [json.loads(next(lines)) for _ in range(3)]
        filled.ksql(f"TERMINATE {events[1]['query_id']};")
        events += map(json.loads, lines)
    assert kinds(events) == ["statement", "columns", "row", "done", "session"]
    assert events[-1]["session"]["settings"] == EARLIEST
    assert not filled.server.service.engine.catalog.types


def test_secrets_of_a_query_are_not_shown(place: SqlPlace) -> None:
    secret = {"ksql.streams.producer.sasl.password": "sesame"}
    client = place.server(secret)
    run(client, MADE)
    client.ksql("CREATE STREAM COPY AS SELECT * FROM ORDERS;")
    assert client.server.service.engine.catalog.queries["CSAS_COPY_1"].settings.items() >= secret.items()
    explained = client.ksql("EXPLAIN CSAS_COPY_1;")[0]["queryDescription"]
    assert explained["overriddenProperties"]["ksql.streams.producer.sasl.password"] == "[hidden]"
    listed = json.dumps(client.ksql("SHOW PROPERTIES;"))
    assert "[hidden]" in listed
    shown = client.http.get("/console/api/queries/CSAS_COPY_1").text
    assert "sesame" not in json.dumps(explained) + listed + shown


@pytest.mark.parametrize("sql", ["SELECT ID FROM ORDERS EMIT CHANGES;", "PRINT 'orders' FROM BEGINNING;"])
def test_streams_end_with_the_server(filled: Client, sql: str) -> None:
    with (
        filled.http.stream("GET", "/console/api/live") as live,
        filled.http.stream("POST", "/console/api/run", json={"sql": sql, "settings": EARLIEST}) as answer,
    ):
        lines = answer.iter_lines()
        assert "statement" in json.loads(next(lines))
        next(lines)
        filled.server.stop()
        assert json.loads(list(lines)[-1]).keys() == {"session"}
        first, *_ = live.iter_lines()
        assert first.startswith("data: ")


def test_catalog_has_streams_tables_and_topics(filled: Client) -> None:
    found = filled.http.get("/console/api/catalog").json()
    assert found["streams"] == [{"name": "ORDERS", "topic": "orders"}]
    assert found["tables"] == [{"name": "TOTALS", "topic": "TOTALS"}]
    assert {"name": "orders", "partitions": 2} in found["topics"]
    assert not [each["name"] for each in found["topics"] if each["name"].startswith("_headrace")]


def live(client: Client) -> dict[str, Any]:
    with client.http.stream("GET", "/console/api/live") as answer:
        found: dict[str, Any] = json.loads(next(answer.iter_lines()).removeprefix("data: "))
        return found


def test_live_tells_how_queries_are(filled: Client) -> None:
    [query] = live(filled)["queries"]
    assert {name: query[name] for name in ("id", "state", "sink", "sources", "error")} == {
        "id": "CTAS_TOTALS_0",
        "state": "RUNNING",
        "sink": "TOTALS",
        "sources": ["ORDERS"],
        "error": None,
    }
    assert (query["records_in"], query["waiting"]) == (1, 0)
    assert query["rate_in"] >= 0


def test_paused_query_has_records_that_wait(filled: Client) -> None:
    run(filled, "PAUSE CTAS_TOTALS_0; INSERT INTO ORDERS VALUES (2, 'jam', 1);")
    [query] = live(filled)["queries"]
    assert (query["state"], query["waiting"]) == ("PAUSED", 1)


def test_query_has_its_graph_with_figures(filled: Client) -> None:
    found = filled.http.get("/console/api/queries/CTAS_TOTALS_0").json()
    assert found["statement"].startswith("CREATE TABLE TOTALS AS SELECT")
    assert [part["tasks"] for part in found["topology"]["subtopologies"]] == [2, 2]
    nodes = [node for part in found["topology"]["subtopologies"] for node in part["nodes"]]
    [source] = [node["name"] for node in nodes if node["type"] == "source" and node["topics"] == ["orders"]]
    assert found["nodes"][source]["total"] == 1
    assert "Sub-topology: 1" in found["description"]


def test_query_that_is_not_there_is_not_found(client: Client) -> None:
    found = client.http.get("/console/api/queries/CSAS_NOPE_0")
    assert found.status_code == 404
    assert "CSAS_NOPE_0" in found.json()["message"]


def test_topics_say_whose_they_are_and_keys_are_read(filled: Client) -> None:
    roles = {each["name"]: each["role"] for each in filled.http.get("/console/api/topics").json()["topics"]}
    assert roles["orders"] == "stream ORDERS"
    assert roles["TOTALS"] == "table TOTALS"
    assert "internal" in roles.values()
    records = [
        record
        for partition in (0, 1)
        for record in filled.http.get(f"/console/api/topics/orders/records?partition={partition}").json()["records"]
    ]
    assert [(record["key"], record["value"]["ITEM"]) for record in records] == [(1, "tea")]


def test_page_and_its_files_are_served(client: Client) -> None:
    page = client.http.get("/console/")
    assert page.headers["content-type"].startswith("text/html")
    assert "default-src 'none'" in page.headers["content-security-policy"]
    files = re.findall(r'(?:src|href)="(static/[^"]+)"', page.text)
    assert "static/sql.js" in files
    while files:
        path = files.pop()
        found = client.http.get(f"/console/{path}")
        assert found.status_code == 200, path
        files += [f"static/{name}" for name in re.findall(r'from "\./([^"]+)"', found.text) if path.endswith(".js")]
    assert client.http.get("/console/static/../sql.html").status_code == 404


def test_person_is_led_to_the_page_and_a_client_to_the_information(client: Client) -> None:
    for accepted, target in (("text/html,*/*", "/console/"), ("*/*", "/info"), ("application/json", "/info")):
        found = client.http.get("/", headers={"Accept": accepted})
        assert (found.status_code, found.headers["location"]) == (307, target)


@pytest.mark.parametrize("path", ["/console/api/run", "/ksql", "/query", "/close-query", "/ksql/terminate"])
def test_page_of_another_site_changes_nothing(client: Client, path: str) -> None:
    body = {"sql": "SHOW STREAMS;", "ksql": "SHOW STREAMS;"}
    for origin in ("https://evil.example", "http://localhost:1", "null"):
        # A form of another site can send any text, without asking first.
        headers = {"Origin": origin, "Content-Type": "text/plain"}
        assert client.http.post(path, content=json.dumps(body), headers=headers).status_code == 403
    own = client.http.post(path, json=body, headers={"Origin": client.server.url})
    assert own.status_code != 403


def test_nothing_is_answered_without_the_token(place: SqlPlace) -> None:
    settings = {"state.dir": str(place.directory), "log.sync": "none"}
    server = SqlServer(settings, listen="localhost:0", log=place.log, engine=local_engine, token="sesame").start()
    client = Client(server)
    try:
        paths = [route.path for route in server.application.routes if isinstance(route, Route)]
        assert len([path for path in paths if path.startswith("/console")]) >= 9
        for path in paths:
            for method in ("GET", "POST"):
                assert client.http.request(method, path).status_code == 401, path
        client.http.headers["Authorization"] = "Bearer sesame"
        assert client.http.get("/console/").status_code == 200
        assert kinds(run(client, "SHOW STREAMS;")) == ["statement", "entity", "done", "session"]
    finally:
        client.close()


@pytest.fixture
def headless(place: SqlPlace, tmp_path: Path) -> Iterator[Client]:
    path = tmp_path / "orders.sql"
    path.write_text(MADE.rpartition("INSERT")[0])
    settings = {"state.dir": str(place.directory), "log.sync": "none"}
    server = SqlServer(settings, listen="localhost:0", log=place.log, engine=local_engine, accepts_statements=False)
    client = Client(server)
    try:
        run_file(server.service, path)
        server.start()
        yield client
    finally:
        client.close()


def test_server_of_a_file_is_looked_at_and_not_changed(headless: Client) -> None:
    assert not live(headless)["server"]["accepts_statements"]
    assert kinds(run(headless, "DESCRIBE ORDERS; SELECT * FROM TOTALS;")).count("error") == 0
    for sql in ("DROP TABLE TOTALS;", "INSERT INTO ORDERS VALUES (1, 'a', 1);", "PAUSE ALL;", "TERMINATE ALL;", SYSTEM):
        [error] = only(run(headless, sql), "error")
        assert "takes no others" in error["message"]
    assert len(headless.server.service.engine.catalog.queries) == 1

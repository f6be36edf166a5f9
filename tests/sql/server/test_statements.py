"""Statements over HTTP: what they answer, and what they do."""

from __future__ import annotations

import json
import ssl
from pathlib import Path

import httpx
import pytest

from headrace.app.engine import local_engine
from headrace.sql.server.sql_server import SqlServer
from tests.certificates import make_certificate
from tests.sql.server.kit import Client, SqlPlace

ORDERS = (
    "CREATE STREAM ORDERS (ID INT KEY, ITEM STRING, PRICE DECIMAL(6, 2)) "
    "WITH (KAFKA_TOPIC='orders', VALUE_FORMAT='JSON', PARTITIONS=2);"
)


def test_created_stream_answers_with_its_status(client: Client) -> None:
    [answer] = client.ksql(ORDERS)
    assert answer["@type"] == "currentStatus"
    assert answer["commandId"] == "stream/`ORDERS`/create"
    assert answer["commandStatus"] == {"status": "SUCCESS", "message": "Stream created", "queryId": None}
    assert answer["statementText"] == ORDERS
    assert client.http.get("/status/stream/`ORDERS`/create").json()["status"] == "SUCCESS"


def test_queries_process_what_is_inserted(client: Client) -> None:
    client.ksql(ORDERS)
    created = client.ksql(
        "CREATE STREAM LOUD AS SELECT ID, UCASE(ITEM) AS ITEM FROM ORDERS;"
        "CREATE TABLE COUNTS AS SELECT ITEM, COUNT(*) AS N FROM LOUD GROUP BY ITEM;"
    )
    assert [answer["commandStatus"]["queryId"] for answer in created] == ["CSAS_LOUD_0", "CTAS_COUNTS_1"]
    assert (
        client.ksql("INSERT INTO ORDERS (ID, ITEM) VALUES (1, 'tea'); INSERT INTO ORDERS VALUES (2, 'tea', 1.5);") == []
    )
    client.settle()
    assert client.values("orders") == [{"ITEM": "tea", "PRICE": None}, {"ITEM": "tea", "PRICE": 1.5}]
    assert client.values("COUNTS") == [{"N": 1}, {"N": 2}]


def test_none_of_several_statements_is_carried_out_if_one_is_wrong(client: Client) -> None:
    status, error = client.error(f"{ORDERS} CREATE STREAM A AS SELECT NOPE FROM ORDERS;")
    assert (status, error["@type"], error["error_code"]) == (400, "statement_error", 40001)
    assert error["statementText"] == "CREATE STREAM A AS SELECT NOPE FROM ORDERS;"
    assert "NOPE" in error["message"]
    assert client.ksql("SHOW STREAMS;")[0]["streams"] == []
    assert "orders" not in client.server.log.topics()
    assert client.server.service.position == 0


@pytest.mark.parametrize("text", ["CREATE STREAM", "NONSENSE;", "SELECT", "DROP STREAM NOPE;", "DESCRIBE NOPE;"])
def test_wrong_statement_is_an_error_and_nothing_is_written(client: Client, text: str) -> None:
    status, error = client.error(text)
    assert (status, error["error_code"]) == (400, 40001)
    assert client.server.service.position == 0


def test_queries_belong_to_another_endpoint(client: Client) -> None:
    client.ksql(ORDERS)
    status, error = client.error("SELECT * FROM ORDERS EMIT CHANGES;")
    assert (status, error["error_code"]) == (400, 40002)


def test_settings_and_variables_last_for_the_request(client: Client) -> None:
    answers = client.ksql(
        "DEFINE topic = 'o'; SET 'ksql.persistence.default.format.value' = 'JSON';"
        "CREATE STREAM O (ID INT KEY, V INT) WITH (KAFKA_TOPIC='${topic}', PARTITIONS=1); SHOW VARIABLES;"
    )
    assert [answer["@type"] for answer in answers] == ["currentStatus", "variables"]
    assert answers[1]["variables"] == [{"name": "TOPIC", "value": "o"}]
    assert client.ksql("SHOW VARIABLES;")[0]["variables"] == []
    assert client.ksql("DESCRIBE ${s};", sessionVariables={"s": "O"})[0]["sourceDescription"]["topic"] == "o"


def test_unknown_setting_is_refused(client: Client) -> None:
    status, error = client.error("SHOW STREAMS;", streamsProperties={"auto.ofset.reset": "latest"})
    assert (status, error["@type"], error["error_code"]) == (400, "generic_error", 40000)
    assert "did you mean 'auto.offset.reset'" in error["message"]


def test_if_not_exists_warns(client: Client) -> None:
    client.ksql(ORDERS)
    [answer] = client.ksql(ORDERS.replace("STREAM", "STREAM IF NOT EXISTS"))
    assert answer["@type"] == "warning_entity"


def test_terminated_query_leaves_its_stream(client: Client) -> None:
    client.ksql(ORDERS)
    client.ksql("CREATE STREAM COPY AS SELECT * FROM ORDERS;")
    assert client.error("DROP STREAM ORDERS;")[0] == 400
    client.ksql("TERMINATE CSAS_COPY_0;")
    assert client.ksql("SHOW QUERIES;")[0]["queries"] == []
    client.ksql("DROP STREAM ORDERS DELETE TOPIC; DROP STREAM COPY;")
    assert "orders" not in client.server.log.topics()
    assert "COPY" in client.server.log.topics()


def test_paused_query_waits(client: Client) -> None:
    client.ksql(ORDERS)
    client.ksql("CREATE STREAM COPY AS SELECT * FROM ORDERS;")
    client.settle()
    client.ksql("PAUSE CSAS_COPY_0;")
    assert client.ksql("SHOW QUERIES;")[0]["queries"][0]["state"] == "PAUSED"
    client.ksql("RESUME ALL; INSERT INTO ORDERS (ID, ITEM) VALUES (1, 'tea');")
    client.settle()
    assert len(client.records("COPY")) == 1
    assert client.error("PAUSE NOPE;")[0] == 400


def test_describe_and_explain(client: Client) -> None:
    client.ksql(ORDERS)
    client.ksql("CREATE TABLE COUNTS AS SELECT ITEM, COUNT(*) AS N FROM ORDERS GROUP BY ITEM;")
    [described] = client.ksql("DESCRIBE COUNTS EXTENDED;")
    details = described["sourceDescription"]
    assert [(field["name"], field["type"]) for field in details["fields"]] == [("ITEM", "KEY"), ("N", None)]
    assert [query["id"] for query in details["writeQueries"]] == ["CTAS_COUNTS_0"]
    assert details["partitions"] == 2
    [explained] = client.ksql("EXPLAIN CTAS_COUNTS_0;")
    assert "Sub-topology: 0" in explained["queryDescription"]["topology"]
    [planned] = client.ksql("EXPLAIN SELECT ITEM, COUNT(*) FROM ORDERS GROUP BY ITEM EMIT CHANGES;")
    assert "Sub-topology: 1" in planned["queryDescription"]["topology"]
    assert client.error("EXPLAIN NOPE;")[0] == 400


def test_lists(client: Client) -> None:
    client.ksql(f"{ORDERS} CREATE TYPE ADDRESS AS STRUCT<STREET STRING, NUMBER INT>;")
    [streams, topics, types, functions, properties] = client.ksql(
        "LIST STREAMS; SHOW TOPICS; SHOW TYPES; SHOW FUNCTIONS; SHOW PROPERTIES;"
    )
    assert streams["streams"] == [
        {
            "type": "STREAM",
            "name": "ORDERS",
            "topic": "orders",
            "keyFormat": "KAFKA",
            "valueFormat": "JSON",
            "isWindowed": False,
        }
    ]
    assert topics["topics"] == [{"name": "orders", "replicaInfo": [1, 1]}]
    assert types["types"]["ADDRESS"]["fields"][1] == {
        "name": "NUMBER",
        "schema": {"type": "INTEGER", "fields": None, "memberSchema": None},
    }
    assert {"name": "COUNT", "type": "AGGREGATE"}.items() <= next(
        each for each in functions["functions"] if each["name"] == "COUNT"
    ).items()
    assert any(each["name"] == "ksql.streams.auto.offset.reset" for each in properties["properties"])


def test_assert_topic(client: Client) -> None:
    client.ksql(ORDERS)
    assert client.ksql("ASSERT TOPIC orders WITH (PARTITIONS=2);")[0]["exists"] is True
    assert client.ksql("ASSERT NOT EXISTS TOPIC nope;")[0]["exists"] is False
    status, error = client.error("ASSERT TOPIC orders WITH (PARTITIONS=3) TIMEOUT 0 SECONDS;")
    assert (status, error["error_code"]) == (417, 41700)
    assert "expected 3 got 2" in error["message"]


def test_inserts_stream_answers_each_row(client: Client) -> None:
    client.ksql(ORDERS)
    rows = [
        {"target": "orders"},
        {"id": 1, "ITEM": "tea", "price": 2.25},
        {"id": "one"},
        {"`id`": 1},
        {"ID": 2, "PRICE": "1.5"},
    ]
    lines = "\n".join(map(json.dumps, rows))
    found = client.http.post("/inserts-stream", content=lines)
    answers = [json.loads(line) for line in found.text.splitlines()]
    assert [(answer["status"], answer["seq"]) for answer in answers] == [
        ("ok", 0),
        ("error", 1),
        ("error", 2),
        ("ok", 3),
    ]
    written = sorted(client.values("orders"), key=lambda value: float(value["PRICE"]))
    assert written == [{"ITEM": None, "PRICE": 1.5}, {"ITEM": "tea", "PRICE": 2.25}]
    assert client.http.post("/inserts-stream", content='{"target":"nope"}\n').status_code == 400


def test_inserts_stream_answers_in_the_form_that_is_asked_for(client: Client) -> None:
    client.ksql(ORDERS)
    lines = '{"target": "orders"}\n{"id": 1}\n{"id": "one"}\n'
    found = client.http.post("/inserts-stream", content=lines, headers={"Accept": "application/json"})
    assert found.headers["content-type"].startswith("application/json")
    assert [answer["status"] for answer in found.json()] == ["ok", "error"]
    none = client.http.post("/inserts-stream", content='{"target": "orders"}\n', headers={"Accept": "application/json"})
    assert none.json() == []
    lined = client.http.post(
        "/inserts-stream", content=lines, headers={"Accept": "application/vnd.ksqlapi.delimited.v1"}
    )
    assert len(lined.text.splitlines()) == 2
    assert client.http.post("/inserts-stream", content=lines, headers={"Accept": "text/html"}).status_code == 406


def test_server_tells_about_itself(client: Client) -> None:
    assert client.http.get("/info").json()["KsqlServerInfo"]["serverStatus"] == "RUNNING"
    assert client.http.get("/healthcheck").json()["isHealthy"] is True
    assert client.http.get("/is_valid_property/auto.offset.reset").json() is True
    assert client.http.get("/is_valid_property/nope").status_code == 400
    assert client.http.get("/nope").json()["error_code"] == 40400
    assert client.http.post("/close-query", json={"queryId": "nope"}).status_code == 400


@pytest.mark.parametrize(
    "body", [b"", b"[]", b"{", b'{"ksql": 1}', b'{"ksql": "SHOW STREAMS;", "streamsProperties": 1}']
)
def test_malformed_request_is_an_error(client: Client, body: bytes) -> None:
    found = client.http.post("/ksql", content=body)
    assert (found.status_code, found.json()["error_code"]) == (400, 40000)


def test_print_shows_records(client: Client) -> None:
    client.ksql(f"{ORDERS} INSERT INTO ORDERS (ROWTIME, ID, ITEM) VALUES (0, 7, 'tea');")
    found = client.http.post("/query", json={"ksql": "PRINT 'orders' FROM BEGINNING LIMIT 1;"})
    assert found.text.splitlines()[2] == (
        'rowtime: 1970/01/01 00:00:00.000 Z, key: 7, value: {"ITEM":"tea","PRICE":null}, partition: 1'
    )


@pytest.mark.parametrize(
    ("window", "key_format", "key"),
    [
        ("TUMBLING', WINDOW_SIZE='2 SECONDS", "TUMBLING(KAFKA_STRING)", b"a" + (5000).to_bytes(8, "big")),
        ("SESSION", "SESSION(KAFKA_STRING)", b"a" + (7000).to_bytes(8, "big") + (5000).to_bytes(8, "big")),
    ],
)
def test_print_shows_keys_with_their_windows(place: SqlPlace, window: str, key_format: str, key: bytes) -> None:
    client = place.server()
    client.ksql(
        "CREATE STREAM w (k STRING KEY, v INT)"
        f" WITH (KAFKA_TOPIC='w', VALUE_FORMAT='JSON', PARTITIONS=1, WINDOW_TYPE='{window}');"
    )
    place.log.append("w", [(0, 0, key, b'{"V":1}', ())])
    found = client.http.post("/query", json={"ksql": "PRINT 'w' FROM BEGINNING LIMIT 1;"})
    assert found.text.splitlines() == [
        f"Key format: {key_format}",
        "Value format: JSON or KAFKA_STRING",
        'rowtime: 1970/01/01 00:00:00.000 Z, key: [a@5000/7000], value: {"V":1}, partition: 0',
    ]


def test_print_shows_records_of_registered_schemas(place: SqlPlace) -> None:
    client = place.server({"ksql.schema.registry.url": "mock://print"})
    client.ksql(
        "CREATE STREAM S (ID INT KEY, V STRING, N INT) WITH (KAFKA_TOPIC='s', FORMAT='AVRO', PARTITIONS=1);"
        "INSERT INTO S (ROWTIME, ID, V, N) VALUES (0, 7, 'tea', 3);"
    )
    found = client.http.post("/query", json={"ksql": "PRINT 's' FROM BEGINNING LIMIT 1;"})
    assert found.text.splitlines() == [
        "Key format: AVRO",
        "Value format: AVRO",
        'rowtime: 1970/01/01 00:00:00.000 Z, key: 7, value: {"V":"tea","N":3}, partition: 0',
    ]


def test_functions_come_only_from_modules_that_the_server_trusts(place: SqlPlace) -> None:
    client = place.server({"ksql.functions.python.modules": "headrace.sql.types"})
    client.ksql("CREATE FUNCTION Q AS 'headrace.sql.types:quoted';")
    assert client.ksql("DESCRIBE FUNCTION Q;")[0]["type"] == "SCALAR"
    status, error = client.error("CREATE FUNCTION R AS 'os:system';")
    assert (status, error["error_code"]) == (400, 40001)
    assert "not allowed" in error["message"]
    assert client.error("SET 'ksql.functions.python.modules' = '*';")[0] == 400


def test_system_setting_is_kept(place: SqlPlace) -> None:
    client = place.server()
    client.ksql("ALTER SYSTEM 'ksql.persistence.default.format.value' = 'JSON';")
    client.close()
    second = place.server()
    second.ksql("CREATE STREAM O (ID INT KEY, V INT) WITH (KAFKA_TOPIC='o', PARTITIONS=1);")
    assert second.ksql("DESCRIBE O;")[0]["sourceDescription"]["valueFormat"] == "JSON"


def test_replaced_query_goes_on_with_the_new_statement(client: Client) -> None:
    client.ksql(ORDERS)
    client.ksql("CREATE STREAM COPY AS SELECT ID, ITEM FROM ORDERS; INSERT INTO ORDERS VALUES (1, 'tea', 1);")
    client.settle()
    [answer] = client.ksql("CREATE OR REPLACE STREAM COPY AS SELECT ID, ITEM, PRICE FROM ORDERS;")
    assert answer["commandStatus"]["queryId"] == "CSAS_COPY_0"
    client.ksql("INSERT INTO ORDERS VALUES (1, 'milk', 2);")
    client.settle()
    assert client.values("COPY") == [{"ITEM": "tea"}, {"ITEM": "milk", "PRICE": 2.0}]


def test_request_that_is_too_large_is_refused(client: Client) -> None:
    found = client.http.post("/ksql", json={"ksql": "SHOW STREAMS;" + " " * (16 << 20)})
    assert (found.status_code, found.json()["error_code"]) == (413, 41300)


def test_who_asks_has_to_say_who_he_is(place: SqlPlace) -> None:
    settings = {"state.dir": str(place.directory), "log.sync": "none"}
    server = SqlServer(settings, listen="localhost:0", log=place.log, engine=local_engine, user="ann:b:c").start()
    client = Client(server)
    try:
        found = client.http.post("/ksql", json={"ksql": "SHOW STREAMS;"})
        assert (found.status_code, found.json()["error_code"]) == (401, 40100)
        assert found.json()["@type"] == "generic_error"
        assert 'Basic realm="headrace"' in found.headers["WWW-Authenticate"]
        for wrong in (("ann", "c"), ("eve", "b:c"), ("", "")):
            assert client.http.get("/info", auth=wrong).status_code == 401
        client.http.auth = ("ann", "b:c")
        assert client.ksql("SHOW STREAMS;")[0]["streams"] == []
        foreign = client.http.post("/ksql", json={"ksql": "SHOW STREAMS;"}, headers={"Origin": "http://evil.example"})
        assert (foreign.status_code, foreign.json()["error_code"]) == (403, 40300)
    finally:
        client.close()


def test_server_does_not_answer_to_the_names_of_others(client: Client) -> None:
    found = client.http.get("/info", headers={"Host": "evil.example"})
    assert (found.status_code, found.json()["error_code"]) == (421, 42100)


@pytest.mark.parametrize(
    ("statement", "where", "excerpt"),
    [
        ("SHOW\n  STREEMS;", (2, 3), "  STREEMS\n  ^"),
        ("CREATE STREAM A AS\n  SELECT ID, ITM FROM ORDERS;", (2, 14), "  SELECT ID, ITM FROM ORDERS\n             ^"),
        ("DROP STREAM NOPE;", (1, 1), "DROP STREAM NOPE\n^"),
        ("CREATE TABLE T AS SELECT ITEM FROM ORDERS;", (1, 1), "CREATE TABLE T AS SELECT ITEM FROM ORDERS\n^"),
        ("DESCRIBE NOPE;", (1, 1), "DESCRIBE NOPE\n^"),
        ("PAUSE NOPE;", (1, 1), "PAUSE NOPE\n^"),
    ],
    ids=["grammar", "column", "source", "clause", "shown", "query"],
)
def test_every_error_shows_its_place(client: Client, statement: str, where: tuple[int, int], excerpt: str) -> None:
    client.ksql(ORDERS)
    _, error = client.error(statement)
    assert (error["line"], error["column"]) == where
    assert error["excerpt"] == excerpt


def test_an_excerpt_has_no_secrets_of_a_connector(client: Client) -> None:
    _, error = client.error("CREATE SINK CONNECTOR c WITH ('connector.class' = 'Db', 'db.password' = 'hidden');")
    assert "hidden" not in json.dumps(error)
    assert error["excerpt"].startswith("CREATE SINK CONNECTOR c")


def test_server_speaks_tls_and_takes_its_token_from_the_settings(
    place: SqlPlace, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    certificate, key = make_certificate(tmp_path)
    settings = {"state.dir": str(place.directory), "log.sync": "none", "http.token": "sesame"}
    tls = {"http.tls.certificate": str(certificate), "http.tls.key": str(key)}
    for given, listen in ((settings, "0.0.0.0:0"), (settings | tls, "0.0.0.0:0"), (settings | tls, "localhost:0")):
        with SqlServer(given, listen=listen, log=place.log, engine=local_engine) as server:
            verify = ssl.create_default_context(cafile=certificate)
            assert httpx.get(f"{server.url}/info", verify=verify).status_code == 401
            headers = {"Authorization": "Bearer sesame"}
            assert httpx.get(f"{server.url}/info", verify=verify, headers=headers).status_code == 200
            assert server.url.startswith("https://" if "http.tls.key" in given else "http://")
    # Only the first of them says that what it is sent can be read on the way.
    assert caplog.text.count("can be read on the way: set http.tls.certificate") == 1

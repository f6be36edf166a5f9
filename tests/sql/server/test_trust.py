"""Trust boundary of a server: clients cannot get past it, by whichever way."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from headrace.sql.catalog.command_log import Command, CommandLog, command_topic
from headrace.sql.server.settings import KNOWN, statement_settings
from tests.sql.server.kit import SqlPlace

SOURCE = "CREATE STREAM S (K STRING KEY, V STRING) WITH (KAFKA_TOPIC='s', VALUE_FORMAT='KAFKA', PARTITIONS=1);"
COMMANDS = command_topic("default_")
PROBE = "tests.sql.server.imported_by_nobody"


def written(place: SqlPlace, *commands: Command | bytes) -> None:
    """Writes to the command topic what no server has checked."""
    for each in commands:
        value = each if isinstance(each, bytes) else each.to_bytes()
        place.log.append(COMMANDS, [(0, 0, b"x", value, ())])


def test_functions_are_checked_where_they_are_made(place: SqlPlace, caplog: pytest.LogCaptureFixture) -> None:
    first = place.server()
    written(
        place,
        Command(f"CREATE FUNCTION P AS '{PROBE}:probe';"),
        Command("ALTER SYSTEM 'ksql.functions.python.modules' = '*';"),
        Command(f"CREATE FUNCTION P AS '{PROBE}:probe';", {"ksql.functions.python.modules": "*"}),
        Command("CREATE TYPE T AS INT;"),
    )
    for client in (first, place.server()):
        assert client.ksql("SHOW TYPES;")[0]["types"].keys() == {"T"}
        assert client.error("DESCRIBE FUNCTION P;")[0] == 400
    assert PROBE not in sys.modules
    assert caplog.text.count(f"functions of the module '{PROBE}' are not allowed on this server") == 4


def test_no_server_reads_a_script_for_a_command(place: SqlPlace, tmp_path: Path) -> None:
    script = tmp_path / "script.sql"
    script.write_text("CREATE TYPE T AS INT;")
    client = place.server()
    written(place, Command(f"RUN SCRIPT '{script}';"))
    assert client.ksql("SHOW TYPES;")[0]["types"] == {}


@pytest.mark.parametrize(
    "value",
    [
        *(b"", b"null", b"[1]", b"\xff", b"[" * 100_000, b'{"version": 1}'),
        *(
            json.dumps({**json.loads(Command("CREATE TYPE U AS INT;").to_bytes()), **other}).encode()
            for other in (
                {"statement": 1},
                {"id": None},
                {"settings": [1]},
                {"topics": {"t": "x"}},
                {"schemas": {"t": None}},
                {"deletes": {"t": 1}},
            )
        ),
    ],
)
def test_commands_that_cannot_be_read_are_left_out(place: SqlPlace, value: bytes) -> None:
    first = place.server()
    written(place, value, Command("CREATE TYPE T AS INT;"))
    assert first.ksql("SHOW TYPES;")[0]["types"].keys() == {"T"}
    assert place.server().ksql("SHOW TYPES;")[0]["types"].keys() == {"T"}


@pytest.mark.parametrize(
    "statement",
    [
        f"CREATE STREAM C (K STRING KEY, V STRING) WITH (KAFKA_TOPIC='{COMMANDS}', FORMAT='KAFKA');",
        f"CREATE TABLE C (K STRING PRIMARY KEY, V STRING) WITH (KAFKA_TOPIC='{COMMANDS}', FORMAT='KAFKA');",
        f"CREATE STREAM C WITH (KAFKA_TOPIC='{COMMANDS}') AS SELECT * FROM S;",
        "SET 'ksql.output.topic.name.prefix' = '_headrace_sql_default__'; CREATE STREAM `commands` AS SELECT * FROM S;",
        "CREATE STREAM C (V STRING) WITH (KAFKA_TOPIC='_headrace_x', VALUE_FORMAT='KAFKA', PARTITIONS=1);",
        "CREATE STREAM C WITH (KAFKA_TOPIC='__consumer_offsets') AS SELECT * FROM S;",
        "CREATE STREAM C WITH (KAFKA_TOPIC='shop-totals-changelog') AS SELECT * FROM S;",
        "CREATE STREAM C (V STRING) WITH (KAFKA_TOPIC='shop-x-repartition', VALUE_FORMAT='KAFKA', PARTITIONS=1);",
        "INSERT INTO L VALUES ('a', 'b');",
        "INSERT INTO L SELECT * FROM S;",
        "DROP STREAM L DELETE TOPIC;",
    ],
)
def test_internal_topics_are_not_written_by_statements(place: SqlPlace, statement: str) -> None:
    client = place.server()
    client.ksql(SOURCE)
    place.log.create_topic("shop-totals-changelog")
    # Reading is another matter: people look at what an application has.
    client.ksql("CREATE STREAM L (K STRING KEY, V STRING) WITH (KAFKA_TOPIC='shop-totals-changelog', FORMAT='KAFKA');")
    before = place.log.topics()
    end = CommandLog(place.log, "default_").end
    status, error = client.error(statement)
    assert (status, error["error_code"]) == (400, 40001)
    assert "belongs to the SQL servers" in error["message"] or "is internal, and read-only" in error["message"]
    assert place.log.topics() == before
    assert CommandLog(place.log, "default_").end == end
    # Nor does a command do it that no server has checked.
    settings = {"ksql.output.topic.name.prefix": "_headrace_sql_default__"} if "prefix" in statement else {}
    written(place, Command(statement.rpartition("; ")[2], settings, {COMMANDS: 1, "_headrace_x": 1}))
    assert [each["name"] for each in client.ksql("SHOW STREAMS;")[0]["streams"]] == ["L", "S"]
    assert client.server.service.engine.catalog.queries == {}


def test_rows_are_not_inserted_into_internal_topics(place: SqlPlace) -> None:
    client = place.server()
    place.log.create_topic("shop-totals-changelog")
    client.ksql("CREATE STREAM L (K STRING KEY, V STRING) WITH (KAFKA_TOPIC='shop-totals-changelog', FORMAT='KAFKA');")
    found = client.http.post("/inserts-stream", content='{"target": "L"}\n{"V": "x"}\n')
    assert found.status_code == 400
    assert place.log.read("shop-totals-changelog", 0, 0) == []


OPERATORS = {
    "spark.pyspark.python": "/tmp/python",
    "ksql.streams.spark.pyspark.python": "/tmp/python",
    "state.dir": "/tmp/elsewhere",
    "ksql.streams.state.dir": "/tmp/elsewhere",
    "ksql.streams.state_dir": "/tmp/elsewhere",
    "checkpoint.dir": "/tmp/elsewhere",
    "ksql.streams.checkpoint.dir": "/tmp/elsewhere",
    "log.dir": "/tmp/elsewhere",
    "http.listen": "0.0.0.0:8080",
    "ksql.streams.http.listen": "0.0.0.0:8080",
    "ksql.streams.http.token": "x",
    "bootstrap.servers": "elsewhere:9092",
    "application.id": "other",
    "application.server": "elsewhere:1",
    "errors.dead.letter.queue.topic.name": COMMANDS,
    "consumer.plugin.library.paths": "/tmp/library.so",
    "producer.bootstrap.servers": "elsewhere:9092",
    "ksql.streams.consumer.ssl.ca.location": "/tmp/ca",
    "sasl.jaas.config": "x",
    "ssl.keystore.location": "/tmp/x",
    "security.protocol": "PLAINTEXT",
    "topic.retention.ms": "1",
    "processor.wrapper.class": "x",
    "default.value.serde": "x",
    "on.late": "x",
    "ksql.functions.python.modules": "*",
    "ksql.functions.python.timeout.ms": "1",
    "ksql.pull.queries.enable": "true",
    "ksql.schema.registry.url": "http://elsewhere",
    "ksql.connect.url": "http://elsewhere",
    "ksql.service.id": "other_",
}


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SqlPlace]:
    """A place for what leaves nothing behind that the next one would stumble over."""
    made = SqlPlace(tmp_path_factory.mktemp("shared"))
    made.server().ksql(SOURCE)
    yield made
    made.close()


@pytest.mark.parametrize("name", OPERATORS)
def test_settings_of_the_operator_are_not_the_clients_to_set(shared: SqlPlace, name: str) -> None:
    client, value = shared.clients[0], OPERATORS[name]
    copying = "CREATE STREAM T AS SELECT * FROM S;"
    ways = [
        client.http.post("/ksql", json={"ksql": copying, "streamsProperties": {name: value}}),
        client.http.post("/ksql", json={"ksql": f"SET '{name}' = '{value}'; {copying}"}),
        client.http.post("/ksql", json={"ksql": f"ALTER SYSTEM '{name}' = '{value}';"}),
        client.http.post("/query", json={"ksql": "SELECT * FROM S;", "streamsProperties": {name: value}}),
        client.http.post("/query-stream", json={"sql": "SELECT * FROM S;", "properties": {name: value}}),
        client.http.post("/inserts-stream", json={"target": "S", "properties": {name: value}}),
        client.http.post("/console/api/run", json={"sql": copying, "settings": {name: value}}),
        client.http.get(f"/is_valid_property/{name}"),
    ]
    assert [each.status_code for each in ways] == [400] * len(ways), name
    for each in ways:
        message = each.json()["message"]
        assert message.startswith((f"Cannot override property '{name}'", "Not recognizable as ksql, streams")), message
        if message.startswith("Cannot"):
            assert "auto.offset.reset" in message
            assert "commit.interval.ms" in message
    # Nor does a command that no server has checked; the statement itself is one that may be carried out.
    written(shared, Command(copying, {name: value, "commit.interval.ms": 50}, {"s": 1, "T": 1}))
    assert client.ksql("SHOW QUERIES;")[0]["queries"] != []
    [query] = client.server.service.engine.catalog.queries.values()
    assert query.settings["commit.interval.ms"] == 50
    assert name not in query.settings
    client.ksql("DROP STREAM T;")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("auto.offset.reset", "earliest"),
        ("ksql.streams.auto.offset.reset", "latest"),
        ("commit.interval.ms", "200"),
        ("ksql.streams.commit.interval.ms", 200),
        ("cache.max.bytes.buffering", "0"),
        ("ksql.streams.statestore.cache.max.bytes", 1000),
        ("processing.guarantee", "at_least_once"),
        ("ksql.streams.topology.optimization", "none"),
        ("ksql.query.pull.table.scan.enabled", "false"),
        ("ksql.some.setting.of.another.version", "x"),
        (
            "ksql.streams.default.deserialization.exception.handler",
            "org.apache.kafka.streams.errors.LogAndContinueExceptionHandler",
        ),
        ("default.timestamp.extractor", "WallclockTimestampExtractor"),
    ],
)
def test_settings_of_statements_reach_their_query(shared: SqlPlace, name: str, value: object) -> None:
    client = shared.clients[0]
    client.ksql("CREATE STREAM T AS SELECT * FROM S;", streamsProperties={name: value})
    client.ksql("INSERT INTO S VALUES ('a', 'b');")
    client.settle()
    [query] = client.server.service.engine.catalog.queries.values()
    assert client.server.host.status(query.id).state.name == "RUNNING"
    assert query.settings[name] == value
    client.ksql("DROP STREAM T DELETE TOPIC;")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("auto.offset.reset", "sometimes"),
        ("consumer.auto.offset.reset", "/etc/passwd"),
        ("commit.interval.ms", "soon"),
        ("default.timestamp.extractor", "os.system"),
        ("deserialization.exception.handler", "builtins.eval"),
        ("production.exception.handler", 1),
    ],
)
def test_wrong_values_are_refused_with_what_there_is(shared: SqlPlace, name: str, value: object) -> None:
    status, error = shared.clients[0].error("SHOW STREAMS;", streamsProperties={name: value})
    assert status == 400
    assert error["message"].startswith(f"Invalid value {value} for property {name}")


def test_every_setting_that_the_code_looks_at_is_known() -> None:
    # One that is not would be taken from clients without a check: the prefix is all that is asked of it.
    names: set[str] = set()
    for file in (Path(__file__).parents[3] / "src" / "headrace").rglob("*.py"):
        lines = [line for line in file.read_text(encoding="utf-8").splitlines() if ">>>" not in line]
        names |= set(re.findall(r'"(ksql\.[a-z][a-z._0-9]*[a-z])"', "\n".join(lines)))
    assert len(names) > 20
    assert names - set(KNOWN) == set()


def test_the_list_of_what_may_be_set_has_no_place_program_or_secret() -> None:
    parts = (
        "dir",
        "listen",
        "token",
        "tls",
        "server",
        "url",
        "python",
        "spark",
        "sasl",
        "ssl",
        "password",
        "topic.name",
    )
    dangerous = [name for name in statement_settings() if any(part in re.split(r"[.]", name) for part in parts)]
    assert dangerous == []

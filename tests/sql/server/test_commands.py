"""The command topic: what a restarted server knows, and that several servers agree."""

from __future__ import annotations

import json
import threading
from datetime import timedelta

import pytest

from headrace.errors import TopicError
from headrace.serdes.registry import Schema, SchemaRegistry
from headrace.sql.catalog.command_log import Command, CommandLog
from tests.sql.server.kit import Client, SqlPlace

SOURCE = "CREATE STREAM S (K INT KEY, V STRING) WITH (KAFKA_TOPIC='s', VALUE_FORMAT='JSON', PARTITIONS=1);"


def _catalogue(client: Client) -> dict[str, object]:
    catalog = client.server.service.engine.catalog
    return {
        "sources": {name: str(source.schema) for name, source in catalog.sources.items()},
        "queries": list(catalog.queries),
        "types": {name: str(type) for name, type in catalog.types.items()},
    }


def test_restarted_server_goes_on(place: SqlPlace) -> None:
    first = place.server()
    first.ksql(SOURCE)
    first.ksql("CREATE TABLE N AS SELECT V, COUNT(*) AS N FROM S GROUP BY V; CREATE TYPE T AS ARRAY<INT>;")
    first.ksql("CREATE STREAM GONE AS SELECT * FROM S; INSERT INTO S VALUES (1, 'a');")
    first.ksql("DROP STREAM GONE DELETE TOPIC;")
    first.settle()
    before = _catalogue(first)
    first.close()

    second = place.server()
    assert _catalogue(second) == before
    second.ksql("INSERT INTO S VALUES (2, 'a');")
    second.settle()
    assert second.values("N") == [{"N": 1}, {"N": 2}]
    assert "GONE" not in place.log.topics()
    # Numbers of queries are never given twice.
    assert second.ksql("CREATE STREAM NEXT AS SELECT * FROM S;")[0]["commandStatus"]["queryId"] == "CSAS_NEXT_2"


def test_replay_deletes_no_topic_that_was_made_since(place: SqlPlace) -> None:
    first = place.server()
    first.ksql(SOURCE)
    first.ksql("DROP STREAM S DELETE TOPIC;")
    first.close()
    place.log.create_topic("s")
    place.log.append("s", [(None, 0, None, b"x", ())])
    second = place.server()
    assert _catalogue(second)["sources"] == {}
    assert len(second.records("s")) == 1


def test_topic_is_deleted_at_the_start_if_its_server_was_killed_before(place: SqlPlace) -> None:
    first = place.server()
    first.ksql(SOURCE)
    first.close()
    # What a server leaves that is killed between the command and the deletion.
    left = Command("DROP STREAM S DELETE TOPIC;", deletes={"s": place.log.topic_id("s")})
    CommandLog(place.log, "default_").append(left)
    second = place.server()
    assert _catalogue(second)["sources"] == {}
    assert "s" not in place.log.topics()


def test_server_starts_though_the_log_refuses_to_delete_a_topic(
    place: SqlPlace, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    first = place.server()
    first.ksql(SOURCE + SOURCE.replace("STREAM S", "STREAM T").replace("'s'", "'t'"))
    first.close()
    for name in ("S", "T"):
        left = Command(f"DROP STREAM {name} DELETE TOPIC;", deletes={name.lower(): place.log.topic_id(name.lower())})
        CommandLog(place.log, "default_").append(left)
    delete = place.log.delete_topic

    def refuse(topic: str) -> None:
        if topic == "s":
            message = "not authorized to delete 's'"
            raise TopicError(message)
        delete(topic)

    monkeypatch.setattr(place.log, "delete_topic", refuse)
    second = place.server()
    assert _catalogue(second)["sources"] == {}
    assert "not authorized to delete 's'" in caplog.text
    assert "s" in place.log.topics()
    assert "t" not in place.log.topics()


@pytest.mark.parametrize("after", [(), ("DROP STREAM AGAIN;",)])
def test_topic_that_was_used_since_is_not_deleted_at_the_start(place: SqlPlace, after: tuple[str, ...]) -> None:
    first = place.server()
    first.ksql(SOURCE)
    first.close()
    commands = CommandLog(place.log, "default_")
    commands.append(Command("DROP STREAM S DELETE TOPIC;", deletes={"s": place.log.topic_id("s")}))
    # Of another server, before the topic was gone.
    again = "CREATE STREAM AGAIN (K INT KEY) WITH (KAFKA_TOPIC='s', VALUE_FORMAT='JSON');"
    commands.append(Command(again, topics={"s": 1}))
    for text in after:
        commands.append(Command(text))
    second = place.server()
    assert list(_catalogue(second)["sources"]) == ([] if after else ["AGAIN"])  # type: ignore[call-overload]  # a mapping of this test
    assert "s" in place.log.topics()


def test_columns_stay_those_of_the_schema_that_they_were_inferred_from(place: SqlPlace) -> None:
    registry = SchemaRegistry("mock://frozen")

    def schema(*names: str) -> Schema:
        fields = [{"name": name, "type": ["null", "int"], "default": None} for name in names]
        return Schema(json.dumps({"type": "record", "name": "row", "fields": fields}))

    place.log.create_topic("s")
    registry.register("s-value", schema("A"))
    settings = {"ksql.schema.registry.url": registry.url}
    first = place.server(settings)
    first.ksql("CREATE STREAM OLD WITH (KAFKA_TOPIC='s', VALUE_FORMAT='AVRO');")
    registry.register("s-value", schema("A", "B"))
    first.ksql("CREATE STREAM NEW WITH (KAFKA_TOPIC='s', VALUE_FORMAT='AVRO');")
    expected = {"OLD": "`A` INTEGER", "NEW": "`A` INTEGER, `B` INTEGER"}
    assert _catalogue(first)["sources"] == expected
    first.close()
    second = place.server(settings)
    assert _catalogue(second)["sources"] == expected


def test_sources_stay_when_a_server_is_started_without_their_registry(place: SqlPlace) -> None:
    first = place.server({"ksql.schema.registry.url": "mock://left-out"})
    first.ksql("CREATE STREAM S (K INT KEY, V INT) WITH (KAFKA_TOPIC='s', VALUE_FORMAT='AVRO', PARTITIONS=1);")
    first.close()
    second = place.server()
    assert _catalogue(second)["sources"] == {"S": "`K` INTEGER KEY, `V` INTEGER"}
    status, body = second.error("CREATE STREAM T AS SELECT * FROM S;")
    assert (status, body["error_code"]) == (400, 40001)
    assert "Cannot create topic 'T' with format AVRO without configuring 'ksql.schema.registry.url'" in body["message"]


def test_servers_on_one_log_agree(place: SqlPlace) -> None:
    one, other = place.server(), place.server()
    one.ksql(SOURCE)
    assert other.ksql("DESCRIBE S;")[0]["sourceDescription"]["topic"] == "s"
    other.ksql("CREATE STREAM COPY AS SELECT * FROM S;")
    one.ksql("INSERT INTO S VALUES (1, 'a');")
    other.ksql("INSERT INTO S VALUES (2, 'b');")
    one.settle()
    other.settle()
    assert one.values("COPY") == [{"V": "a"}, {"V": "b"}]
    assert _catalogue(one) == _catalogue(other)


def test_servers_that_race_come_to_the_same_end(place: SqlPlace) -> None:
    clients = [place.server(), place.server()]
    clients[0].ksql(SOURCE)
    names = [f"T{number}" for number in range(6)]
    accepted: list[list[str]] = [[], []]

    def create(which: int) -> None:
        for name in names:
            found = clients[which].http.post("/ksql", json={"ksql": f"CREATE TYPE {name} AS ARRAY<INT>;"})
            if found.status_code == 200:
                accepted[which].append(name)

    threads = [threading.Thread(target=create, args=(which,)) for which in (0, 1)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    # Each was made by exactly one of them.
    assert sorted(accepted[0] + accepted[1]) == names
    for client in clients:
        client.ksql("SHOW TYPES;")
    assert _catalogue(clients[0]) == _catalogue(clients[1])


def test_survivor_takes_over_queries(place: SqlPlace) -> None:
    one, other = place.server(), place.server()
    one.ksql(SOURCE)
    one.ksql("CREATE STREAM COPY AS SELECT * FROM S; INSERT INTO S VALUES (1, 'a');")
    one.settle()
    assert [query["state"] for query in other.ksql("SHOW QUERIES;")[0]["queries"]] == ["RUNNING"]
    one.close()
    other.ksql("INSERT INTO S VALUES (2, 'b');")
    other.settle()
    assert other.values("COPY") == [{"V": "a"}, {"V": "b"}]


def test_what_cannot_be_read_or_carried_out_is_left_out(place: SqlPlace) -> None:
    first = place.server()
    first.ksql(SOURCE)
    topic = first.server.service.command_topic
    place.log.append(topic, [(0, 0, None, b"nonsense", ())])
    commands = CommandLog(place.log, "default_")
    commands.append(Command("CREATE STREAM S (K INT KEY) WITH (KAFKA_TOPIC='s', VALUE_FORMAT='JSON');"))
    commands.append(Command("NO STATEMENT AT ALL"))
    first.ksql("CREATE TYPE T AS ARRAY<INT>;")
    second = place.server()
    assert _catalogue(first) == _catalogue(second)
    assert list(_catalogue(second)["types"]) == ["T"]  # type: ignore[call-overload]  # a mapping of this test


def test_client_can_wait_for_a_command(place: SqlPlace) -> None:
    one, other = place.server(), place.server()
    [answer] = one.ksql(SOURCE)
    number = answer["commandSequenceNumber"]
    assert other.ksql("SHOW STREAMS;", commandSequenceNumber=number)[0]["streams"]
    assert not other.server.service.wait_for_command(number + 1, timedelta(0))

"""A client that was written for ksqlDB, unchanged, over a real socket: it speaks HTTP/2 and nothing else for rows."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Iterator
from typing import Any

import pytest
from ksqldb import KSQLdbClient  # type: ignore[import-untyped]

from tests.sql.server.kit import SOON, Client

SOURCES = (
    "CREATE STREAM readings (sensor STRING KEY, degrees DOUBLE) "
    "WITH (KAFKA_TOPIC='readings', VALUE_FORMAT='JSON', PARTITIONS=1);"
    "CREATE TABLE hottest AS SELECT sensor, MAX(degrees) AS degrees FROM readings GROUP BY sensor;"
)
PUSH = "SELECT sensor, degrees FROM readings EMIT CHANGES LIMIT 3;"


# The client leaves its connections to the collector.
pytestmark = pytest.mark.filterwarnings("ignore::ResourceWarning")


@pytest.fixture
def known(client: Client) -> Iterator[Any]:
    yield KSQLdbClient(client.server.url)
    gc.collect()


def test_creates_inserts_pulls_and_pushes(client: Client, known: Any) -> None:
    created = known.ksql(SOURCES)
    assert [each["commandStatus"]["status"] for each in created] == ["SUCCESS", "SUCCESS"]
    rows = [{"sensor": "a", "degrees": 20.5}, {"sensor": "b", "degrees": 18.0}, {"sensor": "a", "degrees": 23.25}]
    answers = known.inserts_stream("readings", rows)
    assert [(each["status"], each["seq"]) for each in answers] == [("ok", 0), ("ok", 1), ("ok", 2)]
    client.settle()
    header, row = known.query_sync("SELECT * FROM hottest WHERE sensor = 'a';")
    assert (header["columnNames"], row) == (["SENSOR", "DEGREES"], ["a", 23.25])

    async def pushed() -> list[Any]:
        found = known.query_async(PUSH, {"auto.offset.reset": "earliest"}, timeout=SOON.total_seconds())
        return [each async for each in found]

    assert asyncio.run(pushed())[1:] == [["a", 20.5], ["b", 18.0], ["a", 23.25]]


def test_closes_a_push_query(client: Client, known: Any) -> None:
    known.ksql(SOURCES)

    async def opened_and_closed() -> list[Any]:
        query = known.query_async("SELECT * FROM readings EMIT CHANGES;", timeout=SOON.total_seconds())
        header = await anext(query)
        assert await asyncio.to_thread(known.close_query, header["queryId"])
        return [each async for each in query]

    assert asyncio.run(opened_and_closed()) == []


def test_examples_of_its_page(known: Any) -> None:
    assert known.get_properties()
    known.ksql(
        "CREATE STREAM STREAM_NAME (col1 VARCHAR, col2 DOUBLE, col3 BOOLEAN) "
        "WITH (kafka_topic='topic_name', value_format='json', partitions=1);"
    )
    rows = [{"col1": "val1", "col2": 2.3, "col3": True}, {"col1": "val1", "col2": 2.3, "col3": True}]
    assert [each["status"] for each in known.inserts_stream("STREAM_NAME", rows)] == ["ok", "ok"]
    assert [each["name"] for each in known.ksql("show topics;")[0]["topics"]] == ["topic_name"]
    assert [each["name"] for each in known.ksql("show streams;")[0]["streams"]] == ["STREAM_NAME"]
    assert known.ksql("show tables;")[0]["tables"] == []
    described = known.ksql("describe STREAM_NAME extended;")[0]["sourceDescription"]
    assert (described["topic"], described["partitions"]) == ("topic_name", 1)
    header, *found = known.query_sync(
        "select * from STREAM_NAME;", stream_properties={"ksql.streams.auto.offset.reset": "earliest"}
    )
    assert (header["columnNames"], found) == (["COL1", "COL2", "COL3"], [["val1", 2.3, True]] * 2)

    async def followed() -> list[Any]:
        earliest = {"ksql.streams.auto.offset.reset": "earliest"}
        rows: list[Any] = []
        async for x in known.query_async(
            "select * from STREAM_NAME emit changes;", stream_properties=earliest, timeout=None
        ):
            rows.append(x)
            if len(rows) == 3:
                await asyncio.to_thread(known.close_query, rows[0]["queryId"])
        return rows[1:]

    assert asyncio.run(followed()) == [["val1", 2.3, True]] * 2


def test_shows_settings(known: Any) -> None:
    names = {each["name"] for each in known.get_properties()}
    assert "ksql.service.id" in names

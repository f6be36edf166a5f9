"""Tables and streams of a SQL server as data frames: what they have is what the server answers."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.sql.datasource import EqualTo, Filter, GreaterThanOrEqual

from headrace.app.engine import local_engine
from headrace.cli.sql.client import SqlClient
from headrace.errors import LogError, TopicError
from headrace.spark.dataframes.source import HeadraceSource
from headrace.sql.server.sql_server import SqlServer
from tests.certificates import make_signed_certificate
from tests.sql.server.kit import Client, SqlPlace

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from headrace.topics.kafka import KafkaLog

ORDERS = """
CREATE STREAM ORDERS (ID STRING KEY, USER STRING, AMOUNT INT) WITH (KAFKA_TOPIC='orders', FORMAT='JSON', PARTITIONS=2);
CREATE TABLE SPENT AS SELECT USER, SUM(AMOUNT) AS TOTAL FROM ORDERS GROUP BY USER;
CREATE TABLE BY_MINUTE AS SELECT USER, COUNT(*) AS N FROM ORDERS
    WINDOW TUMBLING (SIZE 1 MINUTE, RETENTION 2 MINUTES, GRACE PERIOD 10 SECONDS) GROUP BY USER;
"""
TYPES = """
CREATE STREAM TYPED (
    K INT KEY, B BOOLEAN, I INT, L BIGINT, D DOUBLE, N DECIMAL(6, 2), S STRING, Y BYTES, DA DATE, TI TIME, TS TIMESTAMP,
    A ARRAY<TIMESTAMP>, M MAP<STRING, DECIMAL(4, 1)>, R STRUCT<X INT, Y ARRAY<DATE>>,
    H ARRAY<STRUCT<KEY STRING, VALUE BYTES>> HEADERS
) WITH (KAFKA_TOPIC='typed', KEY_FORMAT='KAFKA', VALUE_FORMAT='JSON', PARTITIONS=1);
"""


@pytest.fixture
def client(tmp_path: Path) -> Iterator[Client]:
    place = SqlPlace(tmp_path)
    yield place.server()
    place.close()


def source(client: Client, **options: str) -> HeadraceSource:
    return HeadraceSource({"server": client.server.url, "log_sync": "none", **options})


def read(client: Client, *filters: Filter, **options: str) -> tuple[list[dict[str, Any]], int]:
    """Returns the rows, and how many records were read for them."""
    found = source(client, **options)
    reader: Any = found.reader(found.schema())
    assert list(reader.pushFilters(list(filters))) == []
    rows: list[dict[str, Any]] = []
    records = 0
    for part in reader.partitions():
        rows += [row for batch in reader.read(part) for row in batch.to_pylist()]
        records += reader.counts.records
    return rows, records


def orders(client: Client) -> None:
    client.ksql(ORDERS)
    for time, id, user, amount in [
        (1_000, "1", "alice", 5),
        (2_000, "2", "bob", 7),
        (61_000, "3", "alice", 6),
        (200_000, "4", "carol", 1),
    ]:
        client.ksql(f"INSERT INTO ORDERS (ROWTIME, ID, USER, AMOUNT) VALUES ({time}, '{id}', '{user}', {amount});")
    client.settle()


def pulled(client: Client, columns: str, table: str) -> list[list[Any]]:
    return sorted(
        part["row"]["columns"] for part in client.query(f"SELECT {columns} FROM {table};")[1:] if "row" in part
    )


def test_table_has_the_rows_that_a_pull_query_finds(client: Client) -> None:
    orders(client)
    rows, _ = read(client, table="spent")
    assert sorted((row["USER"], row["TOTAL"], row["ROWTIME"]) for row in rows) == [
        ("alice", 11, 61_000),
        ("bob", 7, 2_000),
        ("carol", 1, 200_000),
    ]
    assert sorted([row["USER"], row["TOTAL"]] for row in rows) == pulled(client, "USER, TOTAL", "SPENT")
    windows, _ = read(client, table="BY_MINUTE")
    found = sorted([row["USER"], row["WINDOWSTART"], row["WINDOWEND"], row["N"]] for row in windows)
    # Windows that are over by the server's reckoning, in their partitions, are in neither.
    assert found == pulled(client, "USER, WINDOWSTART, WINDOWEND, N", "BY_MINUTE")
    assert ["carol", 180_000, 240_000, 1] in found
    assert len(found) < 4


def test_rows_whose_time_to_live_is_over_are_gone(client: Client) -> None:
    client.ksql(
        "CREATE TABLE SEEN (ID STRING PRIMARY KEY, USER STRING) "
        "WITH (KAFKA_TOPIC='seen', FORMAT='JSON', PARTITIONS=1, TTL='1 MINUTE');"
    )
    for time, id in [(1_000, "old"), (50_000, "young"), (90_000, "last")]:
        client.ksql(f"INSERT INTO SEEN (ROWTIME, ID, USER) VALUES ({time}, '{id}', 'x');")
    rows, _ = read(client, table="SEEN")
    assert sorted(row["ID"] for row in rows) == ["last", "young"]
    # The clock of the table goes by all of its rows, also where one of them is asked for.
    assert read(client, EqualTo(("ID",), "old"), table="SEEN")[0] == []


def test_filters_on_tables_and_streams_narrow_what_is_read(client: Client) -> None:
    orders(client)
    [row], _ = read(client, EqualTo(("USER",), "alice"), table="SPENT")
    assert (row["USER"], row["TOTAL"]) == ("alice", 11)
    rows, records = read(client, GreaterThanOrEqual(("ROWTIME",), 61_000), stream="ORDERS")
    assert sorted(row["ID"] for row in rows) == ["3", "4"]
    assert records < 4
    rows, _ = read(client, EqualTo(("ID",), "2"), stream="ORDERS", ending_time="60000")
    assert [(row["ID"], row["USER"], row["AMOUNT"], row["ROWTIME"]) for row in rows] == [("2", "bob", 7, 2_000)]


def test_every_type_of_sql_has_one_of_spark(client: Client) -> None:
    client.ksql(TYPES)
    value = (
        b'{"B": true, "I": 1, "L": 2, "D": 0.5, "N": 12.5, "S": "s", "Y": "AQI=", "DA": 19000, "TI": 3600000,'
        b'"TS": 1500, "A": [1000, null], "M": {"x": 2.5}, "R": {"X": 3, "Y": [1]}}'
    )
    client.server.log.append("typed", [(0, 7, (5).to_bytes(4, "big"), value, (("h", b"v"),))])
    schema = source(client, stream="TYPED").schema()
    assert schema.simpleString() == (
        "struct<K:int,B:boolean,I:int,L:bigint,D:double,N:decimal(6,2),S:string,Y:binary,DA:date,TI:int,TS:timestamp,"
        "A:array<timestamp>,M:map<string,decimal(4,1)>,R:struct<X:int,Y:array<date>>,"
        "H:array<struct<KEY:string,VALUE:binary>>,ROWTIME:bigint,ROWPARTITION:int,ROWOFFSET:bigint>"
    )
    [row], _ = read(client, stream="TYPED")
    assert row == {
        "K": 5,
        "B": True,
        "I": 1,
        "L": 2,
        "D": 0.5,
        "N": Decimal("12.50"),
        "S": "s",
        "Y": b"\x01\x02",
        "DA": date(2022, 1, 8),
        "TI": 3_600_000,
        "TS": datetime(1970, 1, 1, 0, 0, 1, 500_000, tzinfo=UTC),
        "A": [datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC), None],
        "M": [("x", Decimal("2.5"))],
        "R": {"X": 3, "Y": [date(1970, 1, 2)]},
        "H": [{"KEY": "h", "VALUE": b"v"}],
        "ROWTIME": 7,
        "ROWPARTITION": 0,
        "ROWOFFSET": 0,
    }


def test_what_a_server_does_not_have_is_refused(client: Client) -> None:
    client.ksql("CREATE TABLE USERS (ID INT PRIMARY KEY, N INT) WITH (KAFKA_TOPIC='u', FORMAT='JSON', PARTITIONS=1);")
    with pytest.raises(TopicError, match="has no table 'USRS'; did you mean 'USERS'"):
        read(client, table="USRS")
    with pytest.raises(TopicError, match="has no stream 'USERS'"):
        read(client, stream="USERS")
    nowhere = HeadraceSource({"server": "http://localhost:1", "table": "USERS"})
    with pytest.raises(LogError, match=r"localhost:1 cannot list its tables: .*; is it running there"):
        nowhere.schema()


def test_server_with_a_certificate_of_an_authority_of_its_own(tmp_path: Path) -> None:
    certificate, key, authority = make_signed_certificate(tmp_path)
    settings = {"state.dir": str(tmp_path), "log.sync": "none", "http.tls.certificate": certificate}
    with SqlServer(settings | {"http.tls.key": key}, listen="localhost:0", engine=local_engine) as server:
        SqlClient(server.url, authority=authority).execute(
            "CREATE TABLE USERS (ID INT PRIMARY KEY, N INT) WITH (KAFKA_TOPIC='u', FORMAT='JSON', PARTITIONS=1);"
        )
        options = {"server": server.url, "table": "USERS"}
        assert HeadraceSource({**options, "http.tls.authority": str(authority)}).schema().names[:2] == ["ID", "N"]
        with pytest.raises(LogError, match=r"certificate verify failed.*; set http.tls.authority"):
            HeadraceSource(options).schema()


@pytest.mark.kafka
def test_table_in_kafka_is_read_where_the_server_says(tmp_path: Path, kafka: KafkaLog) -> None:
    settings = {"state.dir": str(tmp_path), "bootstrap.servers": kafka.bootstrap_servers, "ksql.service.id": "frames_"}
    client = Client(SqlServer(settings, listen="localhost:0", log=kafka, engine=local_engine, token="open").start())
    try:
        client.http.headers["Authorization"] = "Bearer open"
        client.ksql(
            "CREATE TABLE USERS (ID INT PRIMARY KEY, N INT) WITH (KAFKA_TOPIC='u', FORMAT='JSON', PARTITIONS=1);"
        )
        kafka.append("u", [(0, 5, b"1", b'{"N": 2}', ()), (0, 6, b"3", b'{"N": 4}', ()), (0, 7, b"1", None, ())])
        rows, records = read(client, table="USERS", server_token="open")
        assert (rows, records) == ([{"ID": 3, "N": 4, "ROWTIME": 6, "ROWPARTITION": 0}], 3)
        with pytest.raises(LogError, match=r"401 .*; give a token or a user"):
            read(client, table="USERS")
    finally:
        client.close()


@pytest.mark.spark
def test_tables_of_a_server_are_listed_and_read_in_spark(client: Client, spark_context: None) -> None:
    from pyspark.sql import SparkSession

    from headrace.spark import register, tables

    orders(client)
    spark: SparkSession = SparkSession.builder.getOrCreate()
    register(spark)
    listed = tables(spark, server=client.server.url).drop("statement").collect()
    assert sorted(tuple(row) for row in listed) == [
        ("BY_MINUTE", "BY_MINUTE", "JSON", "JSON", "TUMBLING", [("USER", "STRING")], [("N", "BIGINT")]),
        ("SPENT", "SPENT", "JSON", "JSON", None, [("USER", "STRING")], [("TOTAL", "INTEGER")]),
    ]
    reading = spark.read.format("headrace").option("server", client.server.url).option("log_sync", "none")
    spent = reading.option("table", "SPENT").load()
    found = spent.where("USER IN ('alice', 'bob')").select("USER", "TOTAL").collect()
    assert sorted(tuple(row) for row in found) == [("alice", 11), ("bob", 7)]

"""ksqlDB's how-to guides, as far as they need no connector, with AVRO and the schema registry for development."""

from __future__ import annotations

import base64
import json

from headrace.serdes.registry import subject_of
from tests.sql.guides.kit import Guide


def test_query_structured_data(guide: Guide) -> None:
    guide.run("""
        CREATE STREAM s1 (a VARCHAR KEY, b STRUCT<c VARCHAR, d INT>)
            WITH (kafka_topic='s1', partitions=1, value_format='avro');
        INSERT INTO s1 (a, b) VALUES ('k1', STRUCT(c := 'v1', d := 5));
        INSERT INTO s1 (a, b) VALUES ('k2', STRUCT(c := 'v2', d := 6));
        INSERT INTO s1 (a, b) VALUES ('k3', STRUCT(c := 'v3', d := 7));
        CREATE STREAM s2 (a VARCHAR KEY, b MAP<VARCHAR, INT>)
            WITH (kafka_topic='s2', partitions=1, value_format='avro');
        INSERT INTO s2 (a, b) VALUES ('k1', MAP('c' := 2, 'd' := 4));
        INSERT INTO s2 (a, b) VALUES ('k2', MAP('c' := 4, 'd' := 8));
        CREATE STREAM s3 (a VARCHAR KEY, b ARRAY<INT>) WITH (kafka_topic='s3', partitions=1, value_format='avro');
        INSERT INTO s3 (a, b) VALUES ('k1', ARRAY[1]);
        INSERT INTO s3 (a, b) VALUES ('k2', ARRAY[2, 3]);
        INSERT INTO s3 (a, b) VALUES ('k3', ARRAY[4, 5, 6]);
    """)
    structs = guide.rows("SELECT a, b, b->c, b->d FROM s1 EMIT CHANGES LIMIT 3;")
    assert structs == [[f"k{n}", {"C": f"v{n}", "D": n + 4}, f"v{n}", n + 4] for n in (1, 2, 3)]
    maps = guide.rows("SELECT a, b, b['c'] AS c, b['d'] AS d FROM s2 EMIT CHANGES LIMIT 2;")
    assert maps == [["k1", {"c": 2, "d": 4}, 2, 4], ["k2", {"c": 4, "d": 8}, 4, 8]]
    arrays = guide.rows("SELECT a, b[1] AS b1, b[2] AS b2, b[3] AS b3, b[-1] AS bn FROM s3 EMIT CHANGES LIMIT 3;")
    assert arrays == [["k1", 1, None, None, 1], ["k2", 2, 3, None, 3], ["k3", 4, 5, 6, 6]]


def test_convert_a_changelog_to_a_table(guide: Guide) -> None:
    guide.run("""
        CREATE STREAM s1 (k VARCHAR KEY, v1 INT, v2 VARCHAR)
            WITH (kafka_topic='s1', partitions=1, value_format='avro');
        INSERT INTO s1 (k, v1, v2) VALUES ('k1', 0, 'a');
        INSERT INTO s1 (k, v1, v2) VALUES ('k2', 1, 'b');
        INSERT INTO s1 (k, v1, v2) VALUES ('k1', 2, 'c');
        INSERT INTO s1 (k, v1, v2) VALUES ('k3', 3, 'd');
        INSERT INTO s1 (k, v1, v2) VALUES ('k2', 4, 'e');
        CREATE TABLE t1 AS
            SELECT k, LATEST_BY_OFFSET(v1) AS v1, LATEST_BY_OFFSET(v2) AS v2 FROM s1 GROUP BY k EMIT CHANGES;
    """)
    assert guide.rows("SELECT * FROM t1 WHERE k = 'k1';") == [["k1", 2, "c"]]
    assert sorted(guide.rows("SELECT * FROM t1;")) == [["k1", 2, "c"], ["k2", 4, "e"], ["k3", 3, "d"]]
    # The schema of the sink is in the registry, in ksqlDB's shape.
    latest = guide.registry.latest(subject_of("T1", is_key=False))
    assert latest is not None
    assert [field["name"] for field in json.loads(latest.schema.text)["fields"]] == ["V1", "V2"]


def test_substitute_key_columns(guide: Guide) -> None:
    guide.run("""
        CREATE STREAM users (id INT KEY, region VARCHAR, name VARCHAR)
            WITH (kafka_topic='users', partitions=2, format='avro');
        INSERT INTO users VALUES (1, 'north', 'ann');
        INSERT INTO users VALUES (2, 'south', 'bob');
        CREATE STREAM by_region AS SELECT region, AS_VALUE(region) AS area, id, name FROM users PARTITION BY region;
    """)
    rows = guide.rows("SELECT * FROM by_region EMIT CHANGES LIMIT 2;")
    assert sorted(rows) == [["north", "north", 1, "ann"], ["south", "south", 2, "bob"]]
    [described] = guide.run("DESCRIBE by_region;")
    fields = described["sourceDescription"]["fields"]
    assert [(field["name"], field.get("type")) for field in fields][:2] == [("REGION", "KEY"), ("AREA", None)]


def test_test_on_headers(guide: Guide) -> None:
    guide.run("""
        CREATE STREAM s (k VARCHAR KEY, v INT,
                         all_headers ARRAY<STRUCT<key STRING, value BYTES>> HEADERS)
            WITH (kafka_topic='s', partitions=1, value_format='json');
        CREATE STREAM t (k VARCHAR KEY, v INT, origin BYTES HEADER('origin'))
            WITH (kafka_topic='s', value_format='json');
    """)
    guide.client.server.log.append(
        "s",
        [(0, 1, b"a", b'{"V": 1}', (("origin", b"web"), ("try", b"1"))), (0, 2, b"b", b'{"V": 2}', ())],
    )
    [both, none] = guide.rows("SELECT k, all_headers FROM s EMIT CHANGES LIMIT 2;")
    shown = [{"KEY": "origin", "VALUE": _base64(b"web")}, {"KEY": "try", "VALUE": _base64(b"1")}]
    assert (both, none) == (["a", shown], ["b", []])
    found = guide.rows("SELECT k, FROM_BYTES(origin, 'utf8') AS origin FROM t EMIT CHANGES LIMIT 2;")
    assert found == [["a", "web"], ["b", None]]
    only = "SELECT k FROM t WHERE FROM_BYTES(origin, 'utf8') = 'web' EMIT CHANGES LIMIT 1;"
    assert guide.rows(only) == [["a"]]


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode()


def test_use_a_custom_timestamp_column(guide: Guide) -> None:
    guide.run("""
        CREATE STREAM s1 (k VARCHAR KEY, ts VARCHAR, v1 INT)
            WITH (kafka_topic='s1', partitions=1, value_format='avro');
        INSERT INTO s1 (k, ts, v1) VALUES ('k1', '2020-05-04 01:00:00', 0);
        INSERT INTO s1 (k, ts, v1) VALUES ('k2', '2020-05-04 02:00:00', 1);
        CREATE STREAM s2
            WITH (timestamp='ts', timestamp_format='yyyy-MM-dd HH:mm:ss', kafka_topic='s2', partitions=1,
                  value_format='avro')
            AS SELECT * FROM s1 EMIT CHANGES;
    """)
    rows = guide.rows("""
        SELECT k, ROWTIME, TIMESTAMPTOSTRING(ROWTIME, 'yyyy-MM-dd HH:mm:ss.SSS') AS rowtime_formatted, ts, v1
        FROM s2 EMIT CHANGES LIMIT 2;
    """)
    # 2020-05-04T01:00:00Z, and an hour later.
    assert rows == [
        ["k1", 1588554000000, "2020-05-04 01:00:00.000", "2020-05-04 01:00:00", 0],
        ["k2", 1588557600000, "2020-05-04 02:00:00.000", "2020-05-04 02:00:00", 1],
    ]


def test_create_a_user_defined_function(guide: Guide) -> None:
    guide.run("""
        CREATE FUNCTION formula AS 'tests.sql.guides.formulas:formula';
        CREATE FUNCTION rolling_sum AS 'tests.sql.guides.formulas:RollingSum';
        CREATE STREAM s1 (a VARCHAR KEY, b BIGINT, c BIGINT)
            WITH (kafka_topic='s1', partitions=1, value_format='avro');
        INSERT INTO s1 (a, b, c) VALUES ('k1', 2, 3);
        INSERT INTO s1 (a, b, c) VALUES ('k2', 4, 6);
        INSERT INTO s1 (a, b, c) VALUES ('k1', 3, 7);
        INSERT INTO s1 (a, b, c) VALUES ('k1', 5, 7);
        INSERT INTO s1 (a, b, c) VALUES ('k1', 7, 7);
        CREATE TABLE sums AS SELECT a, ROLLING_SUM(b) AS total FROM s1 GROUP BY a;
    """)
    assert guide.rows("SELECT a, formula(b, c) AS result FROM s1 EMIT CHANGES LIMIT 3;") == [
        ["k1", 6],
        ["k2", 24],
        ["k1", 21],
    ]
    assert sorted(guide.rows("SELECT * FROM sums;")) == [["k1", 15], ["k2", 4]]


def test_join_streams_and_tables(guide: Guide) -> None:
    guide.run("""
        CREATE TABLE employees (id INT PRIMARY KEY, name VARCHAR)
            WITH (kafka_topic='employees', partitions=1, value_format='avro');
        INSERT INTO employees VALUES (1, 'ann');
        INSERT INTO employees VALUES (2, 'bob');
        CREATE STREAM badges (employee INT KEY, door VARCHAR)
            WITH (kafka_topic='badges', partitions=1, value_format='avro');
        INSERT INTO badges VALUES (2, 'north');
        INSERT INTO badges VALUES (3, 'south');
        CREATE STREAM entries AS
            SELECT badges.employee AS employee, name, door FROM badges
            LEFT JOIN employees ON badges.employee = employees.id EMIT CHANGES;
    """)
    assert sorted(guide.rows("SELECT * FROM entries EMIT CHANGES LIMIT 2;")) == [
        [2, "bob", "north"],
        [3, None, "south"],
    ]


def test_create_a_time_window(guide: Guide) -> None:
    guide.run("""
        CREATE STREAM readings (sensor VARCHAR KEY, at BIGINT, degrees INT)
            WITH (kafka_topic='readings', partitions=1, value_format='avro', timestamp='at');
        INSERT INTO readings VALUES ('a', 0, 10);
        INSERT INTO readings VALUES ('a', 59000, 20);
        INSERT INTO readings VALUES ('a', 60000, 30);
        CREATE TABLE tumbling AS
            SELECT sensor, COUNT(*) AS n, MAX(degrees) AS hottest FROM readings
            WINDOW TUMBLING (SIZE 1 MINUTE) GROUP BY sensor;
        CREATE TABLE hopping AS
            SELECT sensor, COUNT(*) AS n FROM readings
            WINDOW HOPPING (SIZE 1 MINUTE, ADVANCE BY 30 SECONDS) GROUP BY sensor;
        CREATE TABLE sessions AS
            SELECT sensor, COUNT(*) AS n FROM readings WINDOW SESSION (30 SECONDS) GROUP BY sensor;
    """)
    select = "SELECT WINDOWSTART, WINDOWEND, n FROM {} WHERE sensor = 'a';"
    assert guide.rows(select.format("tumbling")) == [[0, 60000, 2], [60000, 120000, 1]]
    assert guide.rows(select.format("hopping")) == [[0, 60000, 2], [30000, 90000, 2], [60000, 120000, 1]]
    # 59 s and 60 s belong together; the first reading lies alone.
    assert guide.rows(select.format("sessions")) == [[0, 0, 1], [59000, 60000, 2]]


def test_update_a_running_query(guide: Guide) -> None:
    guide.run("""
        CREATE STREAM purchases (product_id INT KEY, name VARCHAR, cost DOUBLE, quantity INT)
            WITH (kafka_topic='purchases', partitions=1, value_format='avro');
        CREATE STREAM high_purchases AS SELECT product_id, name, cost FROM purchases WHERE cost > 100.0;
        INSERT INTO purchases VALUES (1, 'lamp', 120.0, 1);
        INSERT INTO purchases VALUES (2, 'pen', 2.0, 9);
    """)
    guide.run("""
        CREATE OR REPLACE STREAM high_purchases AS
            SELECT product_id, name, cost, quantity FROM purchases WHERE cost > 100.0 AND quantity > 1;
        INSERT INTO purchases VALUES (3, 'desk', 300.0, 1);
        INSERT INTO purchases VALUES (4, 'chair', 150.0, 4);
    """)
    assert guide.rows("SELECT * FROM high_purchases EMIT CHANGES LIMIT 2;") == [
        [1, "lamp", 120.0, None],
        [4, "chair", 150.0, 4],
    ]
    # The new schema follows the old one, and the registry has accepted it.
    latest = guide.registry.latest(subject_of("HIGH_PURCHASES", is_key=False))
    assert latest is not None
    assert (latest.version, [f["name"] for f in json.loads(latest.schema.text)["fields"]]) == (
        2,
        ["NAME", "COST", "QUANTITY"],
    )


def test_use_lambda_functions(guide: Guide) -> None:
    guide.run("""
        CREATE STREAM stream1 (id INT, lambda_map MAP<STRING, INTEGER>, items ARRAY<INT>)
            WITH (kafka_topic='stream1', partitions=1, value_format='avro');
        INSERT INTO stream1 (id, lambda_map, items) VALUES (3, MAP('hello' := 15, 'goodbye' := -5), ARRAY[1, 2, 3]);
        CREATE STREAM output AS
            SELECT id,
                   TRANSFORM(lambda_map, (k, v) => UCASE(k), (k, v) => v + 5) AS transformed,
                   FILTER(lambda_map, (k, v) => v > 0) AS filtered,
                   REDUCE(items, 10, (s, x) => s + x) AS total
            FROM stream1 EMIT CHANGES;
    """)
    assert guide.rows("SELECT * FROM output EMIT CHANGES LIMIT 1;") == [
        [3, {"HELLO": 20, "GOODBYE": 0}, {"hello": 15}, 16]
    ]


def test_control_the_case_of_identifiers(guide: Guide) -> None:
    guide.run("""
        CREATE STREAM `s1` (`foo` VARCHAR KEY, `BAR` INT, Baz VARCHAR, `@bat!` INT)
            WITH (kafka_topic='s1', partitions=1, value_format='json');
        INSERT INTO `s1` (`foo`, bar, baz, `@bat!`) VALUES ('k1', 1, 'x', 7);
        CREATE STREAM s2 AS SELECT `foo`, bar AS `Grace`, baz, `@bat!` FROM `s1` EMIT CHANGES;
    """)
    [described] = guide.run("DESCRIBE s2;")
    names = [field["name"] for field in described["sourceDescription"]["fields"]]
    assert names == ["foo", "Grace", "BAZ", "@bat!"]
    assert guide.rows("SELECT `foo`, `Grace`, BAZ, `@bat!` FROM S2 EMIT CHANGES LIMIT 1;") == [["k1", 1, "x", 7]]
    status, error = guide.client.error("SELECT foo FROM s2 EMIT CHANGES;", "/query")
    assert (status, "FOO" in error["message"]) == (400, True)

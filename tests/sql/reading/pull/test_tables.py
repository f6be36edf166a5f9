"""Pull queries on tables: by key, by range, by any condition."""

from __future__ import annotations

from itertools import product
from typing import Any

import pytest

from headrace.sql.errors import SqlError, SqlStatementError
from headrace.sql.reading.pull.key_access import KeyConditions, KeyRows, RangeRows
from headrace.sql.syntax.parser import parse_expression
from headrace.topics.journal import TaskRecord
from tests.sql.places import QueryPlace

CITIES = """
CREATE TABLE written (name STRING PRIMARY KEY, country STRING, people BIGINT)
    WITH (KAFKA_TOPIC='cities', VALUE_FORMAT='JSON', PARTITIONS=3);
CREATE SOURCE TABLE cities (name STRING PRIMARY KEY, country STRING, people BIGINT)
    WITH (KAFKA_TOPIC='cities', VALUE_FORMAT='JSON');
INSERT INTO written VALUES ('Bergen', 'NO', 280);
INSERT INTO written VALUES ('Basel', 'CH', 170);
INSERT INTO written VALUES ('Oslo', 'NO', 600);
INSERT INTO written VALUES ('Oslo', 'NO', 700);
INSERT INTO written VALUES ('Zug', NULL, 30);
"""


@pytest.fixture
def cities(place: QueryPlace) -> QueryPlace:
    place.run(CITIES)
    return place


def names(rows: list[list[Any]]) -> list[str]:
    return sorted(str(row[0]) for row in rows)


def test_a_row_is_found_by_its_key(cities: QueryPlace) -> None:
    result = cities.pulled("SELECT * FROM cities WHERE name = 'Oslo';")
    assert str(result.schema) == "`NAME` STRING KEY, `COUNTRY` STRING, `PEOPLE` BIGINT"
    assert [row.columns for row in result.rows] == [["Oslo", "NO", 700]]
    assert result.final_message is None
    assert cities.rows("SELECT * FROM cities WHERE name = 'Rome';") == []


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ("name IN ('Oslo', 'Zug', 'Rome', 'Oslo')", ["Oslo", "Zug"]),
        ("name = 'Oslo' OR name = 'Zug' AND people > 50", ["Oslo"]),
        ("name >= 'Basel' AND name < 'Oslo'", ["Basel", "Bergen"]),
        ("'C' > name", ["Basel", "Bergen"]),
        ("name BETWEEN 'Bergen' AND 'Oslo'", ["Bergen", "Oslo"]),
        ("name > 'P' OR name = 'Basel'", ["Basel", "Zug"]),
        ("people > 200", ["Bergen", "Oslo"]),
        ("country IS NULL", ["Zug"]),
        ("name LIKE 'B%' AND NOT people = 170", ["Bergen"]),
        ("LEN(name) = 4", ["Oslo"]),
        ("1 < 2", ["Basel", "Bergen", "Oslo", "Zug"]),
        ("name = country", []),
    ],
)
def test_any_condition_is_answered(cities: QueryPlace, condition: str, expected: list[str]) -> None:
    assert names(cities.rows(f"SELECT * FROM cities WHERE {condition};")) == expected


def test_long_conditions_are_answered_and_endless_ones_refused(cities: QueryPlace) -> None:
    many = [f"name = 'city {number}'" for number in range(150)]
    assert names(cities.rows(f"SELECT * FROM cities WHERE {' OR '.join(many)} OR name = 'Zug';")) == ["Zug"]
    listed = ", ".join(f"'city {number}'" for number in range(12_000))
    assert names(cities.rows(f"SELECT * FROM cities WHERE name IN ({listed}, 'Zug');")) == ["Zug"]
    with pytest.raises(SqlStatementError, match="nested too deeply"):
        cities.rows(f"SELECT * FROM cities WHERE {' OR '.join(many * 20)};")


def test_columns_are_named_and_marked(cities: QueryPlace) -> None:
    result = cities.pulled("SELECT people * 2, name AS city, UCASE(name) AS u, ROWTIME FROM cities WHERE name='Zug';")
    assert str(result.schema) == "`KSQL_COL_0` BIGINT, `CITY` STRING, `U` STRING, `ROWTIME` BIGINT"
    assert [row.columns for row in result.rows] == [[60, "Zug", "ZUG", 5]]
    renamed = cities.pulled("SELECT people AS name FROM cities WHERE name='Zug';")
    assert str(renamed.schema) == "`NAME` BIGINT KEY"


def test_a_deleted_row_is_gone_and_a_changed_one_is_new(cities: QueryPlace) -> None:
    assert names(cities.rows("SELECT * FROM cities;")) == ["Basel", "Bergen", "Oslo", "Zug"]
    partition = [each for each in range(3) for raw in cities.log.read("cities", each, 0) if raw[2] == b"Basel"]
    cities.log.append("cities", [(partition[0], 9, b"Basel", None, ())])
    cities.run("INSERT INTO written VALUES ('Zug', 'CH', 31);")
    assert names(cities.rows("SELECT * FROM cities;")) == ["Bergen", "Oslo", "Zug"]
    assert cities.rows("SELECT country FROM cities WHERE name = 'Zug';") == [["CH"]]


def test_rows_that_were_not_committed_are_not_seen(cities: QueryPlace) -> None:
    journal = cities.log.open_journal("other", ["0_0"])
    task = cities.log.task_journal("other", journal.incarnation, "0_0", [])
    task.open()
    rome = (0, 9, b"Rome", b'{"PEOPLE": 1}', ())
    receipt = task.commit(TaskRecord(0, "stamp", [], None, b""), [("cities", [rome])], [])
    assert cities.rows("SELECT * FROM cities WHERE name = 'Rome';") == []
    journal.commit(0, [receipt])
    assert cities.rows("SELECT people FROM cities WHERE name = 'Rome';") == [[1]]


def test_a_record_that_cannot_be_read_is_left_out(cities: QueryPlace) -> None:
    cities.log.append("cities", [(0, 9, b"Rome", b"{", ())])
    assert names(cities.rows("SELECT * FROM cities;")) == ["Basel", "Bergen", "Oslo", "Zug"]


def test_a_topic_made_anew_is_another_table(cities: QueryPlace) -> None:
    assert len(cities.rows("SELECT * FROM cities;")) == 4
    cities.log.delete_topic("cities")
    cities.log.create_topic("cities", partitions=1)
    cities.run("INSERT INTO written VALUES ('Rome', 'IT', 2800);")
    assert cities.rows("SELECT name FROM cities;") == [["Rome"]]
    cities.tables.forget("cities")
    assert cities.rows("SELECT name FROM cities;") == [["Rome"]]


def test_limit_takes_the_first_rows(cities: QueryPlace) -> None:
    everything = cities.rows("SELECT * FROM cities;")
    assert cities.rows("SELECT * FROM cities LIMIT 2;") == everything[:2]
    assert cities.rows("SELECT * FROM cities LIMIT 0;") == []


def test_negative_numbers_are_in_ranges(place: QueryPlace) -> None:
    place.run(
        """CREATE TABLE written (id BIGINT PRIMARY KEY, v INT)
            WITH (KAFKA_TOPIC='t', VALUE_FORMAT='JSON', PARTITIONS=2);
        CREATE SOURCE TABLE numbers (id BIGINT PRIMARY KEY, v INT) WITH (KAFKA_TOPIC='t', VALUE_FORMAT='JSON');"""
        + "".join(f"INSERT INTO written VALUES ({number}, 0);" for number in (-3, -1, 0, 2, 5))
    )
    for low, high in product((None, -2, 0, 3), (None, -1, 2, 9)):
        parts = [f"id >= {low}"] * (low is not None) + [f"id < {high}"] * (high is not None)
        where = f" WHERE {' AND '.join(parts)}" if parts else ""
        found = sorted(row[0] for row in place.rows(f"SELECT id FROM numbers{where};"))
        wanted = [n for n in (-3, -1, 0, 2, 5) if (low is None or n >= low) and (high is None or n < high)]
        assert found == wanted


def test_keys_of_several_columns_and_of_lists(place: QueryPlace) -> None:
    place.run(
        """CREATE STREAM s (k INT KEY, a INT, tags ARRAY<STRING>) WITH (KAFKA_TOPIC='s', FORMAT='JSON', PARTITIONS=2);
        CREATE TABLE pairs AS SELECT k, a, COUNT(*) AS n FROM s GROUP BY k, a;
        CREATE TABLE tagged AS SELECT tags, COUNT(*) AS n FROM s GROUP BY tags;
        INSERT INTO s VALUES (1, 10, ARRAY['x']);
        INSERT INTO s VALUES (1, 11, ARRAY['x', 'y']);
        INSERT INTO s VALUES (2, 10, ARRAY['x']);
        INSERT INTO s VALUES (1, 10, ARRAY['y']);"""
    )
    assert place.rows("SELECT n FROM pairs WHERE k = 1 AND a = 10;") == [[2]]
    assert sorted(place.rows("SELECT a, n FROM pairs WHERE k = 1;")) == [[10, 2], [11, 1]]
    assert place.rows("SELECT tags, n FROM tagged WHERE tags = ARRAY['x'];") == [[["x"], 2]]


def test_headers_of_a_source_table(place: QueryPlace) -> None:
    place.log.create_topic("t")
    place.run(
        """CREATE SOURCE TABLE t (k STRING PRIMARY KEY, v INT, trace BYTES HEADER('trace'))
        WITH (KAFKA_TOPIC='t', VALUE_FORMAT='JSON');"""
    )
    place.log.append("t", [(0, 1, b"a", b'{"V": 1}', (("trace", b"x"),)), (0, 2, b"b", b'{"V": 2}', ())])
    assert place.rows("SELECT * FROM t;") == [["a", 1, b"x"], ["b", 2, None]]


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("SELECT * FROM written;", "The `WRITTEN` table isn't queryable. To derive a queryable table"),
        ("SELECT * FROM nothing;", "NOTHING does not exist"),
        ("SELECT * FROM cities WHERE name = 5;", r"Cannot compare NAME \(STRING\) to 5 \(INTEGER\) with EQUAL"),
        ("SELECT * FROM cities WHERE name IN ('a', 5);", "'5' can not be converted to the type of the key column"),
        ("SELECT * FROM cities WHERE name IN (NULL);", r"Primary key columns can not be NULL: \(NAME = null\)"),
        ("SELECT * FROM cities WHERE people LIKE 'x';", "The column type for Like condition must be VARCHAR"),
        ("SELECT * FROM cities WHERE people IN ('x', 5);", 'invalid input syntax for type BIGINT: "x"'),
        ("SELECT * FROM cities WHERE country LIKE 5;", "Like condition on non-string pattern 5"),
        ("SELECT EXPLODE(ARRAY[people]) FROM cities;", "Table source is not supported with table functions"),
        ("SELECT * FROM cities WHERE windowstart = 5;", "column 'WINDOWSTART' cannot be resolved"),
        ("SELECT people, people FROM cities;", "Duplicate value columns found in schema: `PEOPLE` BIGINT"),
        ("SELECT *, rowoffset FROM cities;", "the following columns in SELECT clauses: `ROWOFFSET`"),
        ("SELECT * FROM cities WHERE rowpartition = 1;", "the following columns in WHERE clauses: `ROWPARTITION`"),
        ("SELECT * FROM cities WINDOW TUMBLING (SIZE 1 SECOND);", "Pull queries don't support WINDOW clauses"),
        ("SELECT * FROM cities PARTITION BY people;", "Pull queries don't support PARTITION BY clauses"),
        ("SELECT * FROM cities LIMIT -1;", "negative integers in the LIMIT clause"),
    ],
)
def test_what_cannot_be_asked_is_said(cities: QueryPlace, query: str, message: str) -> None:
    with pytest.raises(SqlStatementError, match=message):
        cities.rows(query)


@pytest.mark.parametrize(
    ("condition", "message"),
    [
        (None, "Missing WHERE clause"),
        ("people = 5", r"WHERE clause missing key column for disjunct: \(PEOPLE = 5\)"),
        ("name <> 'x'", r"Bound on key columns '\[`NAME` STRING KEY\]' must currently be '='"),
        ("name > 'a' AND name < 'b'", "A comparison condition on the key column cannot be combined"),
        ("name = 'a' AND name = 'b'", "A comparison condition on the key column cannot be combined"),
        ("LEN(name) = 5", "A comparison must directly reference a key column"),
        ("name = country", "between a key column and a resolvable expression"),
        ("name IN ('a', country)", "between a key column and a resolvable expression"),
        ("name LIKE 'a%'", "WHERE clause missing key column for disjunct"),
        ("'a' LIKE 'a%'", "Like condition must be between strings"),
        ("name BETWEEN 'a' AND 'b'", "A comparison condition on the key column cannot be combined"),
        ("people = LEN(country)", "between a key column and a resolvable expression"),
        ("name IS NULL", "Unsupported expression in WHERE clause"),
        ("name NOT IN ('a', 'b')", r"Unsupported expression in WHERE clause: \(NOT \(NAME = 'a'\)\)"),
        ("NOT (people = 1 OR name = 'a')", r"Unsupported expression in WHERE clause: \(NOT \(PEOPLE = 1\)\)"),
        (
            "name > 'a' OR name = 'b'",
            r"Query requires table scan to be enabled\. Table scans can be enabled by",
        ),
    ],
)
def test_without_scans_a_key_is_needed(cities: QueryPlace, condition: str | None, message: str) -> None:
    where = "" if condition is None else f" WHERE {condition}"
    with pytest.raises(SqlStatementError, match=message):
        cities.rows(f"SELECT * FROM cities{where};", ksql__query__pull__table__scan__enabled=False)


def test_ranges_of_keys_have_values_of_the_keys_type(place: QueryPlace) -> None:
    place.run(
        """CREATE TABLE written (id INT PRIMARY KEY, v INT) WITH (KAFKA_TOPIC='t', VALUE_FORMAT='JSON', PARTITIONS=1);
        CREATE SOURCE TABLE numbers (id INT PRIMARY KEY, v INT) WITH (KAFKA_TOPIC='t', VALUE_FORMAT='JSON');"""
    )
    query = "SELECT * FROM numbers WHERE id < 1.5;"
    assert place.rows(query) == []
    with pytest.raises(SqlStatementError, match="can not be converted to the type of the key column: ID INTEGER"):
        place.rows(query, ksql__query__pull__extensions__enabled=False)


def test_without_scans_keys_and_one_range_are_still_found(cities: QueryPlace) -> None:
    off = {"ksql__query__pull__table__scan__enabled": False}
    assert names(cities.rows("SELECT * FROM cities WHERE name IN ('Zug', 'Oslo') AND people > 50;", **off)) == ["Oslo"]
    assert names(cities.rows("SELECT * FROM cities WHERE name > 'C';", **off)) == ["Oslo", "Zug"]


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("SELECT country, COUNT(*) FROM cities GROUP BY country;", "Pull queries don't support GROUP BY clauses"),
        ("SELECT COUNT(*) FROM cities;", "Pull queries don't support GROUP BY clauses"),
        ("SELECT * FROM cities c JOIN cities d ON c.name = d.name;", "Pull queries don't support JOIN clauses"),
        ("SELECT * FROM cities ORDER BY name;", "line 1:28: Syntax Error"),
    ],
)
def test_ksqldbs_limits_can_be_asked_for(cities: QueryPlace, query: str, message: str) -> None:
    with pytest.raises(SqlError, match=message):
        cities.rows(query, ksql__query__pull__extensions__enabled=False)


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ("name = 'a'", (KeyRows(("a",)),)),
        ("name IN ('a', 'b', 'a')", (KeyRows(("a",)), KeyRows(("b",)))),
        ("name > 'a' AND name <= 'c' AND people = 1", (RangeRows(("a", "c")),)),
        ("name BETWEEN 'a' AND 'b' OR name = 'x'", (RangeRows(("a", "b")), KeyRows(("x",)))),
        ("name = 'a' OR people = 1", None),
        ("NOT name = 'a'", None),
        ("NOT (people = 1 OR NOT name = 'a')", (KeyRows(("a",)),)),
        ("name = 'a' AND people NOT BETWEEN 1 AND 3", (KeyRows(("a",)),)),
        ("people = 1", None),
    ],
)
def test_keys_and_ranges_are_found_in_conditions(cities: QueryPlace, condition: str, expected: object) -> None:
    engine = cities.engine
    conditions = KeyConditions(engine.catalog.source("CITIES"), engine.functions, {})
    assert conditions.access(parse_expression(condition)) == expected

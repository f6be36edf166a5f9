"""Push queries that look at one record at a time."""

from __future__ import annotations

import threading
from itertools import islice

import pytest

from headrace.sql.errors import SqlError
from headrace.sql.reading.results import ResultRow
from tests.sql.places import QueryPlace

SOURCES = """
CREATE STREAM s (k STRING KEY, v INT) WITH (KAFKA_TOPIC='s', VALUE_FORMAT='JSON', PARTITIONS=1);
CREATE TABLE t (k STRING PRIMARY KEY, v INT) WITH (KAFKA_TOPIC='t', VALUE_FORMAT='JSON', PARTITIONS=1);
INSERT INTO s VALUES ('a', 1);
INSERT INTO s VALUES ('b', 2);
INSERT INTO s VALUES ('c', 3);
"""


@pytest.fixture
def sources(place: QueryPlace) -> QueryPlace:
    place.run(SOURCES)
    return place


def changed(place: QueryPlace, *changes: tuple[str | None, str | None]) -> None:
    """Writes changes of the table: key and JSON."""
    records = [
        (0, number, None if key is None else key.encode(), None if value is None else value.encode(), ())
        for number, (key, value) in enumerate(changes)
    ]
    place.log.append("t", records)


def test_rows_come_from_the_beginning_up_to_a_limit(sources: QueryPlace) -> None:
    with sources.pushed("SELECT rowtime, *, v + 1 FROM s WHERE v <> 2 EMIT CHANGES LIMIT 2;") as query:
        assert str(query.schema) == "`ROWTIME` BIGINT, `K` STRING, `V` INTEGER, `KSQL_COL_0` INTEGER"
        assert query.final_message is None
        assert list(query.rows) == [ResultRow([1, "a", 1, 2]), ResultRow([3, "c", 3, 4])]
        assert query.final_message == "Limit Reached"


def test_by_default_only_what_comes_later_is_seen(sources: QueryPlace) -> None:
    with sources.pushed("SELECT v, rowpartition, rowoffset FROM s EMIT CHANGES;", reset="latest") as query:
        sources.run("INSERT INTO s VALUES ('d', 4);")
        assert next(query.rows).columns == [4, 0, 3]


def test_whoever_closes_it_ends_the_waiting(sources: QueryPlace) -> None:
    with sources.pushed("SELECT * FROM s EMIT CHANGES;") as query:
        assert len(list(islice(query.rows, 3))) == 3
        waiting = threading.Thread(target=lambda: list(query.rows))
        waiting.start()
        query.close()
        waiting.join(60)
        assert not waiting.is_alive()


def test_a_stream_whose_topic_is_deleted_ends(sources: QueryPlace) -> None:
    with sources.pushed("SELECT * FROM s EMIT CHANGES;") as query:
        assert next(query.rows).columns == ["a", 1]
        sources.log.delete_topic("s")
        assert len(list(query.rows)) <= 2
        assert query.final_message == "Query Completed"


def test_records_of_a_stream_without_value_give_nothing_and_without_key_a_row(sources: QueryPlace) -> None:
    sources.log.append("s", [(0, 9, b"d", None, ()), (0, 9, None, b'{"V": 5}', ()), (0, 9, b"e", b"{", ())])
    sources.run("INSERT INTO s VALUES ('f', 6);")
    assert [row.columns for row in sources.changes("SELECT * FROM s WHERE v > 3 EMIT CHANGES;", 2)] == [
        [None, 5],
        ["f", 6],
    ]


def test_deletions_from_a_table_are_tombstones(sources: QueryPlace) -> None:
    changed(sources, ("a", '{"V": 1}'), ("a", None), (None, '{"V": 9}'), ("b", '{"V": null}'))
    rows = sources.changes("SELECT v, k, v * 2 AS d FROM t EMIT CHANGES;", 3)
    assert rows == [ResultRow([1, "a", 2]), ResultRow([None, "a", None], tombstone=True), ResultRow([None, "b", None])]


def test_a_row_that_passes_no_more_is_a_tombstone_and_one_that_never_did_is_not(sources: QueryPlace) -> None:
    changed(sources, ("a", '{"V": 1}'), ("b", '{"V": 5}'), ("b", '{"V": 0}'), ("b", None), ("b", '{"V": 6}'))
    rows = sources.changes("SELECT * FROM t WHERE v > 4 EMIT CHANGES;", 3)
    assert rows == [ResultRow(["b", 5]), ResultRow(["b", None], tombstone=True), ResultRow(["b", 6])]


def test_partition_by_and_table_functions_need_no_topology(sources: QueryPlace) -> None:
    text = "SELECT v, EXPLODE(ARRAY[k, 'x']) AS e FROM s PARTITION BY v EMIT CHANGES LIMIT 3;"
    assert [row.columns for row in sources.changes(text, 3)] == [[1, "a"], [1, "x"], [2, "b"]]
    assert sources.engine.catalog.queries == {}


def test_results_of_a_query_are_followed_as_they_come(sources: QueryPlace) -> None:
    sources.run("CREATE STREAM doubled AS SELECT k, v * 2 AS d FROM s;")
    settings = {"ksql__query__push__v2__enabled": True}
    with sources.pushed("SELECT d FROM doubled EMIT CHANGES;", reset="latest", **settings) as query:
        assert query.id.startswith("SCALABLE_PUSH_QUERY")
        sources.log.append("s", [(0, 9, None, b'{"V": 7}', ())])
        sources.run("INSERT INTO s VALUES ('d', 4);")
        assert next(query.rows).columns == [8]
    with sources.pushed("SELECT d FROM doubled EMIT CHANGES;", reset="earliest", **settings) as query:
        assert query.id.startswith("transient_DOUBLED_")


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("SELECT * FROM nothing EMIT CHANGES;", "NOTHING does not exist"),
        ("SELECT x FROM s EMIT CHANGES;", "SELECT column 'X' cannot be resolved"),
        ("SELECT NULL + 1 FROM s EMIT CHANGES;", "Arithmetic on types null and INTEGER are not supported"),
        ("SELECT * FROM s WHERE v EMIT CHANGES;", "Should evaluate to boolean"),
        ("SELECT * FROM s EMIT CHANGES LIMIT -1;", "negative integers in the LIMIT clause"),
        ("SELECT v FROM s ORDER BY v EMIT CHANGES;", "have no ORDER BY"),
        ("SELECT v, v FROM s EMIT CHANGES;", "Duplicate value columns found in schema: `V` INTEGER"),
        ("SELECT EXPLODE(ARRAY[v]) FROM t EMIT CHANGES;", "Table source is not supported with table functions"),
    ],
)
def test_what_cannot_be_pushed_is_said(sources: QueryPlace, query: str, message: str) -> None:
    with pytest.raises(SqlError, match=message), sources.pushed(query):
        pass

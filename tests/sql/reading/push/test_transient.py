"""Push queries with aggregates and joins: a topology that is there as long as somebody reads."""

from __future__ import annotations

import pytest

from headrace.errors import TopicError
from headrace.sql.errors import SqlError
from headrace.sql.hosting.host import QueryState
from headrace.sql.reading.results import ResultRow
from tests.sql.places import QueryPlace

SOURCES = """
CREATE STREAM s (k STRING KEY, v INT, g STRING) WITH (KAFKA_TOPIC='s', VALUE_FORMAT='JSON', PARTITIONS=2);
CREATE STREAM r (k STRING KEY, w INT) WITH (KAFKA_TOPIC='r', VALUE_FORMAT='JSON', PARTITIONS=2);
CREATE TABLE t (k STRING PRIMARY KEY, n STRING, other STRING)
    WITH (KAFKA_TOPIC='t', VALUE_FORMAT='JSON', PARTITIONS=2);
CREATE TABLE u (k STRING PRIMARY KEY, m STRING) WITH (KAFKA_TOPIC='u', VALUE_FORMAT='JSON', PARTITIONS=2);
"""


@pytest.fixture
def sources(place: QueryPlace) -> QueryPlace:
    place.run(SOURCES)
    return place


def columns(rows: list[ResultRow]) -> list[list[object]]:
    return [row.columns for row in rows]


def test_groups_are_counted_and_nothing_is_left_behind(sources: QueryPlace) -> None:
    before = sources.log.topics()
    sources.run("INSERT INTO s VALUES ('a', 1, 'x'); INSERT INTO s VALUES ('b', 2, 'x');")
    with sources.pushed("SELECT COUNT(*) AS n, g AS name, g FROM s GROUP BY g EMIT CHANGES LIMIT 2;") as query:
        assert str(query.schema) == "`N` BIGINT, `NAME` STRING, `G` STRING"
        assert sources.host.status(query.id).state in (QueryState.STARTING, QueryState.RUNNING)
        assert columns(list(query.rows)) == [[1, "x", "x"], [2, "x", "x"]]
        assert query.final_message == "Limit Reached"
        assert sources.host.status(query.id).state is QueryState.UNKNOWN
    assert sources.log.topics() == before


def test_what_cannot_be_deleted_stays_noted_for_the_next_start(
    sources: QueryPlace, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = sources.log.topics()
    delete = sources.log.delete_topic

    def refuse(topic: str) -> None:
        if topic.endswith("-changelog"):
            message = f"not authorized to delete '{topic}'"
            raise TopicError(message)
        delete(topic)

    orphaned_queries = sources.context().orphaned_queries
    sources.run("INSERT INTO s VALUES ('a', 1, 'x');")
    with monkeypatch.context() as patched, sources.pushed("SELECT COUNT(*) FROM s GROUP BY g EMIT CHANGES;") as query:
        next(query.rows)
        patched.setattr(sources.log, "delete_topic", refuse)
        query.close()
        assert list(orphaned_queries.noted()) == [query.id]
    assert sources.log.topics() != before
    orphaned_queries.clean_up(sources.host, sources.log)
    assert orphaned_queries.noted() == {}
    assert sources.log.topics() == before


def test_a_key_needs_not_be_selected_and_a_query_without_groups_has_one(sources: QueryPlace) -> None:
    sources.run("INSERT INTO s VALUES ('a', 1, 'x'); INSERT INTO s VALUES ('a', 2, 'y');")
    assert columns(sources.changes("SELECT COUNT(*) FROM s GROUP BY v * 0 EMIT CHANGES;", 2)) == [[1], [2]]
    assert columns(sources.changes("SELECT SUM(v) AS total FROM s EMIT CHANGES;", 2)) == [[1], [3]]
    assert columns(sources.changes("SELECT k FROM s GROUP BY k HAVING COUNT(*) > 1 EMIT CHANGES;", 1)) == [["a"]]


def test_by_default_only_what_comes_later_is_counted(sources: QueryPlace) -> None:
    sources.run("INSERT INTO s VALUES ('a', 1, 'x');")
    with sources.pushed("SELECT COUNT(*) AS n FROM s GROUP BY g EMIT CHANGES;", reset="latest") as query:
        sources.run("INSERT INTO s VALUES ('a', 1, 'x');")
        assert next(query.rows).columns == [1]


def test_groups_of_several_columns(sources: QueryPlace) -> None:
    sources.run("INSERT INTO s VALUES ('a', 1, 'x'); INSERT INTO s VALUES ('a', 1, 'x');")
    rows = sources.changes("SELECT g, v, COUNT(*) AS n FROM s GROUP BY v, g EMIT CHANGES;", 2)
    assert columns(rows) == [["x", 1, 1], ["x", 1, 2]]


def test_a_group_that_passes_no_more_is_a_tombstone(sources: QueryPlace) -> None:
    for value in (5, -9, 10):
        sources.run(f"INSERT INTO s VALUES ('a', {value}, 'x');")
    text = "SELECT SUM(v) AS total, g, windowstart FROM s WINDOW TUMBLING (SIZE 1 DAY) GROUP BY g HAVING SUM(v) > 0"
    assert sources.changes(f"{text} EMIT CHANGES;", 3) == [
        ResultRow([5, "x", 0]),
        ResultRow([None, "x", 0], tombstone=True),
        ResultRow([6, "x", 0]),
    ]


def test_sessions_that_grow_take_back_what_they_were(sources: QueryPlace) -> None:
    for time_ms in (100, 600):
        sources.run(f"INSERT INTO s (ROWTIME, k, v) VALUES ({time_ms}, 'a', 1);")
    text = "SELECT k, windowend, COUNT(*) AS n FROM s WINDOW SESSION (1 SECOND) GROUP BY k EMIT CHANGES;"
    assert sources.changes(text, 3) == [
        ResultRow(["a", 100, 1]),
        ResultRow(["a", 100, None], tombstone=True),
        ResultRow(["a", 600, 2]),
    ]


def test_only_final_results_of_windows(sources: QueryPlace) -> None:
    for time_ms in (100, 200, 1100):
        sources.run(f"INSERT INTO s (ROWTIME, k, v) VALUES ({time_ms}, 'a', 1);")
    text = "SELECT k, COUNT(*) AS n FROM s WINDOW TUMBLING (SIZE 1 SECOND) GROUP BY k EMIT FINAL LIMIT 1;"
    assert columns(sources.changes(text, 1, emit__interval__ms=0)) == [["a", 2]]


def test_streams_are_joined(sources: QueryPlace) -> None:
    sources.run("INSERT INTO s VALUES ('a', 1, 'x'); INSERT INTO r VALUES ('a', 10); INSERT INTO r VALUES ('b', 20);")
    text = "SELECT *, s.rowtime FROM s JOIN r WITHIN 1 MINUTE ON s.k = r.k EMIT CHANGES LIMIT 1;"
    with sources.pushed(text) as query:
        assert [column.name for column in query.schema] == ["S_K", "S_V", "S_G", "R_K", "R_W", "S_ROWTIME"]
        assert columns(list(query.rows)) == [["a", 1, "x", "a", 10, 1]]
    outer = "SELECT w, ROWKEY FROM s FULL OUTER JOIN r WITHIN 1 MINUTE ON s.k = r.k EMIT CHANGES;"
    assert columns(sources.changes(outer, 3)) == [[None, "a"], [10, "a"], [20, "b"]]


def test_rows_that_repeat_others_are_left_out(sources: QueryPlace) -> None:
    sources.run("".join(f"INSERT INTO s VALUES ('a', {v}, '{g}');" for v, g in ((1, "x"), (2, "x"), (3, "y"))))
    text = "SELECT DISTINCT ON (g) WITHIN 1 MINUTE v, k FROM s EMIT CHANGES;"
    assert columns(sources.changes(text, 2)) == [[1, "a"], [3, "a"]]
    with pytest.raises(SqlError, match=r"Pull queries don't support DISTINCT ON.*Add EMIT CHANGES"):
        sources.rows(text.replace(" EMIT CHANGES", ""))


def test_a_stream_is_joined_with_a_table_and_grouped(sources: QueryPlace) -> None:
    sources.run("INSERT INTO t VALUES ('a', 'Ann', 'z');")
    with sources.pushed("SELECT n, COUNT(*) AS c FROM s JOIN t ON s.k = t.k GROUP BY n EMIT CHANGES LIMIT 2;") as query:
        sources.run("INSERT INTO s VALUES ('a', 1, 'x'); INSERT INTO s VALUES ('a', 1, 'x');")
        assert columns(list(query.rows)) == [["Ann", 1], ["Ann", 2]]


def test_tables_are_joined_by_their_keys_and_by_others(sources: QueryPlace) -> None:
    sources.run("INSERT INTO u VALUES ('z', 'Zoe'); INSERT INTO t VALUES ('a', 'Ann', 'z');")
    by_other = "SELECT n, m FROM t JOIN u ON t.other = u.k EMIT CHANGES LIMIT 1;"
    assert columns(sources.changes(by_other, 1)) == [["Ann", "Zoe"]]
    by_key = "SELECT n, m, t.k FROM t LEFT JOIN u ON t.k = u.k EMIT CHANGES LIMIT 1;"
    assert columns(sources.changes(by_key, 1)) == [["Ann", None, "a"]]


def test_values_of_all_types_arrive_as_they_are(sources: QueryPlace) -> None:
    sources.run("INSERT INTO s VALUES ('a', 1, 'x');")
    text = (
        "SELECT COLLECT_LIST(v) AS l, MAP('a' := CAST(SUM(v) AS DECIMAL(4, 2))) AS m, "
        "STRUCT(b := TO_BYTES(g, 'utf8')) AS s, CAST(NULL AS DOUBLE) AS d FROM s GROUP BY g EMIT CHANGES LIMIT 1;"
    )
    [row] = sources.changes(text, 1)
    assert str(row.columns) == "[[1], {'a': Decimal('1.00')}, {'B': b'x'}, None]"


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("SELECT v, COUNT(*) FROM s GROUP BY g EMIT CHANGES;", "not part of GROUP BY: V"),
        ("SELECT * FROM s JOIN r ON s.k = r.k EMIT CHANGES;", "must have a WITHIN clause"),
        ("SELECT v FROM s HAVING v > 1 EMIT CHANGES;", "HAVING requires a GROUP BY"),
        ("SELECT g FROM s WINDOW TUMBLING (SIZE 1 DAY) EMIT CHANGES;", "WINDOW clause requires a GROUP BY"),
        (
            "SELECT COUNT(*) FROM s WINDOW TUMBLING (SIZE 1 DAY) GROUP BY g HAVING MIN(windowstart) > 1 EMIT CHANGES;",
            "can only be used in the SELECT clause",
        ),
        (
            "SELECT COUNT(*) FROM s WINDOW TUMBLING (SIZE 1 DAY) GROUP BY g, windowend EMIT CHANGES;",
            "WINDOWEND can only be used in the SELECT clause",
        ),
        ("SELECT nope, COUNT(*) FROM s GROUP BY nope EMIT CHANGES;", "GROUP BY column 'NOPE' cannot be resolved"),
    ],
)
def test_a_query_that_cannot_be_leaves_nothing_behind(sources: QueryPlace, query: str, message: str) -> None:
    before = sources.log.topics()
    with pytest.raises(SqlError, match=message), sources.pushed(query):
        pass
    assert sources.log.topics() == before

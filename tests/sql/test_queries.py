"""Persistent queries as the engine knows them: their ids, their sinks, and what holds on to what."""

from __future__ import annotations

import pickle

import pytest

from headrace.sql.catalog.persistent_query import PersistentQuery
from headrace.sql.catalog.topic_directory import KnownTopics
from headrace.sql.errors import SqlStatementError
from headrace.sql.sql_engine import SqlEngine
from headrace.testing import TopologyTestDriver

SOURCE = "CREATE STREAM s (k INT KEY, v STRING) WITH (KAFKA_TOPIC='t', VALUE_FORMAT='JSON', PARTITIONS=1);"


@pytest.fixture
def engine() -> SqlEngine:
    made = SqlEngine()
    made.execute(SOURCE)
    return made


def started(engine: SqlEngine, statement: str) -> PersistentQuery:
    [done] = engine.execute(statement)
    assert done.query is not None
    return done.query


def test_queries_are_numbered_and_named_after_their_sink(engine: SqlEngine) -> None:
    ids = [
        started(engine, "CREATE STREAM a AS SELECT * FROM s;").id,
        started(engine, "CREATE TABLE b AS SELECT k, COUNT(*) AS n FROM s GROUP BY k;").id,
        started(engine, "INSERT INTO a SELECT * FROM s;").id,
        started(engine, "INSERT INTO a WITH (QUERY_ID='mine') SELECT * FROM s;").id,
    ]
    assert ids == ["CSAS_A_0", "CTAS_B_1", "INSERTQUERY_2", "MINE"]
    with pytest.raises(SqlStatementError, match="'MINE' already exists"):
        engine.execute("INSERT INTO a WITH (QUERY_ID='mine') SELECT * FROM s;")


def test_a_sink_has_the_columns_of_its_query_and_the_formats_of_its_source(engine: SqlEngine) -> None:
    query = started(engine, "CREATE TABLE n AS SELECT k, COUNT(*) AS n FROM s GROUP BY k;")
    sink = engine.catalog.source("N")
    assert (sink.kind, sink.topic, sink.value_format, sink.created_by) == ("TABLE", "N", "JSON", query.id)
    assert str(sink.schema) == "`K` INTEGER KEY, `N` BIGINT"
    assert (query.sources, query.source_topics, query.sink_topic) == (("S",), ("t",), "N")


def test_the_name_of_a_sink_topic_can_be_given_or_prefixed(engine: SqlEngine) -> None:
    assert started(engine, "CREATE STREAM a WITH (KAFKA_TOPIC='x') AS SELECT * FROM s;").sink_topic == "x"
    engine.execute("SET 'ksql.output.topic.name.prefix' = 'pre-';")
    assert started(engine, "CREATE STREAM b AS SELECT * FROM s;").sink_topic == "pre-B"


def test_a_query_runs_and_pickles(engine: SqlEngine) -> None:
    query = started(engine, "CREATE STREAM a AS SELECT k, UCASE(v) AS u FROM s WHERE v <> 'no';")
    topology = pickle.loads(pickle.dumps(query.topology))
    with TopologyTestDriver(topology) as driver:
        for value in (b'{"V": "x"}', b'{"V": "no"}'):
            driver.pipe_raw("t", (7).to_bytes(4), value, timestamp_ms=5)
        assert [(key, value) for _, _, key, value, _ in driver.take_outputs("A", 9)] == [
            ((7).to_bytes(4), b'{"U":"X"}'),
        ]


def test_the_statement_must_say_what_its_query_makes(engine: SqlEngine) -> None:
    with pytest.raises(SqlStatementError, match=r"produces a TABLE\. Please use CREATE TABLE AS SELECT"):
        engine.execute("CREATE STREAM a AS SELECT k, COUNT(*) AS n FROM s GROUP BY k;")
    with pytest.raises(SqlStatementError, match=r"produces a STREAM\. Please use CREATE STREAM AS SELECT"):
        engine.execute("CREATE TABLE a AS SELECT * FROM s;")
    assert engine.catalog.find("A") is None


def test_errors_of_a_query_show_the_statement_in_full(engine: SqlEngine) -> None:
    with pytest.raises(SqlStatementError) as caught:
        engine.execute("CREATE STREAM a AS SELECT k, nonsense(v) FROM s x;")
    assert caught.value.statement == (
        "CREATE STREAM A AS SELECT\n  X.K K,\n  NONSENSE(X.V) KSQL_COL_1\nFROM S X\nEMIT CHANGES"
    )


def test_a_window_that_cannot_be_is_an_error_of_the_statement(engine: SqlEngine) -> None:
    window = "HOPPING (SIZE 1 SECOND, ADVANCE BY 2 SECONDS)"
    with pytest.raises(SqlStatementError, match=r"(?i)advance") as caught:
        engine.execute(f"CREATE TABLE a AS SELECT k, COUNT(*) AS n FROM s WINDOW {window} GROUP BY k;")
    assert caught.value.statement is not None
    assert engine.catalog.find("A") is None


def test_what_a_query_uses_cannot_be_dropped(engine: SqlEngine) -> None:
    started(engine, "CREATE STREAM a AS SELECT * FROM s;")
    with pytest.raises(SqlStatementError, match=r"streams and/or tables read from this source: \[A\].\n.*drop them"):
        engine.execute("DROP STREAM s;")
    other = started(engine, "INSERT INTO a SELECT * FROM s;")
    with pytest.raises(SqlStatementError, match=rf"write into this source: \[{other.id}\]"):
        engine.execute("DROP STREAM a;")
    with pytest.raises(SqlStatementError, match=rf"queries read from this source: \[{other.id}\]"):
        engine.execute("DROP STREAM s;")
    engine.execute(f"TERMINATE {other.id}; DROP STREAM a; DROP STREAM s;")
    assert (dict(engine.catalog.sources), dict(engine.catalog.queries)) == ({}, {})


def test_a_terminated_query_is_gone_and_its_sink_stays(engine: SqlEngine) -> None:
    started(engine, "CREATE STREAM a AS SELECT * FROM s;")
    engine.execute("TERMINATE ALL;")
    assert (list(engine.catalog.queries), engine.catalog.source("A").created_by) == ([], None)
    assert engine.catalog.source("A").is_derived
    with pytest.raises(SqlStatementError, match="ALTER command is not supported for CREATE"):
        engine.execute("ALTER STREAM a ADD COLUMN b INT;")
    with pytest.raises(SqlStatementError, match="Unknown queryId: NONE_0"):
        engine.execute("TERMINATE none_0;")


def test_inserting_needs_a_stream_that_can_be_written(engine: SqlEngine) -> None:
    started(engine, "CREATE TABLE n AS SELECT k, COUNT(*) AS n FROM s GROUP BY k;")
    for statement, message in (
        ("INSERT INTO n SELECT * FROM s;", "can only be used to insert into a stream. N is a table"),
        ("INSERT INTO z SELECT * FROM s;", "Line: 1, Col: 13: Z does not exist."),
    ):
        with pytest.raises(SqlStatementError, match=message):
            engine.execute(statement)


def test_replacing_a_query_keeps_its_id(engine: SqlEngine) -> None:
    first = started(engine, "CREATE STREAM a AS SELECT * FROM s;")
    second = started(engine, "CREATE OR REPLACE STREAM a AS SELECT * FROM s WHERE k > 1;")
    assert (first.id, list(engine.catalog.queries)) == (second.id, [first.id])


def test_variables_and_settings_belong_to_the_engine(engine: SqlEngine) -> None:
    engine.execute("DEFINE name = 'a'; CREATE STREAM ${name} AS SELECT * FROM s WHERE v = '${NAME}';")
    assert engine.catalog.find("A") is not None
    engine.execute("UNDEFINE name; SET 'x' = 'y'; UNSET 'x';")
    assert (engine.variables, engine.settings) == ({}, {})
    with pytest.raises(ValueError, match="'name' is not a defined variable"):
        engine.execute("SHOW ${name};")


def test_a_statement_that_fails_leaves_no_topic_behind() -> None:
    topics = KnownTopics({"t": 1})
    engine = SqlEngine(topics=topics)
    engine.execute(SOURCE)
    for statement in (
        "CREATE STREAM s AS SELECT * FROM s;",
        "CREATE TABLE a AS SELECT * FROM s;",
        "CREATE STREAM a AS SELECT k, z FROM s;",
    ):
        with pytest.raises(SqlStatementError):
            engine.execute(statement)
    assert topics.topics == {"t": 1}

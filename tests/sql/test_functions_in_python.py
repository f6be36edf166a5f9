"""CREATE FUNCTION: a Python function as an SQL function."""

from __future__ import annotations

import pytest

from headrace.sql.errors import SqlStatementError
from headrace.sql.sql_engine import SqlEngine

SOURCE = "CREATE STREAM s (k INT KEY, v STRING) WITH (KAFKA_TOPIC='t', VALUE_FORMAT='JSON');"


def test_a_python_function_can_be_called_after_it_was_created() -> None:
    engine = SqlEngine()
    engine.execute(SOURCE)
    engine.execute("CREATE FUNCTION quoted AS 'headrace.sql.types:quoted';")
    [done] = engine.execute("CREATE STREAM a AS SELECT k, QUOTED(v) AS q FROM s;")
    assert done.query is not None
    assert str(engine.catalog.source("A").schema) == "`K` INTEGER KEY, `Q` STRING"


def test_functions_are_replaced_only_if_asked_to_and_those_of_the_language_never() -> None:
    engine = SqlEngine()
    engine.execute("CREATE FUNCTION q AS 'headrace.sql.types:quoted';")
    engine.execute("CREATE FUNCTION IF NOT EXISTS q AS 'headrace.sql.types:quoted';")
    engine.execute("CREATE OR REPLACE FUNCTION q AS 'headrace.sql.types:quoted';")
    with pytest.raises(SqlStatementError, match="say CREATE OR REPLACE FUNCTION"):
        engine.execute("CREATE FUNCTION q AS 'headrace.sql.types:quoted';")
    with pytest.raises(SqlStatementError, match="use another name"):
        engine.execute("CREATE OR REPLACE FUNCTION abs AS 'headrace.sql.types:quoted';")


def test_functions_can_be_dropped_unless_they_are_part_of_the_language() -> None:
    engine = SqlEngine()
    engine.execute("CREATE FUNCTION q AS 'headrace.sql.types:quoted'; DROP FUNCTION q; DROP FUNCTION IF EXISTS q;")
    with pytest.raises(SqlStatementError, match="Function Q does not exist"):
        engine.execute("DROP FUNCTION q;")
    with pytest.raises(SqlStatementError, match="part of the language"):
        engine.execute("DROP FUNCTION abs;")


def test_a_target_that_cannot_be_loaded_is_an_error_of_the_statement() -> None:
    with pytest.raises(SqlStatementError, match="no_such_module"):
        SqlEngine().execute("CREATE FUNCTION q AS 'no_such_module:f';")

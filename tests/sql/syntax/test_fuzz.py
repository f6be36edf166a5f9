"""Whatever is written, it is a statement or an error with its place, and it does not take long to say which."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from headrace.sql.driver import SqlTestDriver
from headrace.sql.errors import SqlError, SqlParseError
from headrace.sql.sql_engine import SqlEngine
from headrace.sql.syntax.parser import parse, parse_expression, parse_type, split
from headrace.sql.syntax.variables import substitute

VALID = (
    "CREATE STREAM s (k STRING KEY, v ARRAY<STRUCT<a INT, b DECIMAL(4,2)>>) WITH (KAFKA_TOPIC='s', FORMAT='JSON');",
    "CREATE TABLE t AS SELECT k, COUNT(*) AS n FROM s WINDOW HOPPING (SIZE 1 MINUTE, ADVANCE BY 10 SECONDS) "
    "WHERE v > 1.5e3 AND x LIKE 'a%' ESCAPE '!' GROUP BY k HAVING COUNT(*) > 1 EMIT FINAL;",
    "INSERT INTO s (k, v) VALUES ('a', ARRAY[STRUCT(a := 1)]);",
    "SELECT a->b, TRANSFORM(x, (y) => y + 1), CASE WHEN a THEN 1 ELSE 2 END, m['k'] FROM a "
    "LEFT JOIN b WITHIN 1 DAYS ON a.x = b.x EMIT CHANGES LIMIT 3;",
    "DEFINE x = 'y'; SET 'a'='b'; DESCRIBE s EXTENDED; EXPLAIN SELECT * FROM s;",
    "ASSERT TOPIC t WITH (PARTITIONS=2) TIMEOUT 3 SECONDS; PRINT 'topic' FROM BEGINNING INTERVAL 2 LIMIT 3;",
    "DROP STREAM IF EXISTS s DELETE TOPIC; ALTER STREAM s ADD COLUMN c INT; CREATE TYPE t AS STRUCT<a INT>;",
)
WORDS = sorted({word for text in VALID for word in re.findall(r"\w+|'[^']*'|\S", text)})
ODD = (
    "'",
    "`",
    '"',
    "${x}",
    "\\",
    "²",
    "١",
    "\x00",
    "😀",
    "1e999",
    "9" * 5000,
    "--",
    "/*",
    "1.",
    "1e",
    "x'41'",
    "\u2028",
)

pieces = st.sampled_from(WORDS) | st.sampled_from(ODD) | st.text(max_size=5)
loose = st.lists(pieces, max_size=25).map(" ".join)
QUICK = settings(max_examples=200, deadline=5000, derandomize=True, suppress_health_check=list(HealthCheck))


@st.composite
def damaged(draw: st.DrawFn) -> str:
    """A valid text with some of it cut out or replaced."""
    parts = re.findall(r"\w+|'[^']*'|\s+|\S", draw(st.sampled_from(VALID)))
    for _ in range(draw(st.integers(1, 4))):
        place = draw(st.integers(0, len(parts)))
        parts[place : place + draw(st.integers(0, 2))] = draw(st.lists(pieces, max_size=2))
    return "".join(parts)


def refusal(read: Callable[[str], object], text: str) -> SqlError | None:
    """Returns the error with which a text is refused; any other kind of error goes through."""
    try:
        read(text)
    except SqlError as error:
        return error
    return None


@QUICK
@given(damaged() | loose)
def test_every_text_is_parsed_or_refused_with_a_place(text: str) -> None:
    for read in (parse, parse_expression, parse_type, split, lambda given: substitute(given, {"X": "1"})):
        error = refusal(read, text)
        assert not isinstance(error, SqlParseError) or (error.position is not None and error.position.line >= 1)


@QUICK
@given(damaged())
def test_every_statement_is_carried_out_or_refused(text: str) -> None:
    engine = SqlEngine()
    engine.execute("CREATE STREAM a (x STRING KEY, m MAP<STRING, INT>) WITH (KAFKA_TOPIC='a', FORMAT='JSON');")
    error = refusal(engine.execute, text)
    assert error is None or str(error)


@pytest.mark.parametrize("text", ["1ELSE", "1e", "1.E", "1e1.", "9" * 5000, "-" + "9" * 5000, "1" * 5000 + "e1"])
def test_numbers_that_are_none_have_a_place(text: str) -> None:
    with pytest.raises(SqlParseError) as caught:
        parse(f"SELECT {text} FROM s;")
    assert caught.value.position is not None


@pytest.mark.parametrize(
    "expression",
    [
        "(" * 3000 + "v" + ")" * 3000,
        "NOT " * 3000 + "TRUE",
        "ABS(" * 1000 + "v" + ")" * 1000,
        "CASE WHEN " * 1000,
        "v" + " + v" * 150,
        "v" + " + v" * 5000,
        " OR ".join(["v = 1"] * 3000),
        " || ".join(["k"] * 250),
        "NOT " * 250 + "TRUE",
    ],
    ids=lambda text: f"{text[:8]}-{len(text)}",
)
def test_deep_nesting_is_refused_before_anything_runs(expression: str) -> None:
    driver = SqlTestDriver("CREATE STREAM s (k STRING KEY, v INT) WITH (KAFKA_TOPIC='s', FORMAT='JSON');")
    with pytest.raises(SqlError, match="nested too deeply"):
        driver.execute(f"CREATE STREAM t AS SELECT k, {expression} AS x FROM s;")
    assert driver.engine.catalog.find("T") is None


def test_chains_of_moderate_length_work() -> None:
    driver = SqlTestDriver("CREATE STREAM s (k STRING KEY, v INT) WITH (KAFKA_TOPIC='s', FORMAT='JSON');")
    driver.execute(f"CREATE STREAM t AS SELECT k, {'v' + ' + v' * 49} AS x FROM s;")
    driver.insert("s", {"k": "a", "v": 2})
    assert driver.rows("t")[0].columns["X"] == 100

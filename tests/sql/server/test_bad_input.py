"""Bad input to a server: nonsense, injection, and functions that misbehave."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from headrace.sql.driver import SqlTestDriver
from headrace.sql.functions import BUILTIN_FUNCTIONS
from headrace.sql.functions.python import sql_function, udf
from tests.sql.server.kit import Client, SqlPlace

STREAM = "CREATE STREAM s (k STRING KEY, v STRING) WITH (KAFKA_TOPIC='s', VALUE_FORMAT='JSON', PARTITIONS=1);"
QUICK = settings(max_examples=60, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))


@QUICK
@given(st.text(alphabet=st.characters(min_codepoint=33, max_codepoint=0x2FF, exclude_characters="#?\x7f"), max_size=20))
def test_every_path_is_answered(client: Client, path: str) -> None:
    for start in ("/", "/status/", "/is_valid_property/"):
        assert client.http.get(f"{start}{path}").status_code < 500


HOSTILE = (
    "a'b",
    'a"b',
    "a\\",
    "a\\'); raise SystemExit #",
    "__import__('os').system('exit 1')",
    "row[0]",
    "{0.__class__}",
    "a\nimport os",
    "%s%n",
    "../../etc",
    "é😀",
)


@pytest.mark.parametrize("name", HOSTILE)
def test_names_are_names_whatever_they_contain(name: str) -> None:
    quoted, text = f"`{name}`", "'" + name.replace("'", "''") + "'"
    driver = SqlTestDriver(f"CREATE STREAM s (k STRING KEY, {quoted} STRING) WITH (KAFKA_TOPIC='s', FORMAT='JSON');")
    driver.execute(
        f"CREATE STREAM t AS SELECT k, TRIM({quoted}) AS {quoted}, {text} AS x FROM s WHERE {quoted} = {text};"
    )
    driver.insert("s", {"k": "a", quoted: name})
    driver.insert("s", {"k": "a", quoted: "another"})
    assert [dict(row.columns) for row in driver.rows("t")] == [{"K": "a", name: name, "X": name}]


@pytest.mark.parametrize("topic", ["../up", "a/b", "..", ".", "a\x00b", "", "a" * 300, "a b"])
def test_topics_stay_in_the_log(client: Client, place: SqlPlace, topic: str) -> None:
    status, body = client.error(
        f"CREATE STREAM x (v STRING) WITH (KAFKA_TOPIC='{topic}', FORMAT='JSON', PARTITIONS=1);"
    )
    assert (status, body["error_code"] // 100) == (400, 400), body
    assert client.ksql("SHOW STREAMS;")[0]["streams"] == []


def test_a_variable_does_not_bring_a_second_statement(client: Client) -> None:
    client.ksql(STREAM)
    client.error("DESCRIBE ${name};", sessionVariables={"name": "s; DROP STREAM s"})
    assert len(client.ksql("SHOW STREAMS;")[0]["streams"]) == 1


def test_a_function_that_raises_gives_null_and_the_query_goes_on(caplog: pytest.LogCaptureFixture) -> None:
    @udf
    def picky(text: str) -> str:
        if text == "bad":
            message = "not this one"
            raise RuntimeError(message)
        return text

    driver = SqlTestDriver(STREAM, functions=BUILTIN_FUNCTIONS.with_functions(sql_function(picky)))
    driver.execute("CREATE STREAM t AS SELECT k, PICKY(v) AS v FROM s;")
    for value in ("good", "bad", "better"):
        driver.insert("s", {"k": "a", "v": value})
    assert [row.columns["V"] for row in driver.rows("t")] == ["good", None, "better"]
    assert "not this one" in caplog.text


@pytest.mark.parametrize(
    ("call", "said"),
    [
        ("LPAD('a', 2000000000, 'x')", "LPAD may return 10,000,000 characters"),
        ("RPAD('a', 2000000000, 'x')", "RPAD may return 10,000,000 characters"),
        ("GENERATE_SERIES(1, 2000000000)", "GENERATE_SERIES may return 1,000,000 items"),
    ],
)
def test_results_that_would_take_all_memory_are_refused(client: Client, call: str, said: str) -> None:
    kind = "ARRAY<INT>" if call.startswith("GENERATE") else "STRING"
    client.ksql(STREAM.replace("v STRING", f"v {kind}"))
    _, body = client.error(f"INSERT INTO s VALUES ('a', {call});")
    assert said in body["message"]


def test_results_up_to_the_limit_are_made() -> None:
    driver = SqlTestDriver("CREATE STREAM n (k STRING KEY, n INT) WITH (KAFKA_TOPIC='n', FORMAT='JSON');")
    driver.execute(
        "CREATE STREAM t AS SELECT k, LEN(LPAD('', n, 'ab')) AS l, ARRAY_LENGTH(GENERATE_SERIES(n, 1, -1)) AS a FROM n;"
    )
    driver.insert("n", {"k": "a", "n": 1_000_000})
    driver.insert("n", {"k": "a", "n": 10_000_001})
    found: list[dict[str, Any]] = [dict(row.columns) for row in driver.rows("t")]
    assert found == [{"K": "a", "L": 1_000_000, "A": 1_000_000}, {"K": "a", "L": None, "A": None}]

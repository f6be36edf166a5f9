"""``headrace sql`` without a server: what a script has made is there the next time."""

from __future__ import annotations

from pathlib import Path

import pytest

from headrace.cli.sql.completer import Names, SqlCompleter
from tests.cli.conftest import Command


def test_statements_of_a_file_and_of_the_command_line(headrace: Command, tmp_path: Path) -> None:
    file = tmp_path / "words.sql"
    file.write_text(
        "CREATE STREAM lines (id INT KEY, text STRING) WITH (KAFKA_TOPIC='lines', PARTITIONS=1, VALUE_FORMAT='JSON');\n"
        "CREATE STREAM words AS SELECT id, EXPLODE(SPLIT(text, ' ')) AS word FROM lines;\n"
        "CREATE TABLE counts AS SELECT word, COUNT(*) AS n FROM words GROUP BY word;\n"
        "INSERT INTO lines VALUES (1, '${text}');\n",
        encoding="utf-8",
    )
    done = headrace("sql", "-f", file, "-d", "text=to be or not to be")
    assert done.out.splitlines() == [
        "Stream created",
        "Created query with ID CSAS_WORDS_0",
        "Created query with ID CTAS_COUNTS_1",
    ]
    spool = tmp_path / "spool.txt"
    again = headrace("sql", "-e", "SELECT * FROM counts WHERE n = 2 ORDER BY word;", "--spool", spool)
    assert again.lines == ["WORD   N", "be     2", "to     2"]
    assert spool.read_text(encoding="utf-8").splitlines() == again.lines
    piped = headrace("sql", "--output", "json", stdin="SELECT n FROM counts WHERE word = 'or';")
    assert piped.rows[1] == {"row": {"columns": [1]}}
    both = headrace("sql", "-e", "DEFINE w = 'not';", "-f", "-", stdin="SELECT n FROM counts WHERE word = '${w}';")
    assert both.lines == ["N", "1"]
    failed = headrace("sql", "-e", "SELEC 1;", code=1)
    assert "Did you mean 'SELECT'?" in failed.err


def test_wrong_usage_is_told(headrace: Command) -> None:
    assert "neither a command nor the address" in headrace("sql", "sever", code=2).err
    assert "does not answer" in headrace("sql", "http://localhost:9", "-e", "SHOW STREAMS;", code=1).err
    assert "NAME=VALUE" in headrace("sql", "http://localhost:9", "-e", "x", "-d", "x", code=2).err
    assert "[SERVER | COMMAND [ARGS]...]" in headrace("sql", "--help").out


@pytest.mark.parametrize(
    ("typed", "before", "offered"),
    [
        ("sel", [], ["select"]),
        ("SEL", [], ["SELECT"]),
        ("", ["PRINT"], ["clicks"]),
        ("C", ["SELECT", "*", "FROM"], ["CLICKS"]),
        ("", ["TERMINATE"], ["CTAS_X_0", "ALL"]),
        ("UC", ["SELECT"], ["UCASE"]),
        ("WH", ["SELECT"], ["WHO", "WHEN", "WHERE"]),
    ],
)
def test_completion_knows_what_comes_where(typed: str, before: list[str], offered: list[str]) -> None:
    names = Names()
    names.sources, names.topics = frozenset({"CLICKS"}), frozenset({"clicks"})
    names.queries, names.functions = frozenset({"CTAS_X_0"}), frozenset({"UCASE"})
    names.columns = frozenset({"WHO"})
    found = list(SqlCompleter(names).offers(typed, before))
    assert found[: len(offered)] == offered

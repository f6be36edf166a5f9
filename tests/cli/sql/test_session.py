"""Statements on a server: tables of results, settings and variables of the session, scripts, queries that end."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from headrace.cli.sql.builtin import SessionEnds, builtin
from headrace.cli.sql.client import Answer, Piece, SqlClient, SqlRequestError
from headrace.cli.sql.embedded import ServerConnection
from headrace.sql.errors import SqlParseError
from tests.cli.sql.kit import Typed


@pytest.fixture(scope="module", autouse=True)
def sources(server: ServerConnection) -> None:
    client = SqlClient(server.address, token=server.token)
    client.execute(
        "CREATE STREAM clicks (who STRING KEY, page STRING, cents DECIMAL(6, 2)) "
        "WITH (KAFKA_TOPIC='clicks', PARTITIONS=1, VALUE_FORMAT='JSON');"
        "CREATE TABLE counts AS SELECT who, COUNT(*) AS n, SUM(cents) AS total FROM clicks GROUP BY who;"
        "INSERT INTO clicks VALUES ('ada', '/', 1.50);"
        "INSERT INTO clicks VALUES ('eve', '/', 0.25);"
        "INSERT INTO clicks VALUES ('ada', '/help', 1.00);"
    )


def test_a_pull_query_is_a_table_that_sees_what_was_inserted(typed: Typed) -> None:
    assert typed("SELECT * FROM counts WHERE who = 'ada';") == ["WHO   N   TOTAL", "ada   2    2.50"]


def test_a_query_without_rows_has_its_headings(typed: Typed) -> None:
    assert typed("SELECT * FROM counts WHERE who = 'nobody';") == ["WHO   N   TOTAL"]


def test_a_push_query_prints_rows_until_its_limit(typed: Typed) -> None:
    assert typed("SELECT who, page FROM clicks EMIT CHANGES LIMIT 3;") == [
        "WHO   PAGE",
        "ada   /",
        "eve   /",
        "ada   /help",
    ]


def test_json_is_a_line_for_each_part_of_an_answer(typed: Typed) -> None:
    typed.session.screen.as_json = True
    header, row, *_ = map(json.loads, typed("SELECT * FROM counts WHERE who = 'eve';"))
    assert header["header"]["schema"] == "`WHO` STRING KEY, `N` BIGINT, `TOTAL` DECIMAL(6, 2)"
    assert row == {"row": {"columns": ["eve", 1, 0.25]}}


def test_lists_and_descriptions_are_tables(typed: Typed) -> None:
    assert "CLICKS   clicks   KAFKA        JSON           false" in typed("SHOW STREAMS;")
    assert typed("DESCRIBE counts;")[:4] == [
        "TABLE COUNTS",
        "Column   Type",
        "WHO      STRING          PRIMARY KEY",
        "N        BIGINT",
    ]
    assert any(line.startswith("CTAS_COUNTS_0   PERSISTENT") for line in typed("SHOW QUERIES;"))
    assert any(line.startswith("UCASE") for line in typed("SHOW FUNCTIONS;"))
    assert typed("DESCRIBE FUNCTION ucase;")[0].startswith("UCASE: ")
    assert "topology:" in typed("EXPLAIN CTAS_COUNTS_0;")
    assert any("clicks" in line for line in typed("SHOW TOPICS;"))
    assert any(line.startswith("auto.offset.reset") and line.endswith("SESSION") for line in typed("SHOW PROPERTIES;"))


def test_print_shows_the_records_of_a_topic(typed: Typed) -> None:
    lines = typed("PRINT 'clicks' FROM BEGINNING LIMIT 1;")
    assert lines[0] == "Key format: KAFKA_STRING"
    assert 'key: ada, value: {"PAGE":"/","CENTS":1.50}, partition: 0' in lines[2]


def test_variables_and_settings_last_for_the_session(typed: Typed) -> None:
    session = typed.session
    typed("DEFINE name = 'eve'; DEFINE again = '${name}';")
    assert typed("SELECT n FROM counts WHERE who = '${again}';") == ["N", "1"]
    assert typed("SHOW VARIABLES;") == ["Variable   Value", "AGAIN      eve", "NAME       eve"]
    typed("UNDEFINE again;")
    with pytest.raises(SqlRequestError, match="again"):
        typed("SELECT n FROM counts WHERE who = '${again}';")
    with pytest.raises(SqlParseError, match="never defined"):
        typed("UNDEFINE again;")
    typed("SET 'ksql.query.pull.table.scan.enabled' = 'false';")
    assert session.settings["ksql.query.pull.table.scan.enabled"] == "false"
    typed("UNSET 'ksql.query.pull.table.scan.enabled';")
    assert "ksql.query.pull.table.scan.enabled" not in session.settings


def test_a_setting_that_does_not_exist_is_refused(typed: Typed) -> None:
    with pytest.raises(SqlRequestError, match=r"auto\.ofset\.reset"):
        typed("SET 'auto.ofset.reset' = 'earliest';")


def test_an_error_ends_a_text_and_says_where(typed: Typed) -> None:
    with pytest.raises(SqlRequestError, match=r"line 1:8"):
        typed("SHOW STREAMS; SELECT FROM;")
    with pytest.raises(SqlRequestError, match=r"NOWHERE.*\nline 1:1\n {4}SELECT \* FROM nowhere\n {4}\^"):
        typed("SELECT * FROM nowhere;")
    with pytest.raises(SqlRequestError, match=r"\nline 2:2\n {5}pge FROM clicks EMIT CHANGES\n {5}\^"):
        typed("SELECT who,\n pge FROM clicks EMIT CHANGES;")


def test_a_script_runs_others(typed: Typed, script: Callable[[str], Path], tmp_path: Path) -> None:
    (tmp_path / "inner.sql").write_text("DEFINE who = 'eve';", encoding="utf-8")
    path = script(f"RUN SCRIPT '{tmp_path}/inner.sql'; SELECT n FROM counts WHERE who = '${{who}}';")
    assert typed(f"RUN SCRIPT '{path}';") == ["N", "1"]


def test_scripts_that_run_each_other_end(typed: Typed, script: Callable[[str], Path], tmp_path: Path) -> None:
    path = script(f"RUN SCRIPT '{tmp_path}/script.sql';")
    with pytest.raises(SqlRequestError, match="without an end"):
        typed(f"RUN SCRIPT '{path}';")


def test_ctrl_c_ends_a_query_and_not_the_session(typed: Typed, monkeypatch: pytest.MonkeyPatch) -> None:
    closed: list[str] = []
    pieces = Answer.pieces

    def interrupted(answer: Answer) -> Iterator[list[Piece]]:
        yield next(pieces(answer))
        raise KeyboardInterrupt

    monkeypatch.setattr(Answer, "pieces", interrupted)
    monkeypatch.setattr(SqlClient, "close_query", lambda _client, query_id: closed.append(query_id))
    typed("SELECT * FROM clicks EMIT CHANGES;")
    monkeypatch.undo()
    assert len(closed) == 1
    assert typed("SELECT n FROM counts WHERE who = 'eve';") == ["N", "1"]


def test_results_are_spooled(typed: Typed, tmp_path: Path) -> None:
    session = typed.session
    assert builtin(f"spool '{tmp_path}/out.txt'", session, list)
    lines = typed("SELECT n FROM counts WHERE who = 'eve';")
    assert builtin("SPOOL OFF;", session, list)
    typed("SHOW STREAMS;")
    assert (tmp_path / "out.txt").read_text(encoding="utf-8").splitlines() == lines


def test_commands_of_the_prompt(typed: Typed, client: SqlClient, capsys: pytest.CaptureFixture[str]) -> None:
    session = typed.session

    def said(text: str) -> str:
        capsys.readouterr()
        assert builtin(text, session, lambda: ["SHOW STREAMS;"])
        captured = capsys.readouterr()
        return captured.out + captured.err

    assert "spool off" in said("help")
    assert said("output json") == "results are printed as json\n"
    assert said("output table") == "results are printed as table\n"
    assert said("history") == "SHOW STREAMS;\n"
    assert said("server") == f"{client.url}\n"
    assert "service default_" in said("version")
    said("set cli wrap off")
    said("set cli column-width 4")
    assert typed("SELECT page FROM clicks EMIT CHANGES LIMIT 3;") == ["PAGE", "/", "/", "/he…"]
    said("set cli column-width 0")
    with pytest.raises(SessionEnds):
        builtin("exit", session, list)
    with pytest.raises(SqlRequestError, match="does not answer"):
        builtin("server http://localhost:9", session, list)
    assert not builtin("SHOW STREAMS;", session, list)


def test_a_server_that_is_not_there_is_told(client: SqlClient) -> None:
    with pytest.raises(SqlRequestError, match=r"http://localhost:9 does not answer.*headrace sql server"):
        SqlClient("localhost:9").info()
    with pytest.raises(SqlRequestError, match="no address"):
        SqlClient("ftp://x")

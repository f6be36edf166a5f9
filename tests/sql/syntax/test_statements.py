from __future__ import annotations

from datetime import timedelta

import pytest

from headrace.sql.errors import Position, SqlParseError
from headrace.sql.sql_engine import SqlEngine
from headrace.sql.syntax.nodes import ColumnReference, Literal
from headrace.sql.syntax.parser import parse, parse_statement, split
from headrace.sql.syntax.statements import (
    AlterSource,
    AssertSchema,
    AssertTopic,
    AssertValues,
    ControlQuery,
    CreateAsSelect,
    CreateConnector,
    CreateFunction,
    CreateSource,
    CreateType,
    DefineVariable,
    Describe,
    DropSource,
    Explain,
    InsertInto,
    InsertValues,
    PrintTopic,
    Query,
    RunScript,
    SelectAll,
    SelectFields,
    SelectQuery,
    SetProperty,
    ShowList,
    Source,
    Statement,
    UndefineVariable,
    UnsetProperty,
    Window,
    Within,
)


def _query(text: str) -> Query:
    statement = parse_statement(text)
    assert isinstance(statement, SelectQuery)
    return statement.query


def test_create_stream_with_every_kind_of_column() -> None:
    statement = parse_statement(
        "create or replace source stream if not exists `s-t` (k int key, v array<varchar>, h bytes header('x')) "
        "with (kafka_topic='t', partitions=3);"
    )
    assert isinstance(statement, CreateSource)
    assert (statement.kind, statement.name) == ("STREAM", "s-t")
    assert (statement.or_replace, statement.is_source, statement.if_not_exists) == (True, True, True)
    assert [(one.name, str(one.type.type), one.role, one.header_key) for one in statement.elements] == [
        ("K", "INTEGER", "KEY", None),
        ("V", "ARRAY<STRING>", "VALUE", None),
        ("H", "BYTES", "HEADER", "x"),
    ]
    assert statement.properties == (("KAFKA_TOPIC", Literal("t")), ("PARTITIONS", Literal(3)))


def test_types_that_only_the_catalogue_knows_are_kept_as_text() -> None:
    statement = parse_statement(
        "create table t (k int primary key, a address, b struct<x address>) with (kafka_topic='t')"
    )
    assert isinstance(statement, CreateSource)
    assert [(one.type.text, one.type.type is None) for one in statement.elements] == [
        ("int", False),
        ("address", True),
        ("struct<x address>", True),
    ]


def test_a_query_with_all_its_clauses() -> None:
    query = _query(
        "select *, s.*, a->*, b as x, c y from s join t as u within (1 hour, 2 seconds) grace period 5 minutes "
        "on s.id = u.id "
        "window hopping (size 10 seconds, advance by 5 seconds, retention 1 day, grace period 0 seconds) "
        "where b > 1 group by (b, c) having count(*) > 1 emit changes limit 5"
    )
    assert query.select[0] == SelectAll()
    assert query.select[1] == SelectAll("S")
    assert query.select[2] == SelectFields(ColumnReference("A"))
    assert [getattr(item, "alias", None) for item in query.select[3:]] == ["X", "Y"]
    assert query.joins[0].source == Source("T", "U")
    assert query.joins[0].within == Within(timedelta(hours=1), timedelta(seconds=2), timedelta(minutes=5))
    assert query.window == Window(
        "HOPPING", timedelta(seconds=10), timedelta(seconds=5), timedelta(days=1), timedelta(0)
    )
    assert query.group_by == (ColumnReference("B"), ColumnReference("C"))
    assert (query.emit, query.limit) == ("CHANGES", 5)


@pytest.mark.parametrize(
    ("written", "kind"),
    [
        ("join", "INNER"),
        ("inner join", "INNER"),
        ("left join", "LEFT"),
        ("left outer join", "LEFT"),
        ("right outer join", "RIGHT"),
        ("full outer join", "OUTER"),
        ("full join", "OUTER"),
    ],
)
def test_kinds_of_joins(written: str, kind: str) -> None:
    assert _query(f"select * from a {written} b on a.x = b.x").joins[0].kind == kind


def test_one_expression_in_parentheses_is_no_list() -> None:
    assert len(_query("select * from s group by (a is null)").group_by) == 1
    assert len(_query("select * from s group by (a), (b)").group_by) == 2
    assert len(_query("select * from s partition by (a, b)").partition_by) == 2


def test_words_that_begin_a_clause_are_no_alias() -> None:
    query = _query("select a emit from s emit changes")
    assert query.source == Source("S", "S")
    assert query.emit == "CHANGES"


def test_beyond_the_original_order_and_offset() -> None:
    query = _query("select * from s order by a desc, b limit 3 offset 2")
    assert query.order_by == ((ColumnReference("A"), True), (ColumnReference("B"), False))
    assert (query.limit, query.offset) == (3, 2)


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("drop stream if exists s delete topic", DropSource("STREAM", "S", if_exists=True, delete_topic=True)),
        ("insert into s (a, `b`) values (1, 'x')", InsertValues("S", ("A", "b"), (Literal(1), Literal("x")))),
        ("set 'auto.offset.reset' = 'earliest'", SetProperty("auto.offset.reset", "earliest")),
        ("alter system 'a'='b'", SetProperty("a", "b", system=True)),
        ("unset 'a'", UnsetProperty("a")),
        ("define v = 'x'", DefineVariable("V", "x")),
        ("undefine v", UndefineVariable("V")),
        ("terminate csas_s_0", ControlQuery("TERMINATE", "CSAS_S_0")),
        ("pause all", ControlQuery("PAUSE", None)),
        ("list all topics extended", ShowList("TOPICS", extended=True, scope="ALL")),
        ("show source connectors", ShowList("CONNECTORS", scope="SOURCE")),
        ("show connector plugins", ShowList("CONNECTOR PLUGINS")),
        ("describe s extended", Describe("SOURCE", "S", extended=True)),
        ("describe function abs", Describe("FUNCTION", "ABS")),
        ("describe streams extended", Describe("STREAMS", None, extended=True)),
        (
            "print orders from beginning interval 2 limit 3",
            PrintTopic("orders", from_beginning=True, interval=2, limit=3),
        ),
        ("explain csas_s_0", Explain("CSAS_S_0")),
        ("assert topic t timeout 3 seconds", AssertTopic("t", timeout=timedelta(seconds=3))),
        ("assert not exists schema subject 's' id 3", AssertSchema("s", 3, exists=False)),
        ("create function f as 'module:name'", CreateFunction("F", "module:name")),
        (
            "create sink connector c with ('connector.class'='x')",
            CreateConnector("SINK", "C", (("connector.class", Literal("x")),)),
        ),
    ],
)
def test_statements(text: str, meant: Statement) -> None:
    statement = parse_statement(f"{text};")
    assert statement.text == text
    # ``text`` and the place are the only differences.
    assert type(statement) is type(meant)
    for name in type(meant).__slots__:
        if name != "text":
            assert getattr(statement, name) == getattr(meant, name)


def test_further_kinds_of_statements() -> None:
    assert isinstance(parse_statement("create type if not exists a as struct<b int>"), CreateType)
    assert isinstance(parse_statement("alter table t add column a int, add b string"), AlterSource)
    assert isinstance(parse_statement("create table t as select * from s"), CreateAsSelect)
    assert isinstance(parse_statement("insert into s with (query_id='q') select * from t"), InsertInto)
    explain = parse_statement("explain select * from s")
    assert isinstance(explain, Explain)
    assert isinstance(explain.statement, SelectQuery)


def test_several_statements_with_comments() -> None:
    found = parse("-- first;\nshow streams; /* ; */\n;show tables")
    assert [statement.text for statement in found] == ["show streams", "show tables"]
    assert found[0].position == Position(2, 1)


def test_splitting_needs_no_valid_statements() -> None:
    assert split("select ${x} from ';'; nonsense") == ("select ${x} from ';'", "nonsense")


def test_assertions_about_rows_are_for_tests_only() -> None:
    [found] = parse("assert null values s (k) key (1)", testing=True)
    assert isinstance(found, AssertValues)
    assert found.tombstone
    assert [type(one) for one in parse("run script 'f.sql'", testing=True)] == [RunScript]
    with pytest.raises(SqlParseError, match="Unknown statement 'run'"):
        parse("run script 'f.sql'")
    with pytest.raises(SqlParseError, match="Syntax error at or near 'values' at line 1:8"):
        parse("assert values s (k) values (1)")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("selec * from s", "line 1:1: Syntax Error\nUnknown statement 'selec'\nDid you mean 'SELECT'?"),
        ("show streams nonsense", "line 1:14: Syntax Error\nSyntax error at or near 'nonsense' at line 1:14"),
        ("create stream s (a int b) with (kafka_topic='t')", "line 1:24: Syntax Error\nExpecting {',', ')'}"),
        ("create stream s (a int(x))", "line 1:24: Syntax Error\nExpecting {'STRING', INTEGER_VALUE}"),
        ("select * from s where a = 1 group by a and b", "Syntax error at or near 'and'"),
        ("select * from s limit 1.5", "Value must be integer for command: LIMIT; found 1.5"),
        ("select * from s limit -1e3", "Value must be integer for command: LIMIT; found 1e3"),
        ("show streams;\nselect from s", "line 2:8: Syntax Error"),
        (
            "create stream s (from int)",
            """"from" is a reserved keyword and it can't be used as an identifier. """
            "You can use it as an identifier by escaping it as 'from'",
        ),
    ],
)
def test_errors_show_place_and_statement(text: str, message: str) -> None:
    with pytest.raises(SqlParseError) as caught:
        parse(text)
    assert message in str(caught.value)
    assert f"Statement: {text.rpartition(chr(10))[2]}" in str(caught.value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "drop stream `a b`",
            "Illegal argument at Line: 1, Col: 13. "
            "Source names may only contain alphanumeric values, '_' or '-'. Got: 'a b'",
        ),
        ("select * from `a.b`", "Line: 1, Col: 15. Source names may only contain"),
        ("insert into `ä` (a) values (1)", "Source names may only contain"),
        ("select a, count(*) from s group by a, b, a", "Failed to prepare statement: Duplicate GROUP BY expression: A"),
        ("select * from s partition by a + 1, a + 1", "Duplicate PARTITION BY expression: (A + 1)"),
    ],
)
def test_statements_that_are_well_formed_and_make_no_sense(text: str, message: str) -> None:
    with pytest.raises(SqlParseError) as caught:
        parse(text)
    assert message in caught.value.message


@pytest.mark.parametrize("number", ["1000000000", "9223372036854775807"])
def test_durations_that_are_too_long_have_a_place(number: str) -> None:
    with pytest.raises(SqlParseError, match=f"A duration of {number} DAYS is too long") as caught:
        parse(f"SELECT k, COUNT(*) FROM s WINDOW TUMBLING (SIZE {number} DAYS) GROUP BY k;")
    assert caught.value.position is not None
    engine = SqlEngine()
    with pytest.raises(SqlParseError, match="is too long"):
        engine.execute(
            "CREATE STREAM s (k STRING KEY) WITH (KAFKA_TOPIC='s', FORMAT='KAFKA', WINDOW_TYPE='TUMBLING', "
            f"WINDOW_SIZE='{number} DAYS');"
        )

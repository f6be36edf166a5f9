from __future__ import annotations

from decimal import Decimal

import pytest

from headrace.sql.errors import Position, SqlParseError
from headrace.sql.syntax.formatter import expression_text
from headrace.sql.syntax.nodes import (
    AtTimeZone,
    Binary,
    Call,
    ColumnReference,
    IntervalUnit,
    Lambda,
    LambdaVariable,
    Literal,
    Unary,
)
from headrace.sql.syntax.parser import parse_expression


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("a + b * c", "(A + (B * C))"),
        ("a - b - c", "((A - B) - C)"),
        ("a || b || 'x'", "CONCAT(CONCAT(A, B), 'x')"),
        ("-a * 2", "(-A * 2)"),
        ("a = 1 or b = 2 and not c", "((A = 1) OR ((B = 2) AND (NOT C)))"),
        ("a != 1", "(A <> 1)"),
        ("a is not null", "(A IS NOT NULL)"),
        ("a is not distinct from b", "(A IS NOT DISTINCT FROM B)"),
        ("a not between 1 and 2 and b", "((A NOT BETWEEN 1 AND 2) AND B)"),
        ("a not in (1, 'x')", "(A NOT IN (1, 'x'))"),
        ("a like '%!%' escape '!'", "(A LIKE '%!%' ESCAPE '!')"),
        ("case when a then 1 else 2 end", "(CASE WHEN A THEN 1 ELSE 2 END)"),
        ("case a when 1 then 'x' end", "(CASE A WHEN 1 THEN 'x' END)"),
        ("cast(a as map<varchar, decimal(4, 2)>)", "CAST(A AS MAP<STRING, DECIMAL(4, 2)>)"),
        ("s.a->b->`c d`[1]['k']", "S.A->B->`c d`[1]['k']"),
        ("struct(a := 1, `b` := array[1, 2])", "STRUCT(A:=1, `b`:=ARRAY[1, 2])"),
        ("map('k' := null)", "MAP('k':=null)"),
        ("transform(m, (k, v) => k, (k, v) => v + 1)", "TRANSFORM(M, (K, V) => K, (K, V) => (V + 1))"),
        ("filter(a, x => x > 1)", "FILTER(A, X => (X > 1))"),
        ("count(*)", "COUNT(*)"),
        ("'it''s'", "'it''s'"),
        ("1e3 + 1.50", "(1000.0 + 1.50)"),
        ('"Aa" + `from`', "(`Aa` + `from`)"),
    ],
)
def test_precedence_and_forms(written: str, meant: str) -> None:
    assert expression_text(parse_expression(written)) == meant


@pytest.mark.parametrize(
    ("written", "value"),
    [
        ("5", 5),
        ("-5", -5),
        ("-9223372036854775808", -(2**63)),
        ("1.50", Decimal("1.50")),
        (".5", Decimal("0.5")),
        ("-1E2", -100.0),
        ("TRUE", True),
        ("null", None),
        ("'ß''x'", "ß'x"),
    ],
)
def test_literals_keep_value_and_type(written: str, value: object) -> None:
    node = parse_expression(written)
    assert isinstance(node, Literal)
    assert (node.value, type(node.value)) == (value, type(value))
    if isinstance(value, Decimal):
        assert str(node.value) == str(value)


def test_a_minus_before_a_number_is_part_of_it_only_where_an_operand_begins() -> None:
    assert parse_expression("a -1") == Binary("-", ColumnReference("A"), Literal(1))
    assert parse_expression("- -1") == Unary("-", Literal(-1))


def test_parameters_of_a_lambda_are_known_in_its_body_only() -> None:
    node = parse_expression("f(x, x => x + y)")
    assert node == Call(
        "F",
        (
            ColumnReference("X"),
            Lambda(("X",), Binary("+", LambdaVariable("X"), ColumnReference("Y"))),
        ),
    )


def test_units_of_time_are_arguments_of_functions_that_add() -> None:
    assert parse_expression("timestampadd(hour, 1, t)") == Call(
        "TIMESTAMPADD", (IntervalUnit("HOURS"), Literal(1), ColumnReference("T"))
    )
    assert parse_expression("abs(day)") == Call("ABS", (ColumnReference("DAY"),))


def test_at_time_zone() -> None:
    assert parse_expression("t at time zone 'UTC'") == AtTimeZone(ColumnReference("T"), Literal("UTC"))


def test_positions_count_lines_and_columns_from_one() -> None:
    node = parse_expression("a +\n  s.b")
    assert isinstance(node, Binary)
    assert node.right.position == Position(2, 3)


@pytest.mark.parametrize(
    ("written", "message"),
    [
        ("a +", "Syntax error at or near <EOF> at line 1:4"),
        ("a in ()", r"Syntax error at or near '\)'"),
        ("(a, b)", r"missing '\)' at ','"),
        ("9223372036854775808", "Invalid numeric literal: 9223372036854775808"),
        ("-1E999", "Number overflows DOUBLE: -1E999"),
        ("'open", "not closed"),
        ("case end", "'end'"),
        ("filter(a, (x, x) => x)", "duplicate arguments: X"),
        ("select", "Syntax error at or near 'select'"),
        ("a like 'x' escape 'no'", "single character escape"),
    ],
)
def test_errors_say_where_and_what(written: str, message: str) -> None:
    with pytest.raises(SqlParseError, match=message):
        parse_expression(written)

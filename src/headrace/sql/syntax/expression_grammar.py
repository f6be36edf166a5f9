"""The grammar of expressions."""

from __future__ import annotations

import re
from decimal import Decimal
from math import isinf

from headrace.sql.errors import SqlParseError
from headrace.sql.syntax.dialect import Kind
from headrace.sql.syntax.nodes import (
    AtTimeZone,
    Between,
    Binary,
    Call,
    Case,
    Cast,
    ColumnReference,
    Comparison,
    Expression,
    FieldAccess,
    InList,
    IntervalUnit,
    IsNull,
    Lambda,
    LambdaVariable,
    Like,
    Literal,
    Logical,
    MakeArray,
    MakeMap,
    MakeStruct,
    Subscript,
    Unary,
    When,
)
from headrace.sql.syntax.token_reader import LONGEST_NUMBER, Reader
from headrace.sql.syntax.type_grammar import read_type
from headrace.sql.syntax.units import UNITS

_COMPARISONS = {"=": "=", "<>": "<>", "!=": "<>", "<": "<", "<=": "<=", ">": ">", ">=": ">="}
_UNIT_FUNCTIONS = ("ADD", "SUB")
"""How the names of functions end whose first argument may be a unit of time."""
_SMALLEST, _LARGEST = -(2**63), 2**63 - 1
# A word directly behind a number may look like its exponent to the tokenizer: `1ELSE`.
_NUMBER = re.compile(r"-?[0-9]+(\.[0-9]*)?([eE][+-]?[0-9]+)?")


def read_expression(reader: Reader) -> Expression:
    """Reads an expression of any kind."""
    return _or(reader)


def _or(reader: Reader) -> Expression:
    left = _and(reader)
    while reader.at("OR"):
        position = reader.advance().position
        left = Logical("OR", left, _and(reader), position=position)
    return left


def _and(reader: Reader) -> Expression:
    left = _not(reader)
    while reader.at("AND"):
        position = reader.advance().position
        left = Logical("AND", left, _not(reader), position=position)
    return left


def _not(reader: Reader) -> Expression:
    if reader.at("NOT"):
        position = reader.advance().position
        return Unary("NOT", _not(reader), position=position)
    return _predicate(reader)


def _predicate(reader: Reader) -> Expression:
    operand = read_value(reader)
    position = reader.position
    if reader.token.kind is Kind.SIGN and reader.token.text in _COMPARISONS:
        operator = _COMPARISONS[reader.advance().text]
        return Comparison(operator, operand, read_value(reader), position=position)
    if reader.at("IS"):
        return _is(reader, operand)
    negated = reader.at("NOT") and reader.peek().text in ("BETWEEN", "IN", "LIKE")
    if negated:
        reader.advance()
    if reader.accept("BETWEEN"):
        low = read_value(reader)
        reader.expect("AND")
        return Between(operand, low, read_value(reader), negated, position=position)
    if reader.accept("IN"):
        reader.expect("(")
        items = reader.listed(lambda: read_expression(reader), close=")")
        return InList(operand, items, negated, position=position)
    if reader.accept("LIKE"):
        pattern = read_value(reader)
        escape = reader.string() if reader.accept("ESCAPE") else None
        if escape is not None and len(escape) != 1:
            message = f"{position}: Expected single character escape but got: {escape}"
            raise SqlParseError(message, position=position, statement=reader.statement())
        return Like(operand, pattern, escape, negated, position=position)
    return operand


def _is(reader: Reader, operand: Expression) -> Expression:
    position = reader.expect("IS").position
    negated = reader.accept("NOT")
    if reader.accept("NULL"):
        return IsNull(operand, negated, position=position)
    if not reader.accept("DISTINCT", "FROM"):
        reader.fail_expecting("NULL", "DISTINCT")
    operator = "IS NOT DISTINCT FROM" if negated else "IS DISTINCT FROM"
    return Comparison(operator, operand, read_value(reader), position=position)


def read_value(reader: Reader) -> Expression:
    """Reads an expression without AND, OR, NOT and comparisons outside of parentheses."""
    left = _sum(reader)
    while reader.at("||"):
        position = reader.advance().position
        left = Call("CONCAT", (left, _sum(reader)), position=position)
    return left


def _sum(reader: Reader) -> Expression:
    left = _product(reader)
    while reader.at_any("+", "-"):
        token = reader.advance()
        left = Binary(token.text, left, _product(reader), position=token.position)
    return left


def _product(reader: Reader) -> Expression:
    left = _read_signed(reader)
    while reader.at_any("*", "/", "%"):
        token = reader.advance()
        left = Binary(token.text, left, _read_signed(reader), position=token.position)
    return left


def _read_signed(reader: Reader) -> Expression:
    if reader.at_any("+", "-") and not _at_negative_number(reader):
        token = reader.advance()
        return Unary(token.text, _read_signed(reader), position=token.position)
    operand = _read_suffixed(reader)
    while reader.at("AT", "TIME", "ZONE"):
        position = reader.expect("AT", "TIME", "ZONE").position
        operand = AtTimeZone(operand, _read_suffixed(reader), position=position)
    return operand


def read_primary(reader: Reader) -> Expression:
    """Reads what field access and subscripts may follow, with them."""
    return _read_suffixed(reader)


def _read_suffixed(reader: Reader) -> Expression:
    base = _primary(reader)
    while True:
        position = reader.position
        # ``struct->*`` belongs to the select list.
        if reader.at("->") and not reader.at("->", "*"):
            reader.advance()
            base = FieldAccess(base, reader.name(), position=position)
        elif reader.at("["):
            reader.advance()
            index = read_value(reader)
            reader.expect("]")
            base = Subscript(base, index, position=position)
        else:
            return base


def _at_negative_number(reader: Reader) -> bool:
    return reader.at("-") and (
        reader.peek().kind is Kind.NUMBER or (reader.peek().text == "." and reader.peek(2).kind is Kind.NUMBER)
    )


def _primary(reader: Reader) -> Expression:
    token = reader.token
    position = token.position
    if (
        token.kind is Kind.NUMBER
        or _at_negative_number(reader)
        or (reader.at(".") and reader.peek().kind is Kind.NUMBER)
    ):
        return read_number(reader)
    if token.kind is Kind.STRING:
        return Literal(reader.advance().text, position=position)
    if reader.accept("NULL"):
        return Literal(None, position=position)
    if reader.at_any("TRUE", "FALSE"):
        return Literal(reader.advance().text == "TRUE", position=position)
    if reader.at("("):
        reader.advance()
        inner = read_expression(reader)
        reader.expect(")")
        return inner
    if reader.at("CASE"):
        return _case(reader)
    if reader.at("CAST", "("):
        reader.expect("CAST", "(")
        operand = read_expression(reader)
        reader.expect("AS")
        target = read_type(reader)
        reader.expect(")")
        return Cast(operand, target, position=position)
    if reader.at("ARRAY", "["):
        reader.expect("ARRAY", "[")
        items = () if reader.accept("]") else reader.listed(lambda: read_expression(reader), close="]")
        return MakeArray(items, position=position)
    if reader.at("MAP", "("):
        reader.expect("MAP", "(")
        entries = () if reader.accept(")") else reader.listed(lambda: _entry(reader), close=")")
        return MakeMap(entries, position=position)
    if reader.at("STRUCT", "("):
        reader.expect("STRUCT", "(")
        fields = () if reader.accept(")") else reader.listed(lambda: _field(reader), close=")")
        return MakeStruct(fields, position=position)
    return _read_named(reader)


def _read_named(reader: Reader) -> Expression:
    position = reader.position
    # A few functions have the name of a word that is otherwise reserved.
    if not reader.at_name() and not (reader.at("REPLACE", "(") or reader.at("LEFT", "(") or reader.at("RIGHT", "(")):
        reader.fail()
    name = reader.advance().text
    if reader.at("("):
        return _call(reader, name)
    if reader.at(".") and not reader.at(".", "*"):
        reader.advance()
        return ColumnReference(reader.name(), name, position=position)
    if any(name in names for names in reader.lambda_variables):
        return LambdaVariable(name, position=position)
    return ColumnReference(name, position=position)


def _call(reader: Reader, name: str) -> Expression:
    position = reader.peek(-1).position
    reader.expect("(")
    if reader.accept("*"):
        reader.expect(")")
        return Call(name, (), starred=True, position=position)
    arguments = () if reader.accept(")") else reader.listed(lambda: _argument(reader, name), close=")")
    return Call(name, arguments, position=position)


def _argument(reader: Reader, function: str) -> Expression:
    position = reader.position
    if _at_lambda(reader):
        return _lambda(reader)
    unit = UNITS.get(reader.token.text) if reader.token.kind is Kind.WORD else None
    if unit is not None and function.endswith(_UNIT_FUNCTIONS) and reader.peek().text == ",":
        reader.advance()
        return IntervalUnit(unit, position=position)
    return read_expression(reader)


def _at_lambda(reader: Reader) -> bool:
    if reader.at("("):
        ahead = 1
        while reader.peek(ahead).kind in (Kind.WORD, Kind.QUOTED) and reader.at(",", ahead=ahead + 1):
            ahead += 2
        return reader.peek(ahead).kind in (Kind.WORD, Kind.QUOTED) and reader.at(")", "=>", ahead=ahead + 1)
    return reader.at_name() and reader.at("=>", ahead=1)


def _lambda(reader: Reader) -> Expression:
    position = reader.position
    parameters = reader.listed(reader.name, close=")") if reader.accept("(") else (reader.name(),)
    reader.expect("=>")
    twice = next((name for index, name in enumerate(parameters) if name in parameters[:index]), None)
    if twice is not None:
        message = f"{position}: Lambda function has duplicate arguments: {twice}"
        raise SqlParseError(message, position=position, statement=reader.statement())
    reader.lambda_variables.append(frozenset(parameters))
    try:
        body = read_expression(reader)
    finally:
        reader.lambda_variables.pop()
    return Lambda(parameters, body, position=position)


def _case(reader: Reader) -> Expression:
    position = reader.expect("CASE").position
    operand = None if reader.at("WHEN") else read_value(reader)
    branches: list[When] = []
    while reader.at("WHEN"):
        place = reader.advance().position
        condition = read_expression(reader)
        reader.expect("THEN")
        branches.append(When(condition, read_expression(reader), position=place))
    if not branches:
        reader.fail_expecting("WHEN")
    default = read_expression(reader) if reader.accept("ELSE") else None
    if not reader.accept("END"):
        reader.fail_expecting("ELSE", "END", "WHEN")
    return Case(operand, tuple(branches), default, position=position)


def _entry(reader: Reader) -> tuple[Expression, Expression]:
    key = read_expression(reader)
    reader.expect(":=")
    return key, read_expression(reader)


def _field(reader: Reader) -> tuple[str, Expression]:
    name = reader.name()
    reader.expect(":=")
    return name, read_expression(reader)


def read_number(reader: Reader) -> Literal:
    """Reads a number with its sign: whole, with a fraction (DECIMAL) or with an exponent (DOUBLE)."""
    position = reader.position
    sign = "-" if reader.accept("-") else ""
    text = sign + ("0." if reader.accept(".") else "")
    text += reader.advance().text
    if not _NUMBER.fullmatch(text):
        reader.fail(f"'{text}' is not a number", position=position)
    if "e" in text.lower():
        if isinf(float(text)):
            message = f"{position}: Number overflows DOUBLE: {text}\nStatement: {reader.statement()}"
            raise SqlParseError(message, position=position, statement=reader.statement())
        return Literal(float(text), position=position)
    if "." in text:
        return Literal(Decimal(text), position=position)
    value = int(text) if len(text) <= LONGEST_NUMBER else _LARGEST + 1
    if not _SMALLEST <= value <= _LARGEST:
        message = f"{position}: Invalid numeric literal: {text}\nStatement: {reader.statement()}"
        raise SqlParseError(message, position=position, statement=reader.statement())
    return Literal(value, position=position)


def read_literal(reader: Reader) -> Literal:
    """Reads a constant, such as the value of a property."""
    node = _primary(reader)
    if not isinstance(node, Literal):
        reader.fail(position=node.position)
    return node

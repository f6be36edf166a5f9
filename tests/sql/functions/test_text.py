from __future__ import annotations

from typing import Any

import pytest

from headrace.sql.errors import SqlFunctionError
from tests.sql.expressions.rows import typed, value


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("SUBSTRING('stream', 0, 2)", "st"),
        ("SUBSTRING('stream', 3)", "ream"),
        ("SUBSTRING('stream', -3, 2)", "ea"),
        ("SUBSTRING('stream', 9)", ""),
        ("SUBSTRING('stream', 2, -1)", ""),
        ("SUBSTRING(b, 2)", b"\x02"),
        ("INSTR('banana', 'an', -1)", 4),
        ("INSTR('banana', 'an', -1, 2)", 2),
        ("INSTR('banana', 'an', 1, 3)", 0),
        ("INSTR('banana', 'x')", 0),
        ("INSTR('banana', 'a', 0)", 0),
        ("INSTR('banana', 'a', 7)", 0),
        ("INSTR(ns, 'a')", 0),
        ("INITCAP('  the riVer')", "The River"),
        ("LPAD('abc', 2, '-')", "ab"),
        ("LPAD('abc', -1, '-')", None),
        ("RPAD('abc', 5, '')", None),
        ("SPLIT('', ',')", [""]),
        ("SPLIT('abc', '')", ["a", "b", "c"]),
        ("SPLIT_TO_MAP('a=1;b', ';', '=')", {"a": "1"}),
        ("SPLIT_TO_MAP('a=1', '=', '=')", None),
        ("TRIM(CONCAT(' x', CHR(9)))", "x"),
        ("CHR(128512)", "\U0001f600"),
        ("CHR('\\ud83d\\ude00')", "\U0001f600"),
        ("CHR('\\u0041x')", "Ax"),
        ("CHR('x')", None),
        ("CHR(-1)", None),
        ("ELT(0, 'a')", None),
        ("FIELD(NULL, 'a')", 0),
        ("CONCAT(ns, ns)", ""),
        ("CONCAT_WS(ns, 'a', 'b')", None),
        ("CONCAT_WS(',')", None),
        ("ENCODE('0x4142', 'hex', 'ascii')", "AB"),
        ("ENCODE('é', 'ascii', 'hex')", "3f"),
        ("ENCODE('AB', 'ascii', 'base64')", "QUI="),
        ("ENCODE('AB', 'ascii', 'morse')", None),
        ("ENCODE('X''4142''', 'hex', 'utf8')", "AB"),
        ("ENCODE('414', 'hex', 'ascii')", None),
        ("ENCODE('0x414', 'hex', 'ascii')", "\x04\x14"),
        ("ENCODE('AB', 'ascii', 'ascii')", None),
        ("ENCODE('JK', 'ascii', 'hex')", "4a4b"),
        ("FROM_BYTES(TO_BYTES('JK', 'ascii'), 'hex')", "4A4B"),
        ("TO_BYTES('4a4B', 'hex')", b"JK"),
        ("TO_BYTES('4a4', 'hex')", None),
        ("TO_BYTES('0x4a', 'hex')", None),
        ("TO_BYTES('Sks?', 'base64')", None),
        ("INT_FROM_BYTES(b)", None),
        ("MASK('Ab1-', NULL, '*', '#', NULL)", "A*#-"),
        ("MASK_KEEP_RIGHT('secret1', 2)", "xxxxxt1"),
        ("MASK_LEFT('secret', -1)", None),
        ("REGEXP_EXTRACT('(\\w+)@(\\w+)', 'me@home', 2)", "home"),
        ("REGEXP_EXTRACT('(a)(b)?', 'a', 2)", None),
        ("REGEXP_EXTRACT('a', 'a', 3)", None),
        ("REGEXP_EXTRACT_ALL('(?<letter>[a-z])\\d', 'a1b2', 1)", ["a", "b"]),
        ("REGEXP_REPLACE('John Smith', '(\\w+) (\\w+)', '$2, $1')", "Smith, John"),
        ("REGEXP_REPLACE('a.b', '\\Q.\\E', '-')", "a-b"),
        ("REGEXP_SPLIT_TO_ARRAY('a1b22c', '\\p{Digit}+')", ["a", "b", "c"]),
        ("REGEXP_SPLIT_TO_ARRAY('-a-', '-')", ["", "a", ""]),
        ("REGEXP_SPLIT_TO_ARRAY('ab', '')", ["a", "b"]),
        ("URL_EXTRACT_HOST('http://me@example.org:1/x')", "example.org"),
        ("URL_EXTRACT_PARAMETER('http://x/?a=1%262&b', 'a')", "1&2"),
        ("URL_EXTRACT_PARAMETER('http://x/?a=1&b', 'b')", ""),
        ("URL_EXTRACT_PARAMETER('http://x/', 'b')", None),
        ("URL_EXTRACT_PARAMETER('http://x/?a=1+%20b', 'a')", "1+ b"),
        ("URL_EXTRACT_PATH('http://x')", ""),
        ("URL_EXTRACT_PATH('')", ""),
        ("URL_EXTRACT_PATH('mailto:x@example.org')", None),
        ("URL_EXTRACT_HOST('http://a_b.example.org')", None),
        ("URL_EXTRACT_HOST('http://[::1]:80/')", "[::1]"),
        ("URL_EXTRACT_PORT('http://[::1]:80/')", 80),
        ("URL_DECODE_PARAM('100%')", None),
        ("URL_EXTRACT_PORT('not a url')", None),
        ("URL_DECODE_PARAM('%F0%9F%98%80+x')", "\U0001f600 x"),
        ('EXTRACTJSONFIELD(\'{"a": {"b": [1.50, "x"]}}\', \'$.a.b[0]\')', "1.50"),
        ('EXTRACTJSONFIELD(\'{"a": {"b": [1.50, "x"]}}\', \'$.a\')', '{"b":[1.50,"x"]}'),
        ("EXTRACTJSONFIELD('{\"a\": null}', '$.a')", "null"),
        ("EXTRACTJSONFIELD('{\"a b\": 1}', '$[''a b'']')", "1"),
        ("EXTRACTJSONFIELD('{}', 'a')", None),
        ("IS_JSON_STRING('{')", False),
        ("IS_JSON_STRING('NaN')", False),
        ("IS_JSON_STRING('{} x')", True),
        ("IS_JSON_STRING('1x')", False),
        ("IS_JSON_STRING(ns)", False),
        ("JSON_ARRAY_CONTAINS('[1, \"1\", true, 1.5]', '1')", True),
        ("JSON_ARRAY_CONTAINS('[1, true]', 1.0E0)", False),
        ("JSON_ARRAY_CONTAINS('[1, true]', true)", True),
        ("JSON_ARRAY_CONTAINS('[1.5]', 1.5E0)", True),
        ("JSON_ARRAY_CONTAINS('[1.5]', 1.5)", False),
        ("JSON_ARRAY_CONTAINS(ns, 1)", None),
        ("JSON_ARRAY_LENGTH('{}')", None),
        ("JSON_CONCAT('{\"a\": 1}', '{\"a\": 2}')", '{"a":2}'),
        ("JSON_CONCAT('1', NULL)", None),
        ("JSON_CONCAT('1e3', '0.00000010')", "[1000,0.00000010]"),
        ('JSON_RECORDS(\'{"a": "x", "b": ["x", 1e3], "c": null}\')', {"a": "x", "b": '["x",1E+3]', "c": "null"}),
        ("JSON_KEYS('[]')", None),
        ("TO_JSON_STRING(t)", '{"U":5,"V":null}'),
        ("TO_JSON_STRING(at)", '"2020-09-13T12:26:40.000"'),
        ("TO_JSON_STRING(b)", '"AQI="'),
        ("TO_JSON_STRING(n)", "null"),
    ],
)
def test_text_functions(text: str, expected: Any) -> None:
    assert value(text) == expected


def test_substring_counts_from_zero_where_old_rules_are_asked_for() -> None:
    settings: dict[str, object] = {"ksql.functions.substring.legacy.args": True}
    assert value("SUBSTRING('stream', 1, 3)", settings=settings) == "tr"
    assert value("SUBSTRING('stream', 9)", settings=settings) is None


def test_array_join_takes_plain_items_only() -> None:
    with pytest.raises((SqlFunctionError, ValueError), match="no plain values"):
        typed("ARRAY_JOIN(ARRAY[a])")

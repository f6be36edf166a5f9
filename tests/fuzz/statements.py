"""Statements of a small grammar of SQL: most of them can be carried out on the sources that ``SOURCES`` makes."""

from __future__ import annotations

import re
from random import Random

SOURCES = (
    "CREATE STREAM s (k STRING KEY, v INT, d DECIMAL(6, 2), a ARRAY<INT>, m MAP<STRING, STRING>, "
    "st STRUCT<x INT, y STRING>, t TIMESTAMP, b BYTES) WITH (KAFKA_TOPIC='s', FORMAT='JSON', PARTITIONS=1);"
    "CREATE TABLE u (k STRING PRIMARY KEY, n BIGINT, w STRING) WITH (KAFKA_TOPIC='u', FORMAT='JSON', PARTITIONS=1);"
)
_RULES: dict[str, tuple[str, ...]] = {
    "statement": (
        *("CREATE STREAM {name} AS {select} EMIT CHANGES;", "CREATE STREAM {name} WITH ({with}) AS {select};"),
        *("CREATE TABLE {name} AS {grouped} EMIT CHANGES;", "CREATE TABLE {name} AS {grouped} EMIT FINAL;"),
        *("INSERT INTO out SELECT * FROM s;", "INSERT INTO s (k, v) VALUES ({text}, {number});", "{select};"),
        *("{select} EMIT CHANGES LIMIT {number};", "SELECT * FROM u WHERE k = {text};", "PRINT 's' LIMIT {number};"),
        *(
            "CREATE STREAM {name} (k {type} KEY, v {type}, w {type} HEADERS) WITH ({with});",
            "DESCRIBE {name} EXTENDED;",
        ),
        *("CREATE OR REPLACE TABLE {name} (k {type} PRIMARY KEY, v {type}) WITH ({with});", "SHOW {shown};"),
        *(
            "DROP STREAM IF EXISTS {name} DELETE TOPIC;",
            "DROP TABLE {name};",
            "ALTER STREAM s ADD COLUMN {name} {type};",
        ),
        *(
            "CREATE TYPE {name} AS {type};",
            "DROP TYPE IF EXISTS {name};",
            "TERMINATE {name};",
            "PAUSE ALL;",
            "RESUME ALL;",
        ),
        *(
            "EXPLAIN {select};",
            "SET 'auto.offset.reset'={text};",
            "UNSET 'auto.offset.reset';",
            "DEFINE {name} = {text};",
        ),
        *("ASSERT TOPIC s WITH (PARTITIONS={number}) TIMEOUT 1 SECONDS;", "DESCRIBE FUNCTION {function};"),
    ),
    "select": (
        *(
            "SELECT {expression} AS {name}, k FROM s",
            "SELECT * FROM s WHERE {condition}",
            "SELECT k, {expression} FROM s",
        ),
        "SELECT s.k, {expression} FROM s {outer} JOIN u ON s.k = u.k",
        "SELECT l.k, l.v FROM s l {outer} JOIN s r WITHIN {number} {unit} GRACE PERIOD {number} {unit} ON l.k = r.k",
        *("SELECT k, EXPLODE(a) AS {name} FROM s", "SELECT {expression} AS z FROM s PARTITION BY {expression}"),
    ),
    "grouped": (
        "SELECT k, {aggregate} AS {name} FROM s GROUP BY k",
        "SELECT k, {aggregate} AS {name} FROM s WINDOW {window} WHERE {condition} GROUP BY k HAVING {aggregate} > 1",
        "SELECT {expression} AS z, COUNT(*) FROM s GROUP BY {expression}",
    ),
    "window": (
        "TUMBLING (SIZE {number} {unit})",
        "HOPPING (SIZE {number} {unit}, ADVANCE BY {number} {unit}, RETENTION {number} {unit})",
        "SESSION ({number} {unit}, GRACE PERIOD {number} {unit})",
    ),
    "aggregate": (
        *(
            "COUNT(*)",
            "COUNT(v)",
            "SUM(v)",
            "AVG(v)",
            "MIN(v)",
            "MAX(d)",
            "COLLECT_LIST(k)",
            "COLLECT_SET(v)",
            "TOPK(v, 3)",
        ),
        *("LATEST_BY_OFFSET(v)", "EARLIEST_BY_OFFSET(k, 2)", "HISTOGRAM(k)", "SUM({expression})"),
    ),
    "condition": (
        *(
            "{expression} > {expression}",
            "k LIKE {text}",
            "v BETWEEN {number} AND {number}",
            "v IN ({number}, {number})",
        ),
        *("NOT {condition}", "{condition} AND {condition}", "({condition} OR {condition})", "m IS NOT NULL", "TRUE"),
        *("k = {text}", "a[1] <> {number}", "st->x IS NULL", "v IS DISTINCT FROM {number}"),
    ),
    "expression": (
        *(
            "v",
            "k",
            "d",
            "st->x",
            "a[1]",
            "m[{text}]",
            "t",
            "b",
            "{number}",
            "{text}",
            "-v",
            "v + {number}",
            "d * d",
            "v % 2",
        ),
        *("{expression} + {expression}", "CAST({expression} AS {type})", "CASE WHEN {condition} THEN {expression} END"),
        *(
            "UCASE(k)",
            "CONCAT(k, {text})",
            "SUBSTRING(k, {number})",
            "TRANSFORM(a, x => x + 1)",
            "FILTER(a, x => x > 1)",
        ),
        *(
            "STRUCT(p := {expression}, q := k)",
            "ARRAY[{expression}, v]",
            "MAP({text} := v)",
            "k || k",
            "ROUND(d)",
            "ABS(v)",
        ),
        *("FORMAT_TIMESTAMP(t, {text})", "EXTRACTJSONFIELD(k, {text})", "SPLIT(k, ',')", "{function}({expression})"),
        *("REDUCE(a, 0, (x, y) => x + y)", "ROWTIME", "IFNULL(v, 0)", "CASE k WHEN {text} THEN 1 ELSE 2 END"),
    ),
    "with": (
        *(
            "KAFKA_TOPIC={text}",
            "KAFKA_TOPIC='t', FORMAT='JSON', PARTITIONS=1",
            "VALUE_FORMAT='DELIMITED', KAFKA_TOPIC='d'",
        ),
        *("KAFKA_TOPIC='t', KEY_FORMAT='KAFKA', VALUE_FORMAT='{format}', PARTITIONS={number}", "TIMESTAMP='t'"),
        *("KAFKA_TOPIC='w', FORMAT='JSON', PARTITIONS=1, WINDOW_TYPE='TUMBLING', WINDOW_SIZE={text}",),
    ),
    "type": (
        *(
            "INT",
            "BIGINT",
            "STRING",
            "DOUBLE",
            "BOOLEAN",
            "BYTES",
            "DATE",
            "TIME",
            "TIMESTAMP",
            "DECIMAL({number}, {number})",
        ),
        *("ARRAY<{type}>", "MAP<STRING, {type}>", "STRUCT<x {type}, `y z` {type}>"),
    ),
    "name": ("s", "u", "x1", "`a b`", "CSAS_X1_0", "out"),
    "text": ("'a'", "''", "'yyyy-MM-dd'", "'10 SECONDS'", "'earliest'", "'it''s'", "'$.a'", "'%'", "'😀'"),
    "number": ("0", "1", "2", "3", "10", "-1", "1.5", "2147483648", "1e3", "9223372036854775807"),
    "unit": ("MILLISECONDS", "SECONDS", "MINUTES", "HOURS", "DAYS"),
    "outer": ("", "LEFT", "INNER", "FULL OUTER", "RIGHT"),
    "format": ("JSON", "KAFKA", "DELIMITED", "PROTOBUF_NOSR", "NONE", "AVRO"),
    "function": (
        "UCASE",
        "LEN",
        "TRIM",
        "SQRT",
        "INITCAP",
        "REVERSE",
        "HASH",
        "TO_BYTES",
        "JSON_RECORDS",
        "SIGN",
        "URL_EXTRACT_HOST",
    ),
    "shown": ("STREAMS", "TABLES", "QUERIES EXTENDED", "TOPICS", "PROPERTIES", "FUNCTIONS", "TYPES", "VARIABLES"),
}
_DEEPEST = 6

WORDS = tuple(
    sorted({word for texts in _RULES.values() for text in texts for word in re.findall(r"\w+|'[^']*'|\S", text)})
)


def statement(random: Random, rule: str = "statement") -> str:
    """Returns a statement, or what another rule of the grammar says."""
    return _expanded(random, rule, 0)


def _expanded(random: Random, rule: str, depth: int) -> str:
    texts = _RULES[rule]
    if depth >= _DEEPEST:
        # Those that need the fewest others.
        least = min(text.count("{") for text in texts)
        texts = tuple(text for text in texts if text.count("{") == least)
    return re.sub(r"\{(\w+)\}", lambda match: _expanded(random, match[1], depth + 1), random.choice(texts))

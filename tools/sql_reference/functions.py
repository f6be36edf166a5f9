"""The page of functions, from the registry."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Iterator

from headrace.sql.driver import SqlTestDriver
from headrace.sql.functions import BUILTIN_FUNCTIONS
from headrace.sql.functions.definitions import AggregateFunction, AnyFunction, TableFunction

_INTRODUCTION = """\
# Functions of SQL

<!-- made by tools/sql_reference from the code: run `make docs` -->

All functions of the language. Names may be written in any case. `T`, `K` and `V` stand for any type, the same wherever
the letter stands; `...` for any number of arguments. Unless the description says otherwise an argument that is NULL
gives NULL. What a call shows on the right is what it gave when this page was written.

`SHOW FUNCTIONS` lists the functions of a server, those of yours included, and `DESCRIBE FUNCTION name` shows one. How
to write functions in Python is told in [User functions](user-functions.md).
"""
_ORDER = ("Aggregate", "Table")
_ROWS: dict[str, tuple[str, str, list[str]]] = {
    "ATTR": ("ATTR(v)", "v STRING", ["'x'", "'x'"]),
    "AVG": ("AVG(v)", "v INT", ["1", "2", "NULL"]),
    "COLLECT_LIST": ("COLLECT_LIST(v)", "v STRING", ["'b'", "'a'", "'b'"]),
    "COLLECT_SET": ("COLLECT_SET(v)", "v STRING", ["'b'", "'a'", "'b'"]),
    "CORRELATION": ("CORRELATION(v, w)", "v INT, w INT", ["1, 2", "2, 4", "3, 6"]),
    "COUNT": ("COUNT(v)", "v STRING", ["'a'", "NULL", "'b'"]),
    "COUNT_DISTINCT": ("COUNT_DISTINCT(v)", "v STRING", ["'a'", "'a'", "'b'"]),
    "EARLIEST_BY_OFFSET": ("EARLIEST_BY_OFFSET(v, 2)", "v INT", ["3", "1", "2"]),
    "HISTOGRAM": ("HISTOGRAM(v)", "v STRING", ["'a'", "'b'", "'a'"]),
    "LATEST_BY_OFFSET": ("LATEST_BY_OFFSET(v)", "v INT", ["3", "1", "2"]),
    "MAX": ("MAX(v)", "v INT", ["3", "7", "NULL"]),
    "MIN": ("MIN(v)", "v INT", ["3", "7", "NULL"]),
    "STDDEV_SAMP": ("STDDEV_SAMP(v)", "v INT", ["2", "4", "6"]),
    "STDDEV_SAMPLE": ("STDDEV_SAMPLE(v)", "v INT", ["2", "4", "6"]),
    "SUM": ("SUM(v)", "v DECIMAL(6, 2)", ["1.50", "2.25", "NULL"]),
    "SUM_LIST": ("SUM_LIST(v)", "v ARRAY<INT>", ["ARRAY[1, 2]", "ARRAY[3]"]),
    "TOPK": ("TOPK(v, 2)", "v INT", ["3", "7", "7", "1"]),
    "TOPKDISTINCT": ("TOPKDISTINCT(v, 2)", "v INT", ["3", "7", "7", "1"]),
    "EXPLODE": ("EXPLODE(v)", "v ARRAY<INT>", ["ARRAY[1, 2]"]),
    "CUBE_EXPLODE": ("CUBE_EXPLODE(v)", "v ARRAY<INT>", ["ARRAY[1, 2]"]),
}
"""Calls of functions that take more than one row, or give more: the columns, and the rows that are inserted."""


def functions_page() -> str:
    """Returns the page."""
    by_category: dict[str, list[AnyFunction]] = {}
    for function in BUILTIN_FUNCTIONS:
        by_category.setdefault(function.category, []).append(function)
    names = sorted(by_category, key=lambda name: (name in _ORDER, name == "Other", name))
    lines = [_INTRODUCTION, "| functions | |", "|---|---|"]
    for name in names:
        links = " ".join(f"[{one.name.upper()}](#{one.name.lower()})" for one in by_category[name])
        lines.append(f"| {name} | {links} |")
    lines.append("")
    for name in names:
        lines += [f"## {name} functions", ""]
        for function in by_category[name]:
            lines += [*_function(function), ""]
    return "\n".join(lines).rstrip() + "\n"


def _function(function: AnyFunction) -> Iterator[str]:
    name = function.name.upper()
    yield f"### {name}"
    yield ""
    words = function.description
    if isinstance(function, AggregateFunction) and _has_no_undo(function):
        words += " It is not for tables: it cannot take a row back."
    yield textwrap.fill(words, 120, break_long_words=False, break_on_hyphens=False)
    yield ""
    yield "```sql"
    for overload in function.overloads:
        parameters = ", ".join(
            f"{one.name} {one.accepts}{'...' if one.variadic else ''}" for one in overload.signature.parameters
        )
        yield f"{name}({parameters}) -> {overload.signature.returns}"
    yield "```"
    yield ""
    for call, result in function.examples:
        yield f"* `{call}` is `{result}`"
    if not function.examples:
        yield _example(name, rows=isinstance(function, TableFunction))


def _has_no_undo(function: AggregateFunction) -> bool:
    call, columns, _ = _ROWS[function.name.upper()]
    key = columns.replace("v ", "k INT PRIMARY KEY, v ", 1)
    driver = SqlTestDriver(f"CREATE TABLE t ({key}) WITH (KAFKA_TOPIC='t', KEY_FORMAT='KAFKA', VALUE_FORMAT='JSON');")
    try:
        driver.execute(f"CREATE TABLE u AS SELECT k + 1 AS g, {call} AS r FROM t GROUP BY k + 1;")
    except ValueError:
        return True
    return False


def _example(name: str, *, rows: bool) -> str:
    call, columns, inserted = _ROWS[name]
    driver = SqlTestDriver(f"CREATE STREAM s (k INT KEY, {columns}) WITH (KAFKA_TOPIC='s', VALUE_FORMAT='JSON');")
    if rows:
        driver.execute(f"CREATE STREAM r AS SELECT k, {call} AS r FROM s;")
    else:
        driver.execute(f"CREATE TABLE r AS SELECT k, {call} AS r FROM s GROUP BY k;")
    for row in inserted:
        driver.execute(f"INSERT INTO s VALUES (1, {row});")
    found = [json.dumps(row.columns["R"], default=float).replace('"', "'") for row in driver.rows("r")]
    if rows:
        return f"* `{call}` for a row `{inserted[0]}` gives rows `{'`, `'.join(found)}`"
    given = "`, `".join(f"({row})" if "," in row and "ARRAY" not in row else row for row in inserted)
    return f"* `{call}` over rows `{given}` is `{found[-1]}`"

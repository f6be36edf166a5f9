"""Queries that are open: their number, and their end."""

from __future__ import annotations

import pytest

from headrace.sql.reading.results import ResultRow
from headrace.sql.server.errors import SHUTTING_DOWN, RequestError
from headrace.sql.server.open_queries import OpenQueries, OpenQuery
from headrace.sql.types.schema import Schema


def query(name: str, ended: list[str]) -> OpenQuery:
    rows = iter(list[ResultRow]())
    return OpenQuery(name, Schema(()), rows, lambda: None, lambda: ended.append(name), is_push=True)


def test_all_queries_end_with_the_server() -> None:
    ended: list[str] = []
    queries = OpenQueries()
    queries.add(query("a", ended))
    queries.add(query("b", ended))
    queries.close_all()
    assert sorted(ended) == ["a", "b"]
    assert queries.push_queries() == ()


def test_a_query_that_is_opened_while_the_server_stops_ends_at_once() -> None:
    ended: list[str] = []
    queries = OpenQueries()
    queries.end_all()
    with pytest.raises(RequestError, match="The server is stopping") as raised:
        queries.add(query("late", ended))
    assert raised.value.code == SHUTTING_DOWN
    assert ended == ["late"]


def test_prints_end_with_the_server() -> None:
    queries = OpenQueries()
    before = queries.printing()
    assert not before.is_set()
    queries.end_all()
    assert before.is_set()
    assert queries.printing().is_set()

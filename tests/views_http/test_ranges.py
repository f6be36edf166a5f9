"""Many rows: bounds, prefixes, orders, times, and pages that give each row once."""

from __future__ import annotations

import pytest

from headrace.http.errors import RequestError
from headrace.views.http.cursors import Cursor
from tests.views_http.running import Running, named


@pytest.mark.parametrize("order", ["ascending", "descending"])
@pytest.mark.parametrize("store", ["counts", "plain", "rows", "windows", "plain-windows", "sessions", "everywhere"])
@pytest.mark.parametrize("limit", [1, 7, 1000])
def test_pages_give_every_row_once_in_the_same_order(running: Running, store: str, order: str, limit: int) -> None:
    whole = running.pages(store, order=order, limit=1000)
    assert whole
    paged = running.pages(store, order=order, limit=limit)
    assert paged == whole
    assert len(set(named(paged))) == len(paged)


def test_order_is_that_of_the_keys_within_a_partition(running: Running) -> None:
    for descending in (False, True):
        rows = running.pages("counts", limit=9, order="descending" if descending else "ascending")
        for partition in (0, 1):
            keys = [row["key"] for row in rows if row["partition"] == partition]
            assert keys == sorted(keys, reverse=descending)


def test_bounds_are_included(running: Running) -> None:
    rows = running.pages("counts", **{"from": "k010", "to": "k012"})
    assert sorted(row["key"] for row in rows) == ["k010", "k011", "k012"]


@pytest.mark.parametrize("limit", [2, 100])
def test_a_prefix(running: Running, limit: int) -> None:
    rows = running.pages("counts", prefix="k01", limit=limit)
    assert sorted(row["key"] for row in rows) == [f"k{each:03}" for each in range(10, 20)]


def test_windows_within_times(running: Running) -> None:
    rows = running.pages("windows", time_from_ms=10_000, time_to_ms=30_000)
    assert sorted((row["key"], row["window"]["start_ms"]) for row in rows) == [("a", 30_000), ("bb", 10_000)]


def test_a_page_goes_on_when_rows_come_and_go_between(running: Running) -> None:
    first = running.get("/stores/plain/range", limit=5, partition=0).json()
    last = first["rows"][-1]["key"]
    running.write("in", [("a0", 1, 60_000), (last, None, 60_000)])
    rest = running.get("/stores/plain/range", limit=1000, partition=0, cursor=first["cursor"]).json()["rows"]
    keys = [row["key"] for row in rest]
    assert all(key > last for key in keys)
    running.write("in", [(last, 1, 60_000)])


@pytest.mark.parametrize(
    ("query", "code"),
    [
        ("limit=0", "bad-parameter"),
        ("limit=1001", "bad-parameter"),
        ("order=upwards", "bad-parameter"),
        ("prefix=a&from=b", "bad-parameter"),
        ("prefix=a&order=descending", "bad-parameter"),
        ("time_from_ms=4", "bad-parameter"),
        ("cursor=nonsense", "bad-cursor"),
        ("cursor=W10", "bad-cursor"),
        ("form=a", "unknown-parameter"),
    ],
)
def test_wrong_questions_are_answered_with_what_is_right(running: Running, query: str, code: str) -> None:
    answer = running.client.get(f"/stores/counts/range?{query}")
    assert (answer.status_code, answer.json()["error"]["code"]) == (400, code)


def test_a_versioned_store_has_no_ranges(running: Running) -> None:
    answer = running.get("/stores/history/range")
    assert (answer.status_code, answer.json()["error"]["code"]) == (400, "no-ranges")


def test_a_prefix_of_windows_is_refused(running: Running) -> None:
    assert running.get("/stores/windows/range", prefix="a").status_code == 400


def test_a_cursor_survives_its_journey() -> None:
    for cursor in (Cursor(0, b""), Cursor(3, b"\xff\x00" * 500, 5, 9, 77), Cursor(-1, "zoë".encode())):
        assert Cursor.unpack(cursor.pack()) == cursor


@pytest.mark.parametrize("text", ["", "é", "x" * 100_000, "bnVsbA", "WzEsMiwzLDQsNV0", "WyIwIiwiIixudWxsLG51bGwsMF0"])
def test_a_cursor_that_nobody_has_given(text: str) -> None:
    with pytest.raises(RequestError, match="begin again without one"):
        Cursor.unpack(text)

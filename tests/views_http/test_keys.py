"""One key: of every kind of store, as every kind of text, with a bound, and where it is not."""

from __future__ import annotations

from uuid import UUID

import pytest

from headrace import Serdes
from headrace.http.errors import RequestError
from headrace.http.parameters import position_text
from headrace.serdes import Serde
from headrace.views.http.keys import read_key
from tests.views_http.running import Running


def test_stores_are_listed_with_what_they_are(running: Running) -> None:
    found = {store["name"]: store for store in running.get("/stores").json()["stores"]}
    assert set(found) == {
        *("by-value", "counts", "doubles", "everywhere", "history", "plain", "plain-windows", "recent", "rows"),
        *("sessions", "windows"),
    } & set(found)
    counts = found["counts"]
    assert (counts["kind"], counts["rows"], counts["partitions"], counts["lag"]) == ("timestamped_key_value", 53, 2, 0)
    assert counts["value_serde"] == "LongSerde()"


def test_a_value_with_its_timestamp_and_partition(running: Running) -> None:
    answer = running.get("/stores/counts/keys/a")
    body = answer.json()
    assert (body["key"], body["value"], body["timestamp_ms"]) == ("a", 2, 30_000)
    assert body["partition"] in (0, 1)
    assert answer.headers["Headrace-Role"] == "active"
    assert answer.headers["Headrace-Position"] == position_text(running.streams._own_views.views().position)
    assert answer.headers["Cache-Control"] == "no-store"


def test_a_value_without_a_timestamp(running: Running) -> None:
    assert running.get("/stores/plain/keys/b").json()["timestamp_ms"] is None


def test_a_key_may_have_any_characters(running: Running) -> None:
    assert running.client.get("/stores/rows/keys/b%2Fc%20d").json()["value"] == {"y": None}
    assert running.client.get("/stores/rows/keys/b/c d").json()["value"] == {"y": None}


def test_windows_of_a_key(running: Running) -> None:
    rows = running.get("/stores/windows/keys/a").json()["rows"]
    assert [(row["window"]["start_ms"], row["window"]["end_ms"], row["value"]) for row in rows] == [
        (0, 10_000, 1),
        (30_000, 40_000, 1),
    ]
    later = running.get("/stores/windows/keys/a", time_from_ms=20_000).json()["rows"]
    assert [row["window"]["start_ms"] for row in later] == [30_000]


def test_sessions_of_a_key(running: Running) -> None:
    rows = running.get("/stores/sessions/keys/a").json()["rows"]
    assert [(row["window"]["start_ms"], row["value"]) for row in rows] == [(1000, 1), (30_000, 1)]


def test_versions_of_a_key(running: Running) -> None:
    assert running.get("/stores/history/keys/a").json()["value"] == {"x": 2}
    assert running.get("/stores/history/keys/a", as_of_ms=1500).json()["value"] == {"x": 1}
    assert running.get("/stores/history/keys/a", as_of_ms=500).status_code == 404
    rows = running.get("/stores/history/keys/a", time_from_ms=0).json()["rows"]
    assert [row["timestamp_ms"] for row in rows] == [2000, 1000]


def test_a_global_store_is_whole(running: Running) -> None:
    body = running.get("/stores/everywhere/keys/a").json()
    assert (body["value"], body["partition"]) == ({"x": 1}, -1)


def test_a_key_that_is_not_there(running: Running) -> None:
    answer = running.get("/stores/counts/keys/nobody")
    assert (answer.status_code, answer.json()["error"]["code"]) == (404, "not-found")
    assert "Headrace-Position" in answer.headers


def test_an_unknown_store_is_told_with_what_was_meant(running: Running) -> None:
    answer = running.get("/stores/cuonts/keys/a")
    assert (answer.status_code, answer.json()["error"]["code"]) == (404, "unknown-store")
    assert "did you mean 'counts'" in answer.json()["error"]["message"]


@pytest.mark.parametrize(
    ("path", "code"),
    [
        ("/stores/counts/keys/a?as_of_ms=5", "bad-parameter"),
        ("/stores/counts/keys/a?time_from_ms=5", "bad-parameter"),
        ("/stores/counts/keys/a?partition=7", "bad-parameter"),
        ("/stores/counts/keys/a?wait_ms=999999", "bad-parameter"),
        ("/stores/counts/keys/a?wait=5", "unknown-parameter"),
        ("/stores/counts/keys/a?limit=%C2%B2", "bad-parameter"),
    ],
)
def test_wrong_questions_are_answered_with_what_is_right(running: Running, path: str, code: str) -> None:
    answer = running.client.get(path)
    assert (answer.status_code, answer.json()["error"]["code"]) == (400, code)


def test_a_bound_that_is_not_reached_is_an_error_and_one_may_wait_for_it(running: Running) -> None:
    headers = {"Headrace-Position": '{"in": {"0": 999999}}'}
    answer = running.client.get("/stores/counts/keys/a?wait_ms=50", headers=headers)
    assert (answer.status_code, answer.json()["error"]["code"]) == (503, "not-up-to-bound")
    assert answer.headers["Retry-After"] == "1"
    bound = running.place.write("in", [("fresh", 1, 50_000)]).position
    headers = {"Headrace-Position": position_text(bound)}
    found = running.client.get("/stores/counts/keys/fresh?wait_ms=20000", headers=headers)
    assert found.json()["value"] >= 1


@pytest.mark.parametrize("text", ["[]", "5", '{"in": 5}', '{"in": {"x": 1}}', "{", "[" * 100_000])
def test_a_bound_that_cannot_be_read(running: Running, text: str) -> None:
    if len(text) > 60_000:
        text = text[:5000]
    answer = running.client.get("/stores/counts/keys/a", headers={"Headrace-Position": text})
    assert (answer.status_code, answer.json()["error"]["code"]) == (400, "bad-position")


def test_too_many_windows_of_a_key(running: Running) -> None:
    answer = running.get("/stores/windows/keys/a", limit=1)
    assert (answer.status_code, answer.json()["error"]["code"]) == (413, "too-large")


@pytest.mark.parametrize(
    ("text", "serde", "key"),
    [
        ("7", Serdes.string(), "7"),
        ("-7", Serdes.long(), -7),
        ("1.5", Serdes.double(), 1.5),
        ("TRUE", Serdes.boolean(), True),
        ("abc", Serdes.bytes(), b"abc"),
        ("00000000-0000-0000-0000-000000000001", Serdes.uuid(), UUID(int=1)),
        ('{"id": 7}', Serdes.json(), {"id": 7}),
        ("7", Serdes.json(), 7),
    ],
)
def test_a_key_is_read_by_its_serde(text: str, serde: Serde[object], key: object) -> None:
    assert read_key(text, serde) == key


@pytest.mark.parametrize(
    ("text", "serde"),
    [
        ("seven", Serdes.long()),
        ("99999999999", Serdes.integer()),
        ("maybe", Serdes.boolean()),
        ("no-uuid", Serdes.uuid()),
        ("{", Serdes.json()),
    ],
)
def test_a_text_that_is_no_key(text: str, serde: Serde[object]) -> None:
    with pytest.raises(RequestError, match="is not one of") as refused:
        read_key(text, serde)
    assert (refused.value.status, refused.value.code) == (400, "bad-key")

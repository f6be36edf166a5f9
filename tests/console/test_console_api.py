"""Console API: history, topics, records, dead letters, and live updates."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from headrace import Serdes
from headrace.handlers import ErrorContext, dead_letter
from headrace.runtime.late_samples import LateSample
from tests.console.kit import Batch, Site, TaskFigures


def test_history_is_what_was_recorded(site: Site) -> None:
    site.recorder.on_batch(Batch(3, records_in=10, records_out=4))
    site.recorder.sample()
    found = site.get("/console/api/history").json()
    assert found["points"][0]["records_in"] == 10
    assert found["batches"][0]["batch_id"] == 3
    assert found["batches"][0]["phases"]["run"] == 8.0


def test_topics_have_roles(site: Site) -> None:
    site.observed._log.create_topic("else")
    found = {topic["name"]: topic["role"] for topic in site.get("/console/api/topics").json()["topics"]}
    assert found == {"app-counts-changelog": "changelog", "else": "other", "out": "output", "words": "input"}


@pytest.fixture
def words(site: Site) -> Site:
    records = [(0, 1000 + each, f"k{each}".encode(), json.dumps(each).encode(), ()) for each in range(100)]
    site.observed._log.append("words", records)
    return site


def offsets(site: Site, query: str) -> list[int]:
    found = site.get(f"/console/api/topics/words/records?{query}").json()
    return [record["offset"] for record in found["records"]]


def test_without_an_offset_the_newest_are_shown(words: Site) -> None:
    assert offsets(words, "limit=3") == [97, 98, 99]


def test_records_from_an_offset_or_a_time_on(words: Site) -> None:
    assert offsets(words, "limit=2&offset=10") == [10, 11]
    assert offsets(words, "limit=2&time_ms=1050") == [50, 51]
    assert offsets(words, "limit=2&time_ms=99999") == []
    assert offsets(words, "limit=2&offset=5000") == []
    assert offsets(words, "partition=1") == []


def test_auto_is_what_the_topology_says(site: Site) -> None:
    site.observed._log.append("out", [(0, 5, b"a", Serdes.long().serialize(7), ())])
    site.observed._log.append("app-counts-changelog", [(0, 5, b"a", Serdes.long().serialize(7), ())])
    for topic in ("out", "app-counts-changelog"):
        record = site.get(f"/console/api/topics/{topic}/records").json()["records"][0]
        assert (record["key"], record["value"]) == ("a", 7)


def test_another_serde_can_be_chosen(site: Site) -> None:
    site.observed._log.append("out", [(0, 5, b"a", Serdes.long().serialize(7), (("h", b"1"),))])
    record = site.get("/console/api/topics/out/records?value_serde=bytes&key_serde=string").json()["records"][0]
    assert record["value"] == "\x00\x00\x00\x00\x00\x00\x00\x07"
    assert record["headers"] == [["h", "1"]]


def test_what_cannot_be_read_is_told_beside_the_others(site: Site) -> None:
    site.observed._log.append("words", [(0, 5, b"a", b"{no json", ()), (0, 6, b"b", b"1", ())])
    first, second = site.get("/console/api/topics/words/records").json()["records"]
    assert first["value"] is None
    assert "the json serde cannot read" in first["value_error"]
    assert second["value"] == 1


def test_a_long_value_is_cut(site: Site) -> None:
    site.observed._log.append("words", [(0, 5, b"a", json.dumps("x" * 50_000).encode(), ())])
    record = site.get("/console/api/topics/words/records").json()["records"][0]
    assert len(record["value"]) < 21_000
    assert record["value"].endswith("(50,002 bytes)")


@pytest.mark.parametrize(
    ("query", "code"),
    [
        ("partition=9", "bad-partition"),
        ("partition=x", "bad-parameter"),
        ("limit=0", "bad-parameter"),
        ("limit=100000", "bad-parameter"),
        ("offset=-1", "bad-parameter"),
        ("value_serde=lnog", "bad-parameter"),
        ("ofset=1", "unknown-parameter"),
    ],
)
def test_wrong_questions_are_answered_with_what_is_right(site: Site, query: str, code: str) -> None:
    found = site.get(f"/console/api/topics/words/records?{query}")
    assert (found.status_code, found.json()["error"]["code"]) == (400, code)


def test_an_unknown_topic_is_not_found(site: Site) -> None:
    found = site.get("/console/api/topics/wrods/records")
    assert found.status_code == 404
    assert "did you mean 'words'" in found.json()["error"]["message"]


def test_dead_letters_have_their_reason_and_their_record(tmp_path: Path) -> None:
    site = Site(tmp_path, errors_dead_letter_queue_topic_name="failed")
    site.observed._log.create_topic("failed")
    context = ErrorContext(topic="words", partition=1, offset=41, key=b"k", value=b"\xff<b>", timestamp_ms=9)
    letter = dead_letter(context, ValueError("no number: '<script>'"), topic="failed")
    site.observed._log.append("failed", [(0, 9, letter.key, letter.value, tuple(letter.headers))])
    found = site.get("/console/api/dead-letters").json()
    assert found["topics"] == ["failed"]
    (one,) = found["records"]
    assert one["reason"] == "ValueError: no number: '<script>'"
    assert (one["topic"], one["partition"], one["offset"], one["key"]) == ("words", 1, 41, "k")
    site.close()


def test_dead_letters_of_all_topics_are_shown_that_handlers_have_named(tmp_path: Path) -> None:
    site = Site(tmp_path, errors_dead_letter_queue_topic_name="failed")
    for time_ms, topic in ((9, "failed"), (10, "unreadable")):
        site.observed._log.create_topic(topic)
        letter = dead_letter(ErrorContext(topic="words", timestamp_ms=time_ms), ValueError(topic), topic=topic)
        site.observed._log.append(topic, [(0, time_ms, letter.key, letter.value, tuple(letter.headers))])
    site.recorder.on_batch(Batch(tasks=(TaskFigures(nodes={"dead-letters/unreadable": 1}),)))
    found = site.get("/console/api/dead-letters").json()
    assert found["topics"] == ["failed", "unreadable"]
    assert [(one["dead_letter_topic"], one["reason"]) for one in found["records"]] == [
        ("unreadable", "ValueError: unreadable"),
        ("failed", "ValueError: failed"),
    ]
    site.close()


def late(node: str, number: int) -> LateSample:
    return LateSample(node, f"<b>{number}", "1", 500, (0, 1000), 2000, "words", 1, number)


def test_late_records_are_shown_the_newest_first_with_their_number(site: Site) -> None:
    for number in range(3):
        tasks = (TaskFigures("0_1", nodes={"late/count": 10}, late=(late("count", number),)),)
        site.recorder.on_batch(Batch(number, tasks=tasks))
        site.clock.now_ms += 1000
    found = site.get("/console/api/late?limit=2").json()
    assert found["nodes"] == [{"node": "count", "total": 30}]
    assert [(one["key"], one["topic"], one["partition"], one["offset"]) for one in found["records"]] == [
        ("<b>2", "words", 1, 2),
        ("<b>1", "words", 1, 1),
    ]
    assert found["records"][0]["window"] == [0, 1000]


def test_a_flood_of_late_records_is_not_kept(site: Site) -> None:
    for number in range(500):
        site.recorder.on_batch(Batch(tasks=(TaskFigures(late=(late("a", number), late("b", number))),)))
    found = site.get("/console/api/late?limit=1000").json()
    assert len(found["records"]) == 100


def test_without_a_topic_for_them_there_are_no_dead_letters(site: Site) -> None:
    assert site.get("/console/api/dead-letters").json() == {"records": [], "topics": []}

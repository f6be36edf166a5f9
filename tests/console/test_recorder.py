"""Recorder of an application: its samples, and the conclusions from them."""

from __future__ import annotations

from headrace.console.history import History
from headrace.console.monitored_application import Failed
from headrace.errors import LogError
from tests.console.kit import Batch, Site, TaskFigures


def test_lag_is_what_lies_behind_the_positions(site: Site) -> None:
    site.observed._log.append("words", [(0, 5, b"a", b'"x"', ()), (1, 5, b"b", b'"y"', ())])
    site.recorder.sample()
    assert site.recorder.history.lag == 2
    assert site.recorder.history.to_json()["lags"][0]["points"] == [(site.clock.now_ms, 1)]


def test_rates_look_back_over_some_seconds() -> None:
    history = History()
    for second in range(20):
        history.records_in = second * 100
        history.add_point(second * 1000)
    assert history.rate("records_in") == 100.0


def test_rings_forget() -> None:
    history = History()
    for each in range(1_000):
        history.add_point(each)
        history.add_batch(Batch(each, records_in=1), each)
    found = history.to_json()
    assert [point["at_ms"] for point in found["points"]] == list(range(100, 1_000))
    assert [batch["batch_id"] for batch in found["batches"]] == list(range(700, 1_000))
    assert history.records_in == 1_000


def test_a_log_that_does_not_answer_is_a_stall_since_the_first_time(site: Site) -> None:
    site.observed.log_failure = LogError("no broker answers")
    first_ms = site.clock.now_ms
    for _ in range(7):
        site.recorder.sample()
        site.clock.now_ms += 1000
    stall = site.recorder.stall()
    assert stall is not None
    assert (stall.reason, stall.since_ms) == ("waiting-for-broker", first_ms)
    site.observed.log_failure = None
    for _ in range(3):
        site.recorder.sample()
    assert site.recorder.stall() is None or site.recorder.stall() != stall


def test_failures_since_the_last_batch_are_failing(site: Site) -> None:
    site.recorder.on_batch(Batch(records_in=1))
    site.observed.failures = (Failed(site.clock.now_ms + 5, "boom"),)
    site.clock.now_ms += 10
    stall = site.recorder.stall()
    assert stall is not None
    assert stall.reason == "failing"
    site.recorder.on_batch(Batch(1, records_in=1))
    assert site.recorder.stall() is None


def test_nodes_at_both_ends_are_known_by_their_topics(site: Site) -> None:
    figures = TaskFigures(consumed={"words": 5}, produced={"out": 3}, nodes={"dropped/KSTREAM-AGGREGATE-0000000001": 2})
    site.observed.recording.add(Batch(records_in=5), [figures])
    nodes = site.recorder.nodes()
    assert nodes["words-source"]["total"] == 5
    assert nodes["out-sink"]["total"] == 3
    assert nodes["KSTREAM-AGGREGATE-0000000001"] == {"dropped": 2}


def test_all_nodes_are_known_if_they_count(site: Site) -> None:
    site.observed.recording.add(Batch(), [TaskFigures(nodes={"process/KSTREAM-AGGREGATE-0000000001": 7})])
    assert site.recorder.nodes()["KSTREAM-AGGREGATE-0000000001"]["total"] == 7

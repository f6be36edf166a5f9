"""Stall detection, as a table of facts and reasons."""

from __future__ import annotations

import pytest

from headrace.console.stall_detection import StallInputs, find_stall

NOW = 1_000_000


@pytest.mark.parametrize(
    ("facts", "reason"),
    [
        (StallInputs(now_ms=NOW, state="RUNNING", last_batch_ms=NOW - 10, last_input_ms=NOW - 10), None),
        (StallInputs(now_ms=NOW, state="RUNNING", lag=5, last_batch_ms=NOW - 10, last_input_ms=NOW - 10), None),
        (StallInputs(now_ms=NOW, state="RUNNING", lag=5, last_batch_ms=NOW - 31_000, last_input_ms=0), "slow-batch"),
        (StallInputs(now_ms=NOW, state="RUNNING", last_batch_ms=NOW - 10, last_input_ms=NOW - 31_000), "no-input"),
        (StallInputs(now_ms=NOW, state="RUNNING", changed_ms=NOW - 5), None),
        (StallInputs(now_ms=NOW, state="RUNNING", changed_ms=0), "no-input"),
        (StallInputs(now_ms=NOW, state="REBALANCING", changed_ms=NOW - 5), "starting"),
        (StallInputs(now_ms=NOW, state="REBALANCING", changed_ms=NOW - 5, last_batch_ms=NOW - 10), "restoring"),
        (StallInputs(now_ms=NOW, state="REBALANCING", lag=5, last_batch_ms=NOW - 31_000), "slow-batch"),
        (StallInputs(now_ms=NOW, state="CREATED", changed_ms=NOW - 5), "starting"),
        (StallInputs(now_ms=NOW, state="RUNNING", paused=True, lag=3), "paused"),
        (StallInputs(now_ms=NOW, state="RUNNING", log_failed_ms=NOW - 5, log_failure="refused"), "waiting-for-broker"),
        (StallInputs(now_ms=NOW, state="REBALANCING", failing_since_ms=NOW - 5, last_failure="boom"), "failing"),
        (StallInputs(now_ms=NOW, state="RUNNING", paused=True, failing_since_ms=1, last_failure="boom"), "failing"),
        (StallInputs(now_ms=NOW, state="ERROR", last_failure="boom"), "stopped"),
        (StallInputs(now_ms=NOW, state="NOT_RUNNING"), "stopped"),
    ],
)
def test_the_reason_follows_from_the_facts(facts: StallInputs, reason: str | None) -> None:
    found = find_stall(facts)
    assert (None if found is None else found.reason) == reason


def test_nothing_to_do_and_a_wish_are_healthy() -> None:
    idle = find_stall(StallInputs(now_ms=NOW, state="RUNNING", changed_ms=0))
    paused = find_stall(StallInputs(now_ms=NOW, state="RUNNING", paused=True))
    slow = find_stall(StallInputs(now_ms=NOW, state="RUNNING", lag=5, last_batch_ms=0, last_input_ms=0))
    restoring = find_stall(StallInputs(now_ms=NOW, state="REBALANCING", last_batch_ms=NOW - 10))
    assert idle is not None
    assert restoring is not None
    assert restoring.is_healthy
    assert paused is not None
    assert slow is not None
    assert (idle.is_healthy, paused.is_healthy, slow.is_healthy) == (True, True, False)


def test_an_error_is_told_with_its_message() -> None:
    found = find_stall(StallInputs(now_ms=NOW, state="ERROR", last_failure="the disk is full"))
    assert found is not None
    assert "the disk is full" in found.text

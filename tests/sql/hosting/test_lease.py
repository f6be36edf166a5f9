"""The lease of a service: one server runs its queries, another one takes over."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from headrace import EmbeddedLog
from headrace.sql.hosting import lease as module
from headrace.sql.hosting.lease import Lease, LeaseHistory, lease_topic, server_id


@pytest.fixture
def log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[EmbeddedLog]:
    monkeypatch.setattr(module, "_BEAT_SECONDS", 0.05)
    monkeypatch.setattr(module, "_LEASE_SECONDS", 0.4)
    monkeypatch.setattr(module, "_LOOK_SECONDS", 0.02)
    with EmbeddedLog(tmp_path / "log", sync="none") as log:
        yield log


def until(lease: Lease, *, held: bool) -> None:
    deadline = time.monotonic() + 30
    while lease.is_held is not held:
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_first_server_holds_it_and_the_next_gets_it_back(log: EmbeddedLog) -> None:
    first, second = Lease(log, "s_", "a"), Lease(log, "s_", "b")
    first.start()
    second.start()
    assert (first.is_held, second.is_held) == (True, False)
    first.close()
    until(second, held=True)
    second.close()


def test_holder_that_is_silent_loses_it(log: EmbeddedLog, monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = Lease(log, "s_", "a"), Lease(log, "s_", "b")
    told: list[bool] = []
    first.tell = lambda: told.append(first.is_held)
    # It is frozen after its first look.
    look = first._look
    first.start()
    monkeypatch.setattr(first, "_look", lambda: None)
    second.start()
    assert not second.is_held
    until(second, held=True)
    monkeypatch.setattr(first, "_look", look)
    until(first, held=False)
    assert (second.is_held, told) == (True, [True, False])
    first.close()
    second.close()


def test_restarted_server_goes_on_at_once(log: EmbeddedLog, tmp_path: Path) -> None:
    directory = tmp_path / "0"
    killed = Lease(log, "s_", server_id(directory))
    log.create_topic(lease_topic("s_"))
    killed._look()
    assert killed.is_held
    again = Lease(log, "s_", server_id(directory))
    again.start()
    assert again.is_held
    again.close()


def history(*records: tuple[str, str, int]) -> tuple[list[bool], str | None]:
    made = LeaseHistory()
    counted = [
        made.apply(offset, {"kind": kind, "server": server, "follows": follows})
        for offset, (kind, server, follows) in enumerate(records)
    ]
    return counted, made.last.holder


def test_of_two_claims_the_first_counts() -> None:
    assert history(("claim", "a", -1), ("claim", "b", 0), ("claim", "c", 0)) == ([True, True, False], "b")


def test_words_of_who_has_lost_it_do_not_count() -> None:
    records = [("claim", "a", -1), ("beat", "a", 0), ("claim", "b", 1), ("beat", "a", 1), ("beat", "b", 2)]
    assert history(*records) == ([True, True, True, False, True], "b")


def test_reader_of_a_topic_that_was_cut_finds_the_holder() -> None:
    # Of the beginning only a claim is left that has come too late.
    assert history(("claim", "b", -7), ("beat", "a", -8), ("beat", "a", 1), ("claim", "b", 0))[1] == "a"


def test_strange_records_are_left_out(log: EmbeddedLog) -> None:
    log.create_topic(lease_topic("s_"))
    strange = (b"{", b"[]", None, json.dumps({"kind": "claim"}).encode())
    log.append(lease_topic("s_"), [(0, 0, None, each, ()) for each in strange])
    lease = Lease(log, "s_", "a")
    lease.start()
    assert lease.is_held
    lease.close()

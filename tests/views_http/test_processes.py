"""Two processes of ``headrace view`` that are asked over HTTP, one of which is killed."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from headrace.topics.partitioner import partition_for
from headrace.views.membership import Member, MembershipTable, active_keeper
from tests.views.counting import build
from tests.views.kit import SOON, Place
from tests.views.processes import Processes, wait_until

NAMES = {"one", "two"}
PARTITIONS = 4
KEYS = [f"k{each}" for each in range(20)]
LEASE = 600.0
"""Seconds: whoever is killed counts as alive to the end of the test."""


class Pair:
    """Both processes, each with a copy of everything, and who is to be asked for what."""

    def __init__(self, directory: Path) -> None:
        self.place = Place(directory, **{"in": PARTITIONS})
        self.processes = Processes(self.place, standbys=1, lease=LEASE)
        try:
            with self.place.streams(build) as streams:
                bound = self.place.write("in", [(key, each, 1000) for each, key in enumerate(KEYS)])
                assert streams._own_views.views().wait_for(bound.position, SOON)
            self._membership = MembershipTable("app", self.place.log)
            for name in sorted(NAMES):
                self.processes.start(name)
            outputs = [self.processes.output(name) for name in sorted(NAMES)]
            wait_until(self._ready, f"both have everything: {outputs}")
            wait_until(self._agreed, f"each knows what the other one has: {outputs}")
        except BaseException:
            self.close()
            raise

    def members(self) -> dict[str, Member]:
        self._membership.refresh()
        return self._membership.live(int(time.time() * 1000), int(LEASE * 1000))

    def _ready(self) -> bool:
        members = self.members()
        held = [lag for member in members.values() for lag in member.lags.values() if lag >= 0]
        return members.keys() == NAMES and len(held) == 2 * PARTITIONS

    def _agreed(self) -> bool:
        # Each reads the announcements when it comes to it, and until then it takes the other one's tasks for its own.
        for key in KEYS:
            (other,) = NAMES - {self.owner(key)}
            if self.ask(other, key, Headrace_Forwarded="1").headers["Headrace-Role"] != "standby":
                return False
        return True

    def owner(self, key: str) -> str:
        name = active_keeper(f"0_{partition_for(key.encode(), PARTITIONS)}", self.members(), 1)
        assert name is not None
        return name

    def ask(self, name: str, key: str, **headers: str) -> httpx.Response:
        host = self.members()[name].host
        named = {header.replace("_", "-"): value for header, value in headers.items()}
        return httpx.get(f"http://{host.host}:{host.port}/stores/last/keys/{key}", headers=named, timeout=20)

    def close(self) -> None:
        for name in list(self.processes.running):
            self.processes.kill(name)
        self.place.close()


@pytest.fixture
def pair(tmp_path: Path) -> Iterator[Pair]:
    made = Pair(tmp_path)
    yield made
    made.close()


def test_owner_answers_through_the_other_one_until_it_is_killed_then_the_standby(pair: Pair) -> None:
    owned = {key: pair.owner(key) for key in KEYS}
    assert set(owned.values()) == NAMES
    for number, (key, owner) in enumerate(owned.items()):
        (other,) = NAMES - {owner}
        answer = pair.ask(other, key)
        assert (answer.status_code, answer.json()["value"]) == (200, number)
        assert answer.headers["Headrace-Role"] == "active"
        # What was forwarded once is not forwarded again: it has to say what it has itself.
        assert pair.ask(other, key, Headrace_Forwarded="1").headers["Headrace-Role"] == "standby"
    victim = owned[KEYS[0]]
    (other,) = NAMES - {victim}
    pair.processes.kill(victim)
    for number, (key, owner) in enumerate(owned.items()):
        answer = pair.ask(other, key)
        assert (answer.status_code, answer.json()["value"]) == (200, number)
        if owner == victim:
            assert answer.headers["Headrace-Role"] == "standby"
            assert int(answer.headers["Headrace-Staleness-Ms"]) >= 0
        else:
            assert answer.headers["Headrace-Role"] == "active"
            assert "Headrace-Staleness-Ms" not in answer.headers
    pair.processes.stop()

"""Three processes of ``headrace view``: one is killed while two clients read, and comes back."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random
from typing import Any

from headrace.topics.embedded import EmbeddedLog
from headrace.topics.partitioner import partition_for
from headrace.views import Position
from headrace.views.membership import Member, MembershipTable, active_keeper
from tests.views.counting import build
from tests.views.kit import Place
from tests.views.line_server import Client
from tests.views.processes import Processes, wait_until

NAMES = ("one", "two", "three")
PARTITIONS, KEYS = 6, 30
LEASE = 1.0
LEASE_MS = int(LEASE * 1000)
MARGIN = 4.0
"""Seconds by which a loaded machine may be late."""


class Routes:
    """Who is to be asked, as anybody can conclude from the topic."""

    def __init__(self, directory: Path, standbys: int) -> None:
        self._log = EmbeddedLog(directory / "log", sync="none")
        self._membership = MembershipTable("app", self._log)
        self._standbys = standbys
        self._clients: dict[Any, Client] = {}

    def live(self) -> dict[str, Member]:
        self._membership.refresh()
        return self._membership.live(int(time.time() * 1000), LEASE_MS)

    def active(self, partition: int) -> Member | None:
        live = self.live()
        name = active_keeper(f"0_{partition}", live, self._standbys)
        return None if name is None else live[name]

    def holders(self, partition: int) -> list[Member]:
        """The active one first, then standbys."""
        first = self.active(partition)
        others = [each for each in self.live().values() if each.lags.get(f"0_{partition}", -1) >= 0]
        return [] if first is None else [first, *(each for each in others if each.id != first.id)]

    def ask(self, member: Member, **question: Any) -> dict[str, Any]:
        try:
            if member.host not in self._clients:
                self._clients[member.host] = Client(member.host)
            return self._clients[member.host].ask(**question)
        except OSError:
            client = self._clients.pop(member.host, None)
            if client is not None:
                client.close()
            raise

    def close(self) -> None:
        for client in self._clients.values():
            client.close()
        self._log.close()


class Writer(threading.Thread):
    """Sets keys to growing numbers, and remembers what was acknowledged, and where it was written."""

    def __init__(self, place: Place) -> None:
        super().__init__(daemon=True)
        self._place = place
        self._lock = threading.Lock()
        self._latest: dict[str, tuple[int, Position]] = {}
        self.done = threading.Event()
        self.written = 0

    def run(self) -> None:
        random = Random(1)
        while not self.done.is_set():
            key = f"k{random.randrange(KEYS)}"
            position = self._place.write("in", [(key, self.written, self.written)]).position
            with self._lock:
                self._latest[key] = self.written, position
            self.written += 1
            self.done.wait(0.002)

    def latest(self, key: str) -> tuple[int, Position] | None:
        with self._lock:
            return self._latest.get(key)


class Reader(threading.Thread):
    """Reads what was written last, with its position as the bound. One with ``fall_back`` asks standbys, too."""

    def __init__(self, directory: Path, writer: Writer, standbys: int, *, fall_back: bool, seed: int) -> None:
        super().__init__(daemon=True)
        self._routes = Routes(directory, standbys)
        self._writer = writer
        self._fall_back = fall_back
        self._random = Random(seed)
        self.done = threading.Event()
        self.wrong: list[str] = []
        self.errors: list[tuple[float, int, str]] = []
        """When, for which partition, what."""
        self.answers: list[tuple[float, int]] = []

    def run(self) -> None:
        while not self.done.is_set():
            key = f"k{self._random.randrange(KEYS)}"
            latest = self._writer.latest(key)
            if latest is not None:
                self._read(key, *latest)
        self._routes.close()

    def _read(self, key: str, at_least: int, bound: Position) -> None:
        partition = partition_for(key.encode(), PARTITIONS)
        holders = self._routes.holders(partition)
        failed = "nobody has it"
        for member in holders if self._fall_back else holders[:1]:
            question = {"store": "last", "key": key, "partition": partition, "bound": bound.to_map(), "wait_ms": 4000}
            try:
                answer = self._routes.ask(member, **question)
            except OSError as error:
                failed = f"{member.id}: {error}"
                continue
            if "failure" in answer:
                failed = f"{member.id}: {answer['failure']}"
                continue
            if answer["value"] < at_least:
                self.wrong.append(f"{member.id}: {key} is {answer['value']}, and {at_least} was written before")
            self.answers.append((time.monotonic(), partition))
            return
        self.errors.append((time.monotonic(), partition, failed))


@contextmanager
def running(directory: Path, standbys: int) -> Iterator[tuple[Place, Processes, Writer]]:
    place = Place(directory, **{"in": PARTITIONS})
    processes = Processes(place, standbys, lease=LEASE, server="tests.views.line_server:serve")
    try:
        with place.streams(build):
            writer = Writer(place)
            for name in NAMES:
                processes.start(name)
            writer.start()
            yield place, processes, writer
            writer.done.set()
            writer.join()
            processes.stop()
    finally:
        for process in processes.running.values():
            process.kill()
        place.close()


def test_killed_process_is_replaced_without_a_wrong_answer(tmp_path: Path) -> None:
    standbys = 1
    with running(tmp_path, standbys) as (_, processes, writer):
        routes = Routes(tmp_path, standbys)

        def all_ready(names: set[str]) -> bool:
            live = routes.live()
            held = [task for each in live.values() for task, lag in each.lags.items() if lag >= 0]
            return live.keys() == names and len(held) == PARTITIONS * (1 + standbys)

        wait_until(lambda: all_ready(set(NAMES)), f"three are ready: {[processes.output(name) for name in NAMES]}")
        readers = [
            Reader(tmp_path, writer, standbys, fall_back=False, seed=1),
            Reader(tmp_path, writer, standbys, fall_back=True, seed=2),
        ]
        for reader in readers:
            reader.start()
        wait_until(lambda: all(len(reader.answers) > 200 for reader in readers), "readers read")
        assert [reader.errors for reader in readers] == [[], []]
        first = routes.active(0)
        assert first is not None
        victim = first.id
        lost = {each for each in range(PARTITIONS) if (found := routes.active(each)) is not None and found.id == victim}
        processes.kill(victim)
        killed = time.monotonic()
        wait_until(lambda: victim not in routes.live(), "its lease has ended")

        def is_answered(partition: int) -> bool:
            return any(when > killed and each == partition for when, each in readers[0].answers)

        wait_until(lambda: all(is_answered(each) for each in lost), "everything is answered again")
        taken = max(
            min(when for when, each in readers[0].answers if when > killed and each == partition) for partition in lost
        )
        print(f"take-over of {len(lost)} partitions with standbys: {taken - killed:.2f} s (lease {LEASE:.1f} s)")
        wait_until(lambda: all_ready(set(NAMES) - {victim}), "the others have new standbys")
        processes.start(victim)
        wait_until(lambda: all_ready(set(NAMES)), "it is back")
        back = time.monotonic()
        wait_until(lambda: all(reader.answers[-1][0] > back for reader in readers), "readers go on")
        for reader in readers:
            reader.done.set()
        for reader in readers:
            reader.join()
        routes.close()
        assert [reader.wrong for reader in readers] == [[], []]
        # Who asks standbys as well notices nothing.
        assert readers[1].errors == []
        late = [error for error in readers[0].errors if not killed - 0.1 <= error[0] <= killed + LEASE + MARGIN]
        assert late == []
        assert {partition for _, partition, _ in readers[0].errors} <= lost

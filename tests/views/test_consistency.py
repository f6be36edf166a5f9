"""Read your own writes: a query that waits for a write sees it, at the application and at every other view."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

from headrace import Materialized, StreamsBuilder
from headrace.views import (
    KeyQuery,
    Position,
    PositionBound,
    QueryableStoreTypes,
    StateQueryRequest,
    StateQueryResult,
)
from headrace.views.views import Views
from tests.views.kit import SOON, Place, topology_of

WRITERS, WRITES, KEYS = 3, 40, 5

Ask = Callable[[StateQueryRequest[Any]], StateQueryResult[Any]]


def build(builder: StreamsBuilder) -> None:
    stream = builder.stream("in")
    stream.to_table(materialized=Materialized("last"))
    # The same behind a repartition: its rows are in other partitions than the records.
    stream.select_key(lambda key, value: key[::-1]).to_table(materialized=Materialized("turned"))


class History:
    """What was written when, and the checks of what is read."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.latest: dict[str, tuple[int, Position]] = {}
        self.wrong: list[str] = []
        self.reads = 0

    def wrote(self, key: str, value: int, position: Position) -> None:
        with self._lock:
            self.latest[key] = value, position

    def expected(self, key: str) -> tuple[int, Position]:
        with self._lock:
            return self.latest.get(key, (-1, Position()))

    def check(self, where: str, key: str, at_least: int, found: Any) -> None:
        self.reads += 1
        if found is None or found < at_least:
            self.wrong.append(f"{where}: {key} is {found}, and {at_least} was written and waited for")


def ask(instance: Ask, store: str, key: str, bound: Position) -> Any:
    request: StateQueryRequest[Any] = StateQueryRequest.in_store(store).with_query(KeyQuery.with_key(key))
    answers = instance(request.with_position_bound(PositionBound.at(bound)).waiting(SOON))
    found = answers.only_partition_result
    return None if found is None else found.result


def test_reads_with_a_bound_are_never_stale_at_any_instance(place: Place, tmp_path: Path) -> None:
    with place.streams(build) as streams:
        others = [Views(topology_of(build), place.config(), place.log, tmp_path / f"view-{n}") for n in range(2)]
        for each in others:
            each.start()
        instances: list[Ask] = [streams.query, *(each.query for each in others)]
        history = History()

        def write(seed: int) -> None:
            random = Random(seed)
            for number in range(WRITES):
                key = f"w{seed}-{random.randrange(KEYS)}"
                position = place.write("in", [(key, number, number)]).position
                history.wrote(key, number, position)
                where = random.randrange(len(instances))
                store, asked = ("last", key) if random.random() < 0.5 else ("turned", key[::-1])
                history.check(f"own {where} {store}", key, number, ask(instances[where], store, asked, position))
                # What somebody else has written, and has told about.
                other = f"w{random.randrange(WRITERS)}-{random.randrange(KEYS)}"
                value, position = history.expected(other)
                if value >= 0:
                    found = ask(instances[random.randrange(len(instances))], "last", other, position)
                    history.check("other", other, value, found)

        threads = [threading.Thread(target=write, args=(seed,)) for seed in range(WRITERS)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        for each in others:
            each.close()
    assert history.wrong == []
    assert history.reads > WRITERS * WRITES


def test_what_is_seen_never_goes_back_and_is_whole(place: Place) -> None:
    """Each write sets all keys to the same value in one record batch: no reader may see two values at once."""
    seen: list[set[int]] = []
    with place.streams(build) as streams:
        keys = [f"k{number}" for number in range(12)]
        bound = place.write("in", [(key, 0, 0) for key in keys])
        ask(streams.query, "last", "k0", bound.position)
        face = streams.store("last", QueryableStoreTypes.key_value_store())
        done = threading.Event()

        def read() -> None:
            while not done.is_set():
                seen.append({row.value for row in face.all()})

        reader = threading.Thread(target=read)
        reader.start()
        for value in range(1, 60):
            bound = place.write("in", [(key, value, value) for key in keys])
        ask(streams.query, "last", "k0", bound.position)
        done.set()
        reader.join()
    assert {len(values) for values in seen} == {1}
    values = [min(each) for each in seen]
    assert values == sorted(values)
    assert values[-1] <= 59

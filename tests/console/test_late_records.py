"""Late records and dead letters of an application that runs, as its console shows them."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest

from headrace import Consumed, KStream, Materialized, Streams, StreamsBuilder, TimeWindows
from headrace.app.engine import local_engine
from headrace.handlers import ErrorContext, Response, dead_letter
from tests.views.kit import SOON, Place, topology_of

WINDOWS = TimeWindows.of_size_with_no_grace(timedelta(seconds=10))


def build(builder: StreamsBuilder) -> None:
    source: KStream[Any, Any] = builder.stream("in", Consumed(name="source"))
    source.group_by_key().windowed_by(WINDOWS).count(name="by-window", materialized=Materialized("windows"))


def keep_elsewhere(context: ErrorContext, error: Exception) -> Response:
    """A handler that has a topic of its own for what cannot be read."""
    return Response.resume([dead_letter(context, error, topic="unreadable")])


class Console:
    """The console of an application, and its input."""

    def __init__(self, place: Place, streams: Streams) -> None:
        self.place = place
        self.streams = streams
        self._client = httpx.Client(base_url=f"{streams.http_address}/console/api", timeout=20)
        self._seen = threading.Semaphore(0)
        # Listeners are told after the console.
        streams.add_batch_listener(lambda batch: self._seen.release(batch.records_in) if batch.records_in else None)

    def process(self, records: list[tuple[str, bytes, int]]) -> None:
        """Writes records of key, value and timestamp, and waits until the console knows of them."""
        self.place.log.append("in", [(0, time_ms, key.encode(), value, ()) for key, value, time_ms in records])
        for _ in records:
            assert self._seen.acquire(timeout=SOON.total_seconds())

    def get(self, path: str) -> Any:
        return self._client.get(path).json()

    def close(self) -> None:
        self._client.close()


@pytest.fixture
def console(tmp_path: Path) -> Iterator[Console]:
    place = Place(tmp_path, **{"in": 1, "unreadable": 1})
    config = place.config(
        errors_dead_letter_queue_topic_name="failed", deserialization_exception_handler=keep_elsewhere
    )
    topology = topology_of(build, config)
    with Streams(topology, config, log=place.log, engine=local_engine, http="localhost:0") as streams:
        found = Console(place, streams)
        yield found
        found.close()
    place.close()


def test_late_records_lead_to_where_they_are(console: Console) -> None:
    late = [("late", b'{"number": %d}' % each, 5_000 + each) for each in range(20)]
    console.process([("a", b"1", 60_000), *late])
    found = console.get("/late")
    assert found["nodes"] == [{"node": "by-window", "total": 20}]
    # Of a batch, the last few of each node.
    assert 0 < len(found["records"]) <= 20
    newest = max(found["records"], key=lambda record: int(record["offset"]))
    assert (newest["topic"], newest["partition"], newest["offset"]) == ("in", 0, 20)
    assert (newest["key"], newest["value"], newest["timestamp_ms"]) == ("late", '{"number": 19}', 5_019)
    assert (newest["window"], newest["close_time_ms"], newest["task"]) == ([0, 10_000], 60_000, "0_0")


def test_dead_letters_are_found_in_the_topic_that_a_handler_has_named(console: Console) -> None:
    console.process([("k", b"{no json", 1_000)])
    found = console.get("/dead-letters")
    assert found["topics"] == ["failed", "unreadable"]
    (letter,) = found["records"]
    assert (letter["dead_letter_topic"], letter["topic"], letter["offset"]) == ("unreadable", "in", 0)
    assert console.streams.metrics()["dead-letters-total"] == 1

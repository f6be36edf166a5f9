"""Changes as they happen: from now, from a snapshot, from where one was; for many, and for the slow."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from queue import Queue
from typing import Any

import httpx
import pytest
from starlette.applications import Starlette
from websockets.sync.client import connect

from headrace.console.asgi_application import make_application
from headrace.http.errors import RequestError
from headrace.http.limits import Limits
from headrace.views.http.change_hub import Batch, Message, Subscriber, id_of, offsets_of
from tests.views_http.running import Running

SOON = 20


class Listener:
    """Reads server-sent events in a thread."""

    def __init__(self, url: str, headers: dict[str, str] | None = None) -> None:
        self.events: Queue[tuple[str, str | None, Any]] = Queue()
        self.status = 0
        self._begun = threading.Event()
        self._client = httpx.Client(timeout=SOON)
        self._thread = threading.Thread(target=self._run, args=(url, headers), daemon=True)
        self._thread.start()
        assert self._begun.wait(SOON)

    def _run(self, url: str, headers: dict[str, str] | None) -> None:
        try:
            with self._client.stream("GET", url, headers=headers) as answer:
                self.status = answer.status_code
                event: dict[str, str] = {}
                for line in answer.iter_lines():
                    self._begun.set()
                    if line:
                        name, _, value = line.partition(":")
                        event[name] = value.strip()
                    elif "data" in event:
                        self.events.put((event.get("event", ""), event.get("id"), json.loads(event["data"])))
                        event = {}
        except httpx.HTTPError:
            pass
        self._begun.set()

    def take(self, count: int) -> list[tuple[str, str | None, Any]]:
        return [self.events.get(timeout=SOON) for _ in range(count)]

    def close(self) -> None:
        self._client.close()


@contextmanager
def listening(running: Running, path: str, headers: dict[str, str] | None = None) -> Iterator[Listener]:
    listener = Listener(f"{running.streams.http_address}{path}", headers)
    try:
        yield listener
    finally:
        listener.close()


def test_changes_from_now_on(running: Running) -> None:
    with listening(running, "/stores/rows/changes") as listener:
        # Of several changes of a key in one micro-batch there is only the last.
        running.write("table", [("new", {"n": 1}, 70_000)])
        running.write("table", [("new", None, 71_000)])
        (first, second) = listener.take(2)
        assert first[0] == "change"
        assert (first[2]["key"], first[2]["value"], first[2]["timestamp_ms"]) == ("new", {"n": 1}, 70_000)
        assert second[2]["value"] is None


def test_one_goes_on_where_one_was(running: Running) -> None:
    with listening(running, "/stores/rows/changes") as listener:
        running.write("table", [("one", 1, 72_000)])
        ((_, seen, _),) = listener.take(1)
    assert seen is not None
    running.write("table", [("two", 2, 73_000), ("three", 3, 74_000)])
    with listening(running, "/stores/rows/changes", {"Last-Event-ID": seen}) as listener:
        assert sorted(event[2]["key"] for event in listener.take(2)) == ["three", "two"]
        running.write("table", [("four", 4, 75_000)])
        assert listener.take(1)[0][2]["key"] == "four"


def test_a_snapshot_then_changes_without_a_gap(running: Running) -> None:
    stopping = threading.Event()
    written: list[str] = []

    def write() -> None:
        while not stopping.is_set() and len(written) < 400:
            key = f"w{len(written):04}"
            running.place.write("table", [(key, len(written), 80_000)])
            written.append(key)

    writer = threading.Thread(target=write)
    writer.start()
    try:
        with listening(running, "/stores/rows/changes?snapshot=true") as listener:
            seen: dict[str, Any] = {}
            kinds: list[str] = []
            stopping.wait(0.5)
            stopping.set()
            writer.join()
            while not (set(written) <= seen.keys() and "snapshot-end" in kinds):
                kind, _, data = listener.events.get(timeout=SOON)
                kinds.append(kind)
                if kind != "snapshot-end":
                    assert kind == "row" or data["key"] not in seen or "snapshot-end" in kinds
                    seen[data["key"]] = data["value"]
            assert kinds.count("snapshot-end") == 1
            assert "row" not in kinds[kinds.index("snapshot-end") :]
            assert {key: seen[key] for key in written} == {key: each for each, key in enumerate(written)}
    finally:
        stopping.set()
        writer.join()


def test_windows_have_their_times(running: Running) -> None:
    with listening(running, "/stores/windows/changes") as listener:
        running.write("in", [("w", 1, 90_000)])
        found = [event[2] for event in listener.take(1)]
        assert (found[0]["key"], found[0]["window"]) == ("w", {"start_ms": 90_000, "end_ms": 100_000})


def test_a_socket_gives_the_same_messages(running: Running) -> None:
    address = f"{running.streams.http_address}/stores/rows/changes/ws".replace("http", "ws", 1)
    with connect(address) as socket:
        running.write("table", [("socket", 1, 91_000)])
        message = json.loads(socket.recv(timeout=SOON))
        assert (message["event"], message["data"]["key"]) == ("change", "socket")
        assert message["id"]
    with connect(f"{address}?snapshot=true") as socket:
        kinds = []
        while "snapshot-end" not in kinds:
            kinds.append(json.loads(socket.recv(timeout=SOON))["event"])
        assert kinds[0] == "row"


def test_many_hear_the_same(running: Running) -> None:
    listeners = [Listener(f"{running.streams.http_address}/stores/rows/changes") for _ in range(20)]
    try:
        running.write("table", [("many", 1, 92_000)])
        assert {listener.take(1)[0][2]["key"] for listener in listeners} == {"many"}
    finally:
        for listener in listeners:
            listener.close()


@pytest.mark.parametrize(
    ("path", "status", "code"),
    [
        ("/stores/rows/changes?last_event_id=x", 400, "bad-event-id"),
        ("/stores/rows/changes?last_event_id=1.2.3", 400, "bad-event-id"),
        ("/stores/rows/changes?snapshot=perhaps", 400, "bad-parameter"),
        ("/stores/rwos/changes", 404, "unknown-store"),
        ("/stores/history/changes?snapshot=true", 400, "no-snapshot"),
    ],
)
def test_what_cannot_be_followed(running: Running, path: str, status: int, code: str) -> None:
    answer = running.client.get(path)
    assert (answer.status_code, answer.json()["error"]["code"]) == (status, code)


def test_ids_are_offsets_by_partition() -> None:
    assert offsets_of(id_of({1: 7, 0: 41}), 2) == {0: 41, 1: 7}
    with pytest.raises(RequestError):
        offsets_of("1.2", 3)


@pytest.mark.parametrize("size", [1, 1000])
def test_who_does_not_read_is_sent_away(size: int) -> None:
    async def course() -> None:
        subscriber = Subscriber(limit_bytes=500 * size)
        batch = Batch.of([Message(0, 1, "2", "x" * size)])
        for _ in range(1000):
            subscriber.put(batch)
        assert subscriber.is_slow
        assert await subscriber.take(1) == []

    asyncio.run(course())


class Asked:
    """A request for changes whose client reads only as much as the test says."""

    def __init__(self, application: Starlette, path: str) -> None:
        self.status = 0
        self.body = b""
        self.begun = asyncio.Event()
        self._reads = asyncio.Event()
        self._gone = asyncio.Event()
        route, _, query = path.partition("?")
        headers = [(b"host", b"localhost")]
        scope = {"type": "http", "method": "GET", "path": route, "query_string": query.encode(), "headers": headers}
        self._task = asyncio.create_task(application(scope, self._receive, self._send))

    async def _receive(self) -> Any:
        await self._gone.wait()
        return {"type": "http.disconnect"}

    async def _send(self, message: Any) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
        else:
            self.body += message["body"]
            self.begun.set()
            await self._reads.wait()

    async def leave(self) -> None:
        self._gone.set()
        self._reads.set()
        await self._task


def test_snapshots_of_all_clients_have_a_common_bound(running: Running) -> None:
    seen = running.streams._serving.seen
    asked = "/stores/counts/changes?snapshot=true"

    async def course() -> None:
        rows = len(running.pages("counts"))
        application = make_application(seen, limits=Limits(snapshot_bytes=rows * 600))
        [stores] = application.state.closing
        two = [Asked(application, asked) for _ in range(2)]
        for each in two:
            await asyncio.wait_for(each.begun.wait(), SOON)
        third = Asked(application, asked)
        await asyncio.wait_for(third.begun.wait(), SOON)
        answers = sorted(each.status for each in [*two, third])
        assert answers == [200, 200, 503]
        assert json.loads(third.body)["error"]["code"] == "too-many-snapshots"
        assert 0 < stores._snapshots.taken <= rows * 600
        for each in [*two, third]:
            await each.leave()
        # What nobody waits for any more is given back.
        assert stores._snapshots.taken == 0
        again = Asked(application, asked)
        await asyncio.wait_for(again.begun.wait(), SOON)
        assert again.status == 200
        await again.leave()
        await stores.close()

    asyncio.run(course())


def test_client_that_left_before_the_answer_began_is_forgotten(running: Running) -> None:
    async def course() -> None:
        application = make_application(running.streams._serving.seen, limits=Limits(subscribers=1))
        [stores] = application.state.closing
        for _ in range(3):
            left = Asked(application, "/stores/counts/changes?snapshot=true")
            await left.leave()
            assert left.status in (0, 200)
        assert stores._snapshots.taken == 0
        await stores.close()

    asyncio.run(course())

"""HTTP routes of the stores: lookups, ranges, and change streams."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Mapping
from datetime import timedelta
from typing import Any
from urllib.parse import quote

from anyio import CapacityLimiter, to_thread
from starlette.requests import HTTPConnection, Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route, WebSocketRoute
from starlette.websockets import WebSocket

from headrace.errors import StateStoreMigratedError, StreamsRebalancingError
from headrace.http.errors import RequestError, bad_request, explained, unavailable
from headrace.http.handling import Handler, answered
from headrace.http.json_values import named, to_json
from headrace.http.limits import Limits
from headrace.http.parameters import check_names, choice, flag, number, position_of, position_text
from headrace.http.streaming_response import HeldResponse, until_gone
from headrace.views.http.answering import Answer, Answering, KeyQuestion, RangeQuestion
from headrace.views.http.change_hub import Batch, Hub
from headrace.views.http.cursors import Cursor
from headrace.views.http.forwarding import FORWARDED, Forwarded, Peers, raise_for
from headrace.views.http.instance import Instance
from headrace.views.http.subscription import Follower, SnapshotBudget, name_of
from headrace.views.position import Position
from headrace.views.store_changes import Subscription
from headrace.views.views import Views

LAST = "Headrace-Last"
"""On an answer to another instance: where its page has ended."""
_WAITERS = 64
_KEY_PARAMETERS = ("as_of_ms", "time_from_ms", "time_to_ms", "limit", "wait_ms", "partition")
_RANGE_PARAMETERS = (
    *("from", "to", "prefix", "order", "limit", "cursor", "time_from_ms", "time_to_ms", "wait_ms", "partition"),
)


def json_response(body: Any, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    """Returns a JSON response that must not be cached."""
    all_headers = {"Cache-Control": "no-store", **(headers or {})}
    return Response(to_json(body), status, all_headers, media_type="application/json")


class StoreRoutes:
    """The stores of one instance. ``close`` ends all subscriptions."""

    def __init__(
        self,
        instance: Instance,
        *,
        limits: Limits | None = None,
        token: str | None = None,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self._instance = instance
        self._limits = limits or Limits()
        self._peers = Peers(token=token, tls=tls)
        self._hubs: dict[str, Hub] = {}
        self._followers: set[Follower] = set()
        self._snapshots = SnapshotBudget(self._limits.snapshot_bytes)
        self._closed = False
        self._waiters: CapacityLimiter | None = None
        self._found: Answering | None = None

    def routes(self) -> list[BaseRoute]:
        return [
            Route("/stores", self._handle(self.stores)),
            Route("/stores/{store}/keys/{key:path}", self._handle(self.key)),
            Route("/stores/{store}/range", self._handle(self.range)),
            Route("/stores/{store}/changes", self._handle(self.changes)),
            WebSocketRoute("/stores/{store}/changes/ws", self.changes_socket),
        ]

    def _handle(self, handler: Handler) -> Handler:
        seconds = self._limits.request_seconds + self._limits.wait_ms / 1000
        return answered(handler, seconds, "the answer took too long; ask for less, or ask again")

    async def _answering(self) -> Answering:
        found = self._found
        if found is None or found.views.is_closed or found.views.has_failed:
            # The first question makes the views, which may take long.
            views = await to_thread.run_sync(self._instance.views)
            found = self._found = Answering(views, self._limits)
        return found

    async def _wait(self, views: Views, bound: Position, wait_ms: int) -> None:
        if wait_ms and not bound.is_empty and not views.position.covers(bound):
            if self._waiters is None:
                self._waiters = CapacityLimiter(_WAITERS)
            timeout = timedelta(milliseconds=wait_ms)
            await to_thread.run_sync(views.wait_for, bound, timeout, limiter=self._waiters)

    async def stores(self, request: Request) -> Response:
        check_names(request.query_params, ())
        answering = await self._answering()
        found = await to_thread.run_sync(_describe_stores, answering)
        return json_response({"stores": found})

    async def key(self, request: Request) -> Response:
        parameters, limits = request.query_params, self._limits
        check_names(parameters, _KEY_PARAMETERS)
        question = KeyQuestion(
            request.path_params["store"],
            request.path_params["key"],
            number(parameters, "as_of_ms"),
            number(parameters, "time_from_ms"),
            number(parameters, "time_to_ms"),
            number(parameters, "limit", 100, low=1, high=limits.page_rows) or 100,
        )
        bound, wait_ms = self._freshness_of(request)
        answering = await self._answering()
        partitions = answering.partitions(question.store)
        asked = number(parameters, "partition", low=-1, high=partitions[-1])
        partition = answering.partition_of(question.store, question.text) if asked is None else asked
        is_last = request.headers.get(FORWARDED) is not None
        active = self._instance.is_active(question.store, partition)
        if is_last or active:
            try:
                return await self._own_key(answering, question, partition, bound, wait_ms, active=active)
            except (StreamsRebalancingError, StateStoreMigratedError):
                # It has become another's, or is not here yet.
                if is_last:
                    raise
        try:
            hosts = self._instance.holders(question.store, partition)
            path = f"/stores/{quote(question.store, safe='')}/keys/{quote(question.text, safe='')}"
            sent = {**parameters, "partition": str(partition)}
            answer = await self._peers.ask(hosts, path, sent, bound=_header(bound), wait_ms=wait_ms)
        except RequestError:
            if not answering.is_here(question.store, partition, stale=True):
                raise
            return await self._own_key(answering, question, partition, bound, wait_ms, active=False)
        return _forwarded_response(answer)

    async def _own_key(
        self,
        answering: Answering,
        question: KeyQuestion,
        partition: int,
        bound: Position,
        wait_ms: int,
        *,
        active: bool,
    ) -> Response:
        await self._wait(answering.views, bound, wait_ms)
        answer = answering.look_up(question, partition, bound, stale=not active)
        if answer is None:
            # Who writes with a partitioner of its own puts a key elsewhere than its hash says.
            for other in answering.partitions(question.store):
                if answer is None and other != partition and answering.is_here(question.store, other, stale=not active):
                    answer = answering.look_up(question, other, bound, stale=not active)
        if answer is None:
            message = f"store '{question.store}' has no key '{question.text[:200]}'"
            raise RequestError(
                404, "not-found", message, {"Headrace-Position": position_text(answering.views.position)}
            )
        headers = await self._headers(answering, question.store, answer, active=active)
        return json_response({**answer.body, "position": answer.position.to_map()}, headers=headers)

    async def _headers(self, answering: Answering, store: str, answer: Answer, *, active: bool) -> dict[str, str]:
        headers = {"Headrace-Position": position_text(answer.position), "Headrace-Role": _role(active=active)}
        if not active:
            staleness_ms = await to_thread.run_sync(answering.staleness_ms, store, answer)
            headers["Headrace-Staleness-Ms"] = str(staleness_ms)
        return headers

    def _freshness_of(self, request: HTTPConnection) -> tuple[Position, int]:
        bound = position_of(request.headers.get("Headrace-Position"))
        wait_ms = number(request.query_params, "wait_ms", 0, high=self._limits.wait_ms) or 0
        return bound, wait_ms

    async def range(self, request: Request) -> Response:
        parameters, limits = request.query_params, self._limits
        check_names(parameters, _RANGE_PARAMETERS)
        limit = number(parameters, "limit", 100, low=1, high=limits.page_rows) or 100
        text = parameters.get("cursor")
        question = RangeQuestion(
            request.path_params["store"],
            parameters.get("from"),
            parameters.get("to"),
            parameters.get("prefix") or None,
            choice(parameters, "order", ("ascending", "descending"), "ascending") == "descending",
            number(parameters, "time_from_ms"),
            number(parameters, "time_to_ms"),
            limit,
            Cursor.unpack(text) if text else None,
        )
        bound, wait_ms = self._freshness_of(request)
        answering = await self._answering()
        await self._wait(answering.views, bound, wait_ms)
        partitions = answering.partitions(question.store)
        asked = number(parameters, "partition", low=-1, high=partitions[-1])
        cursor = question.cursor
        if cursor is not None and cursor.partition not in partitions:
            message = "the cursor is of another store; begin again without one"
            raise bad_request(message, "bad-cursor")
        wanted = (
            [asked]
            if asked is not None
            else [each for each in partitions if cursor is None or each >= cursor.partition]
        )
        is_last = request.headers.get(FORWARDED) is not None
        pages = _Pages(limit)
        for partition in wanted:
            left = limit - len(pages.rows)
            if left == 0:
                pages.more = True
                break
            await self._add_page(pages, answering, question, partition, left, bound, request, is_last=is_last)
            if pages.more:
                break
        return pages.response(forwarded=is_last)

    async def _add_page(
        self,
        pages: _Pages,
        answering: Answering,
        question: RangeQuestion,
        partition: int,
        limit: int,
        bound: Position,
        request: Request,
        *,
        is_last: bool,
    ) -> None:
        store = question.store
        active = self._instance.is_active(store, partition)
        if not is_last and not (active and answering.is_here(store, partition, stale=False)):
            try:
                hosts = self._instance.holders(store, partition)
                sent = {**request.query_params, "partition": str(partition), "limit": str(limit)}
                if question.cursor is not None and question.cursor.partition != partition:
                    del sent["cursor"]
                path = f"/stores/{quote(store, safe='')}/range"
                answer = await self._peers.ask(hosts, path, sent, bound=_header(bound))
                raise_for(answer)
                pages.add_forwarded(answer)
                return
            except RequestError as error:
                if error.status != 503 or not answering.is_here(store, partition, stale=True):
                    raise
                active = False
        own = await to_thread.run_sync(lambda: answering.page(question, partition, limit, bound, stale=not active))
        headers = await self._headers(answering, store, own, active=active)
        pages.add(own, headers)

    async def _follow(self, connection: HTTPConnection) -> Follower:
        parameters = connection.query_params
        check_names(parameters, ("snapshot", "last_event_id"))
        store = connection.path_params["store"]
        snapshot = flag(parameters, "snapshot")
        last_id = connection.headers.get("Last-Event-ID") or parameters.get("last_event_id") or None
        views = (await self._answering()).views
        views.viewed(store)
        if self._closed or len(self._followers) >= self._limits.subscribers:
            message = f"{len(self._followers)} clients follow changes already, and that is the limit; try again later"
            raise unavailable(message, "too-many-subscribers")
        hub = self._hubs.get(store)
        if hub is None:
            log = self._instance.log
            hub = self._hubs[store] = Hub(lambda: Subscription(views, log, store), store)
        follower = Follower(self._instance, views, hub, store, self._limits, self._snapshots)
        self._followers.add(follower)
        try:
            loop = asyncio.get_running_loop()
            await to_thread.run_sync(lambda: follower.open(loop, snapshot=snapshot, last_id=last_id))
        except BaseException:
            self._leave(follower)
            raise
        return follower

    def _leave(self, follower: Follower) -> None:
        """Forgets a follower; a second call does nothing."""
        self._followers.discard(follower)
        follower.close()

    async def changes(self, request: Request) -> Response:
        follower = await self._follow(request)

        async def events() -> AsyncIterator[bytes]:
            yield b": changes\n\n"
            async for batch in follower.batches():
                yield b": \n\n" if batch is None else batch.events
            if follower.is_slow:
                yield b'event: error\ndata: {"code":"too-slow"}\n\n'

        headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
        return HeldResponse(events(), lambda: self._leave(follower), media_type="text/event-stream", headers=headers)

    async def changes_socket(self, socket: WebSocket) -> None:
        try:
            follower = await self._follow(socket)
        except Exception as error:
            known = explained(error)
            if known is None:
                raise
            await socket.send_denial_response(known.response())
            return
        await socket.accept()
        reading = asyncio.create_task(until_gone(socket))
        sending = asyncio.create_task(_send_all(socket, follower))
        try:
            await asyncio.wait({reading, sending}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            self._leave(follower)
            for task in (reading, sending):
                task.cancel()
            await asyncio.gather(reading, sending, return_exceptions=True)

    async def close(self) -> None:
        """Ends all streams, and the connections to the others."""
        self._closed = True
        for hub in self._hubs.values():
            await asyncio.to_thread(hub.close)
        await self._peers.close()


class _Pages:
    """The pages of several partitions, as one."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.rows: list[Any] = []
        self.more = False
        self._last: str | None = None
        self._position = Position()
        self._roles: set[str] = set()
        self._staleness_ms = 0

    def add(self, answer: Answer, headers: Mapping[str, str]) -> None:
        last = None if answer.last is None else answer.last.pack()
        self._add(answer.body["rows"], last, headers, more=answer.more)

    def add_forwarded(self, answer: Forwarded) -> None:
        more = answer.body.get("cursor") is not None
        self._add(answer.body.get("rows", []), answer.headers.get(LAST), answer.headers, more=more)

    def _add(self, rows: list[Any], last: str | None, headers: Mapping[str, str], *, more: bool) -> None:
        self.rows += rows
        self.more = more
        self._last = last or self._last
        self._position = self._position.merge(position_of(headers.get("Headrace-Position")))
        self._roles.add(headers.get("Headrace-Role", "active"))
        self._staleness_ms = max(self._staleness_ms, int(headers.get("Headrace-Staleness-Ms", 0)))

    def response(self, *, forwarded: bool) -> Response:
        headers = {"Headrace-Position": position_text(self._position)}
        standby = "standby" in self._roles
        headers["Headrace-Role"] = _role(active=not standby)
        if standby:
            headers["Headrace-Staleness-Ms"] = str(self._staleness_ms)
        if forwarded and self._last is not None:
            headers[LAST] = self._last
        return json_response({"rows": self.rows, "cursor": self._last if self.more else None}, headers=headers)


def _role(*, active: bool) -> str:
    return "active" if active else "standby"


def _header(bound: Position) -> str | None:
    return None if bound.is_empty else position_text(bound)


def _forwarded_response(answer: Forwarded) -> Response:
    names = ("Headrace-Position", "Headrace-Role", "Headrace-Staleness-Ms", "Retry-After")
    headers = {name: value for name in names if (value := answer.headers.get(name)) is not None}
    return json_response(answer.body, answer.status, headers)


def _describe_stores(answering: Answering) -> list[dict[str, Any]]:
    views = answering.views
    lags = views.lags()
    return [
        {
            "name": name,
            "kind": store.kind,
            "is_global": store.is_global,
            "rows": _rows(answering, name),
            "partitions": views.partitions_of(name),
            "lag": sum(each.offset_lag for each in lags.get(name, {}).values()),
            "key_serde": named(answering.key_serde(store)),
            "value_serde": named(answering.value_serde(store)),
        }
        for name, store in sorted(views.stores.items())
    ]


def _rows(answering: Answering, store: str) -> int | None:
    """Returns about how many rows of a store are here; None if that is not known."""
    try:
        reader, parts = answering.views.reading_parts(store, None, stale=True)
    except Exception as error:
        if explained(error) is None:
            raise
        return None
    try:
        counts = [getattr(reader.store(part), "approximate_num_entries", None) for part in parts]
        return sum(count() for count in counts if count is not None) if all(counts) else None
    finally:
        reader.release()


async def _send_all(socket: WebSocket, follower: Follower) -> None:
    async for batch in follower.batches():
        for text in _texts(batch):
            await socket.send_text(text)
    await socket.close(code=1013 if follower.is_slow else 1001)


def _texts(batch: Batch | None) -> list[str]:
    if batch is None:
        return ['{"event":"beat"}']
    return [
        f'{{"event":"{name_of(each)}","id":{to_json(each.id or None)},"data":{each.data}}}' for each in batch.messages
    ]

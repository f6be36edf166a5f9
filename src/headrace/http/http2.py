"""HTTP/2 without TLS, as clients of ksqlDB speak it: they start with it at once and never ask whether it is there.

It is here for one client: ``ksqldb`` 1.0.1, the newest of the one that is kept on PyPI, sends queries and rows with
HTTP/1 turned off, and uvicorn has no HTTP/2. When that client can do without, this module can go.

``Http2Protocol`` takes a connection over from the protocol of HTTP/1 when its first bytes are HTTP/2's. Bodies are read
no faster than the application takes them, and written no faster than the client does.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from typing import Any, cast
from urllib.parse import unquote

import h2.config
import h2.connection
import h2.errors
import h2.events
import h2.exceptions
import h2.settings
from uvicorn.protocols.http.flow_control import FlowControl, service_unavailable
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

logger = logging.getLogger(__name__)

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
"""What every connection begins with; no request of HTTP/1 does."""

_MOST_STREAMS = 100
_SPARE_RESETS = 100
# They speak of a connection, which HTTP/2 shares, and may not be sent.
_OF_CONNECTION = frozenset({b"connection", b"keep-alive", b"proxy-connection", b"transfer-encoding", b"upgrade"})


class _Stream:
    """One request and its answer."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.arrived: deque[tuple[bytes, int]] = deque()
        """Parts of the body, each with the bytes that the client counts for it."""
        self.is_whole = False
        """Whether the client has sent everything."""
        self.is_told = False
        """Whether the application knows that."""
        self.is_gone = False
        """Whether nobody reads the answer any more."""
        self.has_started = self.has_ended = False
        self.news = asyncio.Event()
        self.room = asyncio.Event()

    def wake(self) -> None:
        self.news.set()
        self.room.set()


class Http2Protocol(asyncio.Protocol):
    """A connection that speaks HTTP/2. ``idle_seconds`` is the patience with one on which nothing is asked."""

    def __init__(self, before: HttpToolsProtocol, idle_seconds: float) -> None:
        self._before = before
        self._idle_seconds = idle_seconds
        self._transport = before.transport
        self._flow: FlowControl = before.flow
        self._streams: dict[int, _Stream] = {}
        self._answered = self._resets = 0
        self._is_ending = False
        self._patience: asyncio.TimerHandle | None = None
        self._connection = h2.connection.H2Connection(
            h2.config.H2Configuration(client_side=False, header_encoding=False)
        )
        self._connection.local_settings = h2.settings.Settings(
            client=False,
            initial_values={
                h2.settings.SettingCodes.MAX_CONCURRENT_STREAMS: _MOST_STREAMS,
                h2.settings.SettingCodes.MAX_HEADER_LIST_SIZE: 64 * 1024,
            },
        )
        self._connection.initiate_connection()
        # Any: uvicorn only knows its own protocols; what it asks of them is `shutdown`.
        before.connections.discard(before)
        before.connections.add(cast("Any", self))
        self._transport.set_protocol(self)
        self._write()
        self._wait()

    def data_received(self, data: bytes) -> None:
        try:
            events = self._connection.receive_data(data)
        except h2.exceptions.ProtocolError as error:
            logger.debug("a client did not keep to HTTP/2: %s", error)
            self._write()
            self._transport.close()
            return
        for event in events:
            self._on(event)
        self._write()

    def _on(self, event: h2.events.Event) -> None:
        if isinstance(event, h2.events.RequestReceived):
            self._on_request(event.stream_id, event.headers)
        elif isinstance(event, h2.events.DataReceived):
            found, counted = self._streams.get(event.stream_id), event.flow_controlled_length
            if found is None or found.is_gone:
                self._acknowledge(event.stream_id, counted)
            else:
                found.arrived.append((event.data, counted))
                found.news.set()
        elif isinstance(event, h2.events.StreamEnded):
            if (found := self._streams.get(event.stream_id)) is not None:
                found.is_whole = True
                found.news.set()
        elif isinstance(event, h2.events.StreamReset):
            self._resets += 1
            if (found := self._streams.get(event.stream_id)) is not None:
                found.is_gone = True
                found.wake()
            if self._resets > self._answered + _SPARE_RESETS:
                # Work that is asked for and given up at once, again and again, is an attack.
                self._end(h2.errors.ErrorCodes.ENHANCE_YOUR_CALM)
                self._transport.close()
        elif isinstance(event, h2.events.WindowUpdated | h2.events.RemoteSettingsChanged):
            for each in self._streams.values():
                each.room.set()
        elif isinstance(event, h2.events.ConnectionTerminated):
            self._transport.close()

    def _on_request(self, number: int, headers: list[tuple[bytes, bytes]]) -> None:
        pseudo = {name: value for name, value in headers if name.startswith(b":")}
        plain = [(name, value) for name, value in headers if not name.startswith(b":")]
        if b":authority" in pseudo:
            plain = [(b"host", pseudo[b":authority"]), *((name, value) for name, value in plain if name != b"host")]
        path, _, query = pseudo.get(b":path", b"/").partition(b"?")
        before = self._before
        scope = {
            "type": "http",
            "asgi": {"version": before.asgi_version, "spec_version": "2.3"},
            "http_version": "2",
            "server": before.server,
            "client": before.client,
            "scheme": before.scheme,
            "method": pseudo[b":method"].decode("latin-1"),
            "root_path": before.root_path,
            "path": unquote(path.decode("latin-1")),
            "raw_path": path,
            "query_string": query,
            "headers": plain,
            "state": before.app_state.copy(),
        }
        stream = self._streams[number] = _Stream(number)
        self._forget_patience()
        limit = before.limit_concurrency
        is_full = limit is not None and (len(before.connections) >= limit or len(before.tasks) >= limit)
        task = before.loop.create_task(self._answer(stream, scope, service_unavailable if is_full else before.app))
        before.tasks.add(task)
        task.add_done_callback(before.tasks.discard)

    # Any: scopes and messages of ASGI are dicts of anything.
    async def _answer(self, stream: _Stream, scope: Any, application: Any) -> None:
        async def receive() -> dict[str, Any]:
            return await self._receive(stream)

        async def send(message: dict[str, Any]) -> None:
            await self._send(stream, message)

        try:
            await application(scope, receive, send)
            if not stream.has_ended and not stream.is_gone:
                message = "the application returned before its answer had ended"
                raise RuntimeError(message)
        except Exception:
            logger.exception("a request over HTTP/2 failed")
            if not stream.has_started:
                await self._send(stream, {"type": "http.response.start", "status": 500, "headers": []})
                await self._send(stream, {"type": "http.response.body"})
        finally:
            self._finish(stream)

    async def _receive(self, stream: _Stream) -> dict[str, Any]:
        while True:
            if stream.is_gone or stream.has_ended:
                return {"type": "http.disconnect"}
            if stream.arrived:
                data, counted = stream.arrived.popleft()
                self._acknowledge(stream.number, counted)
                self._write()
                stream.is_told = stream.is_whole and not stream.arrived
                return {"type": "http.request", "body": data, "more_body": not stream.is_told}
            if stream.is_whole and not stream.is_told:
                stream.is_told = True
                return {"type": "http.request", "body": b"", "more_body": False}
            stream.news.clear()
            await stream.news.wait()

    async def _send(self, stream: _Stream, message: dict[str, Any]) -> None:
        try:
            if message["type"] == "http.response.start":
                stream.has_started = True
                headers = [(name.lower(), value) for name, value in message.get("headers", ())]
                kept = [(name, value) for name, value in headers if name not in _OF_CONNECTION]
                if not stream.is_gone:
                    self._connection.send_headers(stream.number, [(b":status", b"%d" % message["status"]), *kept])
                    self._write()
                return
            await self._send_body(stream, message.get("body", b""))
            if not message.get("more_body", False) and not stream.is_gone:
                self._connection.end_stream(stream.number)
                self._write()
                stream.has_ended = True
        except h2.exceptions.ProtocolError:
            # The client has closed the stream or the connection in the meantime.
            stream.is_gone = True
        if stream.is_gone or stream.has_ended:
            stream.wake()

    async def _send_body(self, stream: _Stream, body: bytes) -> None:
        while body and not stream.is_gone:
            await self._flow.drain()
            if stream.is_gone:
                return
            connection = self._connection
            room = min(connection.local_flow_control_window(stream.number), connection.max_outbound_frame_size)
            if room <= 0:
                stream.room.clear()
                await stream.room.wait()
                continue
            connection.send_data(stream.number, body[:room])
            self._write()
            body = body[room:]

    def _finish(self, stream: _Stream) -> None:
        self._streams.pop(stream.number, None)
        self._answered += stream.has_ended and not stream.is_gone
        for _, counted in stream.arrived:
            self._acknowledge(stream.number, counted)
        if not stream.is_gone and not (stream.is_whole and stream.has_ended):
            code = h2.errors.ErrorCodes.NO_ERROR if stream.has_ended else h2.errors.ErrorCodes.INTERNAL_ERROR
            try:
                self._connection.reset_stream(stream.number, code)
            except h2.exceptions.ProtocolError as error:
                logger.debug("a stream was closed already: %s", error)
        stream.is_gone = True
        self._write()
        if not self._streams:
            if self._is_ending:
                self._transport.close()
            else:
                self._wait()

    def _acknowledge(self, number: int, counted: int) -> None:
        if counted:
            try:
                self._connection.acknowledge_received_data(counted, number)
            except h2.exceptions.ProtocolError as error:
                logger.debug("the connection was closed already: %s", error)

    def _write(self) -> None:
        data = self._connection.data_to_send()
        if data and not self._transport.is_closing():
            self._transport.write(data)

    def _wait(self) -> None:
        self._forget_patience()
        self._patience = self._before.loop.call_later(self._idle_seconds, self.shutdown)

    def _forget_patience(self) -> None:
        if self._patience is not None:
            self._patience.cancel()
            self._patience = None

    def _end(self, code: h2.errors.ErrorCodes) -> None:
        try:
            self._connection.close_connection(code)
        except h2.exceptions.ProtocolError as error:
            logger.debug("the connection was closed already: %s", error)
        self._write()

    def shutdown(self) -> None:
        """Takes no more requests, and closes when those that run have ended."""
        self._is_ending = True
        if not self._streams:
            self._end(h2.errors.ErrorCodes.NO_ERROR)
            self._transport.close()

    def pause_writing(self) -> None:
        self._flow.pause_writing()

    def resume_writing(self) -> None:
        self._flow.resume_writing()

    def connection_lost(self, exc: Exception | None) -> None:
        self._forget_patience()
        self._before.connections.discard(cast("Any", self))
        self._flow.resume_writing()
        for each in self._streams.values():
            each.is_gone = True
            each.wake()

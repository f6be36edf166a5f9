"""The thread that serves: its socket, its limits on clients, and its end."""

from __future__ import annotations

import asyncio
import errno
import logging
import socket
import ssl
import sys
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httptools
import uvicorn
from starlette.applications import Starlette
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from headrace.config import StreamsConfig
from headrace.errors import ConfigError
from headrace.http.json_values import Formatter, formatting
from headrace.http.limits import Limits
from headrace.http.tls import client_context
from headrace.views.metadata import HostInfo

logger = logging.getLogger(__name__)

LOOPBACK = ("localhost", "127.0.0.1", "::1")
_OFFER = (b"connection", b"upgrade", b"http2-settings")
"""The headers with which a client offers another protocol."""
_START_SECONDS = 30.0
_END_SECONDS = 5


@dataclass(frozen=True)
class Listening:
    """Address of a server, its certificate, and the certificates that it accepts from others."""

    host: str = "localhost"
    port: int = 0
    """0 for any that is free."""
    certificate: Path | None = None
    key: Path | None = None
    authority: Path | None = None
    """Certificates of the authorities that sign those of others; None: those that the machine trusts."""

    @classmethod
    def of(cls, address: str, config: StreamsConfig) -> Listening:
        """Returns an address with the files that a configuration names."""
        files = (config.http_tls_certificate, config.http_tls_key, config.http_tls_authority)
        certificate, key, authority = (None if file is None else Path(file) for file in files)
        return cls.at(address, certificate=certificate, key=key, authority=authority)

    @classmethod
    def at(
        cls, address: str, *, certificate: Path | None = None, key: Path | None = None, authority: Path | None = None
    ) -> Listening:
        """Reads ``host:port``, ``:port`` for this machine only, or a port alone.

        >>> Listening.at("8080")
        Listening(host='localhost', port=8080, certificate=None, key=None, authority=None)
        """
        host, _, port = address.strip().rpartition(":")
        if not port.isdecimal() or int(port) > 65535:
            message = (
                f"the address of a server must be host:port, with a port up to 65535, got '{address}'; write for "
                "example 'localhost:8080'"
            )
            raise ConfigError(message)
        if (certificate is None) != (key is None):
            message = "http.tls.certificate and http.tls.key belong together; set both, or neither"
            raise ConfigError(message)
        for file in (certificate, key):
            if file is not None and not file.is_file():
                message = f"the file '{file}' for TLS is not there; see http.tls.certificate and http.tls.key"
                raise ConfigError(message)
        return cls(host.strip("[]") or "localhost", int(port), certificate, key, authority)

    def exposure(self, secret: str | None) -> str | None:
        """Returns what is dangerous about it, given the token or password that clients must send; None for nothing.

        >>> Listening("0.0.0.0", 8080).exposure(None)
        'other machines can reach it, and everybody may use it: set http.token'
        >>> Listening("0.0.0.0", 8080).exposure("sesame")
        'other machines can reach it, and what is sent can be read on the way: set http.tls.certificate and ...'
        """
        if self.is_local:
            return None
        if secret is None:
            return "other machines can reach it, and everybody may use it: set http.token"
        if self.certificate is None:
            what = "what is sent can be read on the way: set http.tls.certificate and http.tls.key"
            return f"other machines can reach it, and {what}"
        return None

    @property
    def is_local(self) -> bool:
        """Whether only this machine can reach it."""
        return self.host in LOOPBACK

    def client_context(self) -> ssl.SSLContext | None:
        """Returns what this process checks others of its kind with; None: they speak no TLS, as it does not."""
        return None if self.certificate is None else client_context(self.authority)

    def hosts(self, token: str | None) -> frozenset[str] | None:
        """Returns the names by which it may be called; None: any, since a token says who is who."""
        return frozenset({*LOOPBACK, self.host.lower()}) if token is None and self.is_local else None


class _Protocol(HttpToolsProtocol):
    """HTTP, with an end to the patience for a request that never comes, comes letter by letter, or never ends."""

    head_seconds = 10.0
    head_bytes = 64 * 1024
    speaks_http2 = False

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self._patience: asyncio.TimerHandle | None = None
        self._taken = 0
        self._first: bytes | None = b"" if self.speaks_http2 else None
        self._wait_for_head()

    def _wait_for_head(self) -> None:
        if self._patience is None:
            self._taken = 0
            self._patience = self.loop.call_later(self.head_seconds, self._give_up)

    def data_received(self, data: bytes) -> None:
        if self._first is not None:
            from headrace.http.http2 import PREFACE, Http2Protocol

            data = self._first + data
            if len(data) < len(PREFACE) and PREFACE.startswith(data):
                self._first = data
                return
            self._first = None
            if data.startswith(PREFACE):
                self._forget_patience()
                Http2Protocol(self, self.timeout_keep_alive).data_received(data)
                return
        waited = self._patience
        self._fed = data
        super().data_received(data)
        # Only what is still a head counts: much of a body may come along with the head in one piece.
        if waited is not None and self._patience is waited:
            self._taken += len(data)
            if self._taken > self.head_bytes:
                self._give_up()

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._wait_for_head()

    def on_headers_complete(self) -> None:
        self._forget_patience()
        if not self._stays_plain():
            super().on_headers_complete()

    def on_message_complete(self) -> None:
        if not self._stays_plain():
            super().on_message_complete()

    def _stays_plain(self) -> bool:
        """Whether the client offers another protocol than WebSocket, such as ``h2c``, which is not taken up."""
        return self.parser.should_upgrade() and self._get_upgrade() not in (None, b"websocket")

    def _unsupported_upgrade_warning(self) -> None:
        """Reads the request again without the offer; the parser takes what follows it, the body, for that protocol."""
        if not self._stays_plain():
            super()._unsupported_upgrade_warning()
            return
        upgrade = sys.exc_info()[1]
        assert isinstance(upgrade, httptools.HttpParserUpgrade), "uvicorn calls it while it handles that"
        rest = self._fed[upgrade.args[0] :]
        kept = [header for header in self.headers if header[0] not in _OFFER]
        lines = (b"%s: %s\r\n" % header for header in kept)
        head = b"%s %s HTTP/1.1\r\n%s\r\n" % (self.parser.get_method(), self.url, b"".join(lines))
        self.parser = httptools.HttpRequestParser(self)
        self._fed = head + rest
        super().data_received(self._fed)

    def _forget_patience(self) -> None:
        if self._patience is not None:
            self._patience.cancel()
            self._patience = None

    def _give_up(self) -> None:
        self._forget_patience()
        if not self.transport.is_closing():
            self.transport.close()

    def connection_lost(self, exc: Exception | None) -> None:
        self._forget_patience()
        super().connection_lost(exc)


def _new_loop() -> asyncio.AbstractEventLoop:
    """Returns the faster loop where it is installed; it does the same."""
    try:
        import uvloop
    except ImportError:
        return asyncio.new_event_loop()
    return uvloop.new_event_loop()


class Server:
    """Serves an application from a thread of its own; ``http2`` is for clients that speak it without being asked."""

    def __init__(
        self,
        application: Starlette,
        listening: Listening,
        *,
        limits: Limits | None = None,
        http2: bool = False,
        formatter: Formatter | None = None,
    ) -> None:
        limits = limits or Limits()
        self._listening = listening
        self._application = application
        self._formatter = formatter
        self._socket = _bound(listening)
        self.host: str = listening.host
        self.port: int = self._socket.getsockname()[1]
        protocol = type("_Protocol", (_Protocol,), {"head_seconds": limits.head_seconds, "speaks_http2": http2})
        config = uvicorn.Config(
            application,
            http=protocol,
            log_config=None,
            log_level="warning",
            access_log=False,
            server_header=False,
            lifespan="on",
            limit_concurrency=limits.connections,
            timeout_keep_alive=30,
            timeout_graceful_shutdown=_END_SECONDS,
            ws_max_size=limits.body_bytes,
            ssl_certfile=listening.certificate,
            ssl_keyfile=listening.key,
        )
        self._server = uvicorn.Server(config)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._started = threading.Event()
        self._failure: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name="headrace-http", daemon=True)

    @property
    def url(self) -> str:
        """The address of the console."""
        scheme = "http" if self._listening.certificate is None else "https"
        host = "localhost" if self.host in ("0.0.0.0", "::") else self.host
        return f"{scheme}://{f'[{host}]' if ':' in host else host}:{self.port}"

    @property
    def endpoint(self) -> HostInfo:
        return HostInfo(self.host, self.port)

    def start(self) -> None:
        """Returns when it answers."""
        self._thread.start()
        self._started.wait(_START_SECONDS)
        if self._failure is not None:
            message = f"the server at {self.url} did not start: {self._failure}"
            raise ConfigError(message) from self._failure

    def _run(self) -> None:
        try:
            with formatting(self._formatter), asyncio.Runner(loop_factory=_new_loop) as runner:
                runner.run(self._serve())
        except BaseException as error:
            self._failure = error
            if self._started.is_set():
                logger.exception("the server at %s has failed", self.url)
        finally:
            self._socket.close()
            self._started.set()

    async def _serve(self) -> None:
        self._loop = asyncio.get_running_loop()
        serving = asyncio.create_task(self._server.serve(sockets=[self._socket]))
        while not self._server.started and not serving.done():
            await asyncio.sleep(0.01)
        self._started.set()
        await serving

    def stop(self) -> None:
        """Ends streams, lets requests finish, and gives the port back."""
        loop = self._loop
        if not self._thread.is_alive() or loop is None:
            self._socket.close()
            return
        try:
            asyncio.run_coroutine_threadsafe(self._end_streams(), loop).result(_END_SECONDS)
        except Exception as error:
            logger.debug("streams did not end by themselves: %s", error)
        self._server.should_exit = True
        self._thread.join()

    async def _end_streams(self) -> None:
        for each in self._application.state.closing:
            await each.close()


def _bound(listening: Listening) -> socket.socket:
    """Binds at once, so that a port that is taken is told to whoever starts."""
    host = "127.0.0.1" if listening.host == "localhost" else listening.host
    try:
        family = socket.getaddrinfo(host, listening.port, type=socket.SOCK_STREAM)[0][0]
        # Named: asyncio sends small answers at once on what it knows to be TCP, and 40 ms later on what it does not.
        bound = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
        try:
            bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            bound.bind((host, listening.port))
            bound.listen(2048)
        except BaseException:
            bound.close()
            raise
    except OSError as error:
        remedy = "choose another port, or 0 for any that is free"
        if isinstance(error, socket.gaierror) or error.errno == errno.EADDRNOTAVAIL:
            remedy = "choose a name or an address of this machine"
        message = f"cannot listen at {listening.host}:{listening.port}: {error.strerror or error}; {remedy}"
        raise ConfigError(message) from error
    return bound

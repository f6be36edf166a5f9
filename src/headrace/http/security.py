"""Security middleware of every request: token, host name, body size, headers for browsers."""

from __future__ import annotations

import hmac
import time
from base64 import b64decode
from collections.abc import Callable, Collection, Mapping
from typing import TypeAlias

from starlette.datastructures import Headers
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from headrace.http.errors import error_response
from headrace.views.peer_authentication import SCHEME, PeerProof

# The console loads nothing from elsewhere and runs no code that is not one of its files.
_PAGE_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
_HEADERS = {
    "Content-Security-Policy": _PAGE_POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
}
_READING = ("GET", "HEAD")
_RAW_HEADERS = [(name.lower().encode(), value.encode()) for name, value in _HEADERS.items()]

Refusal: TypeAlias = Callable[[int, str, str, Mapping[str, str] | None], Response]
"""Makes the answer to a request that is refused: status, code, message, headers."""


class Security:
    """Refuses what must not come in; it wraps the whole application, so no route can be forgotten.

    ``token`` must be in every request, of all routes, unless it is None; ``user``, ``name:password``, is as good.
    ``own_address`` tells where the other processes that share views reach this one; what they ask carries a proof made
    for that address instead of the token, see ``headrace.views.peer_authentication``.
    ``hosts`` are the names by which the server may be called: a page of a stranger whose name leads to this machine is
    not one of them. ``answer`` makes the refusals.
    """

    def __init__(
        self,
        app: ASGIApp,
        *,
        token: str | None,
        user: str | None = None,
        hosts: Collection[str] | None = None,
        body_bytes: int = 65536,
        answer: Refusal = error_response,
        own_address: Callable[[], str] | None = None,
    ) -> None:
        self._app = app
        self._token = None if token is None else token.encode()
        self._proof = None if own_address is None else PeerProof.of(token)
        self._own_address = own_address or (lambda: "")
        self._user = None if user is None else user.encode()
        self._answer = answer
        self._hosts = hosts
        self._body_bytes = body_bytes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] not in ("http", "websocket"):
            await self._app(scope, receive, send)
            return
        refusal = self._refusal(scope)
        if refusal is not None:
            await self._refuse(scope, receive, send, *refusal)
            return
        await self._app(scope, self._limit_body(receive), _with_headers(send))

    def _refusal(self, scope: Scope) -> tuple[int, str, str] | None:
        headers = Headers(scope=scope)
        host = _name(headers.get("host", ""))
        if self._hosts is not None and host not in self._hosts:
            message = f"this server is not called '{host[:100]}'; give it a token if it is to be reached by that name"
            return 421, "wrong-host", message
        if not self._knows(headers) and not self._is_peer(scope, headers):
            ways = [
                *(["'Authorization: Bearer …' with the token, or it as the password"] if self._token else []),
                *(["name and password"] if self._user else []),
            ]
            return 401, "unauthorized", f"this server wants to know who asks: send {', or '.join(ways)}"
        origin = headers.get("origin")
        if origin is not None and _is_foreign(origin, headers.get("host", "")):
            if scope["type"] == "websocket":
                return 403, "wrong-origin", "a page of another site may not follow changes here"
            if scope["method"] not in _READING:
                return 403, "wrong-origin", "a page of another site may not change anything here"
        length = headers.get("content-length", "0")
        if not length.isdigit() or int(length) > self._body_bytes:
            return 413, "too-large", f"a request may have {self._body_bytes} bytes, and needs none"
        return None

    def _knows(self, headers: Headers) -> bool:
        if self._token is None and self._user is None:
            return True
        kind, _, rest = headers.get("authorization", "").partition(" ")
        given = rest.strip().encode(errors="replace")
        # In constant time: how much of a guess was right must not be seen from outside.
        if kind.lower() == "bearer":
            return self._token is not None and hmac.compare_digest(given, self._token)
        if kind.lower() != "basic":
            return False
        try:
            user = b64decode(given, validate=True)
        except ValueError:
            return False
        if self._user is not None and hmac.compare_digest(user, self._user):
            return True
        # What a browser sends when its user is asked: the token is the password, the name does not matter.
        return self._token is not None and hmac.compare_digest(user.partition(b":")[2], self._token)

    def _is_peer(self, scope: Scope, headers: Headers) -> bool:
        kind, _, given = headers.get("authorization", "").partition(" ")
        if self._proof is None or kind.lower() != SCHEME.lower() or scope.get("method") != "GET":
            return False
        path = (scope.get("raw_path") or b"").decode("latin-1").partition("?")[0]
        query = scope.get("query_string", b"").decode("latin-1")
        target = f"{path}?{query}" if query else path
        return self._proof.authorizes(given.strip(), self._own_address(), target, time.time_ns() // 1_000_000)

    async def _refuse(self, scope: Scope, receive: Receive, send: Send, status: int, code: str, message: str) -> None:
        if scope["type"] == "websocket" and "websocket.http.response" not in scope.get("extensions", {}):
            await send({"type": "websocket.close", "code": 1008, "reason": ""})
            return
        response = self._answer(status, code, message, _HEADERS)
        if status == 401:
            # One line each, as browsers want it.
            response.headers.append("WWW-Authenticate", 'Basic realm="headrace"')
            response.headers.append("WWW-Authenticate", "Bearer")
        await response(scope, receive, send)

    def _limit_body(self, receive: Receive) -> Receive:
        """A body without a length is counted while it comes."""
        taken = 0

        async def counted() -> Message:
            nonlocal taken
            message = await receive()
            if message["type"] == "http.request":
                taken += len(message.get("body", b""))
                if taken > self._body_bytes:
                    return {"type": "http.disconnect"}
            return message

        return counted


def _name(host: str) -> str:
    """Returns a host without its port.

    >>> _name("localhost:8080"), _name("[::1]:8080"), _name("db1")
    ('localhost', '::1', 'db1')
    """
    if host.startswith("["):
        return host[1:].partition("]")[0].lower()
    return host.partition(":")[0].lower()


def _is_foreign(origin: str, host: str) -> bool:
    """Tells whether a page is not one of this server's: a browser would send it along with the password it knows.

    >>> _is_foreign("http://localhost:8088", "localhost:8088"), _is_foreign("http://localhost:3000", "localhost:8088")
    (False, True)
    """
    return origin.rpartition("://")[2].lower() != host.lower()


def _with_headers(send: Send) -> Send:
    async def sent(message: Message) -> None:
        if message["type"] == "http.response.start":
            message = {**message, "headers": [*message.get("headers", ()), *_RAW_HEADERS]}
        await send(message)

    return sent

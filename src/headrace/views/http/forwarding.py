"""Forwarding of requests to the instance that has the partition."""

from __future__ import annotations

import json
import ssl
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import httpx

from headrace.http.errors import RequestError, unavailable
from headrace.http.tls import certificate_problem
from headrace.views.metadata import HostInfo
from headrace.views.peer_authentication import PeerProof

FORWARDED = "Headrace-Forwarded"
"""Set on what one instance asks another: that one answers itself, or not at all."""
_TIMEOUT_S = 5.0


@dataclass(frozen=True)
class Forwarded:
    """Answer of another instance."""

    status: int
    body: dict[str, Any]
    headers: Mapping[str, str]


class Peers:
    """The other instances, over connections that are kept; with ``tls`` it says which certificates they may have."""

    def __init__(self, *, token: str | None = None, tls: ssl.SSLContext | None = None) -> None:
        self._scheme = "http" if tls is None else "https"
        self._proof = PeerProof.of(token)
        self._tls = tls
        self._client: httpx.AsyncClient | None = None

    def _open(self) -> httpx.AsyncClient:
        # Made in the loop that uses it.
        if self._client is None:
            self._client = httpx.AsyncClient(timeout=_TIMEOUT_S, trust_env=False, verify=self._tls or False)
        return self._client

    async def ask(
        self,
        hosts: Sequence[HostInfo],
        path: str,
        parameters: Mapping[str, str],
        *,
        bound: str | None = None,
        wait_ms: int = 0,
    ) -> Forwarded:
        """Asks one host after the other until one answers."""
        tried = []
        for host in hosts:
            url = httpx.URL(f"{self._scheme}://{host.address}{path}", params=dict(parameters))
            headers = {FORWARDED: "1"} | ({} if bound is None else {"Headrace-Position": bound})
            if self._proof is not None:
                now_ms = time.time_ns() // 1_000_000
                headers["Authorization"] = self._proof.authorization(host.address, url.raw_path.decode(), now_ms)
            try:
                answer = await self._open().get(url, headers=headers, timeout=_TIMEOUT_S + wait_ms / 1000)
                body = answer.json()
                if not isinstance(body, dict):
                    tried.append(f"{host.address} (no object)")
                    continue
            except (httpx.HTTPError, ValueError) as error:
                problem = certificate_problem(error)
                reason = type(error).__name__ if problem is None else f"its certificate is not trusted: {problem}"
                tried.append(f"{host.address} ({reason})")
                continue
            if answer.status_code == 503 and host is not hosts[-1]:
                tried.append(f"{host.address} (503)")
                continue
            return Forwarded(answer.status_code, body, answer.headers)
        names = ", ".join(tried) or "nobody is known who has it"
        message = f"no instance has answered for this partition: {names}; ask again"
        raise unavailable(message, "not-available")

    async def close(self) -> None:
        client, self._client = self._client, None
        if client is not None:
            await client.aclose()


def raise_for(answer: Forwarded) -> None:
    """Raises the error that another instance has answered with."""
    if answer.status < 400:
        return
    error = answer.body.get("error", {}) if isinstance(answer.body, dict) else {}
    retry = {"Retry-After": "1"} if answer.status == 503 else {}
    text = error.get("message") or json.dumps(answer.body)[:200]
    raise RequestError(answer.status, str(error.get("code", "failed")), str(text), retry)

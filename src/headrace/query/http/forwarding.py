"""Asking another instance for what is not here."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import httpx

from headrace.query.http.errors import RequestError, unavailable
from headrace.query.metadata import HostInfo

FORWARDED = "Headrace-Forwarded"
"""Set on what one instance asks another: that one answers itself, or not at all."""


@dataclass(frozen=True)
class Forwarded:
    """What another instance has answered."""

    status: int
    body: dict[str, Any]
    headers: Mapping[str, str]


class Peers:
    """The other instances, over connections that are kept."""

    def __init__(self, *, token: str | None = None, secure: bool = False, timeout_seconds: float = 5.0) -> None:
        self._scheme = "https" if secure else "http"
        self._headers = {FORWARDED: "1"} | ({} if token is None else {"Authorization": f"Bearer {token}"})
        self._timeout = timeout_seconds
        self._client: httpx.AsyncClient | None = None

    def _open(self) -> httpx.AsyncClient:
        # Made in the loop that uses it. A certificate is checked as the machine checks all others.
        if self._client is None:
            self._client = httpx.AsyncClient(timeout=self._timeout, trust_env=False)
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
        headers = self._headers | ({} if bound is None else {"Headrace-Position": bound})
        for host in hosts:
            url = f"{self._scheme}://{_address(host)}{path}"
            try:
                answer = await self._open().get(
                    url, params=dict(parameters), headers=headers, timeout=self._timeout + wait_ms / 1000
                )
                body = answer.json()
            except (httpx.HTTPError, ValueError) as error:
                tried.append(f"{host.host}:{host.port} ({type(error).__name__})")
                continue
            if answer.status_code == 503 and host is not hosts[-1]:
                tried.append(f"{host.host}:{host.port} (503)")
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


def _address(host: HostInfo) -> str:
    name = f"[{host.host}]" if ":" in host.host else host.host
    return f"{name}:{host.port}"

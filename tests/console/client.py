"""Requests to an application: straight into it, or through a socket where that matters."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import httpx
from starlette.applications import Starlette

from headrace.http.limits import Limits
from headrace.http.server import Listening, Server


class Client:
    """Asks an application in a loop of its own, without a socket; what it answers must have an end."""

    def __init__(self, application: Starlette, base_url: str = "http://localhost") -> None:
        self._runner = asyncio.Runner()
        transport = httpx.ASGITransport(application, raise_app_exceptions=False)
        self._client = httpx.AsyncClient(transport=transport, base_url=base_url)

    def request(self, method: str, path: str, **options: Any) -> httpx.Response:
        return self._runner.run(self._client.request(method, path, **options))

    def get(self, path: str, **options: Any) -> httpx.Response:
        return self.request("GET", path, **options)

    def close(self) -> None:
        self._runner.run(self._client.aclose())
        self._runner.close()


@contextmanager
def served(application: Starlette, **limits: Any) -> Iterator[Server]:
    """Serves an application at a free port."""
    server = Server(application, Listening(), limits=Limits(**limits))
    server.start()
    try:
        yield server
    finally:
        server.stop()

"""An application that is served, on an engine without Spark."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import httpx

from headrace import Streams
from headrace.app.engine import local_engine
from headrace.http.parameters import position_text
from headrace.views import Position
from tests.views.kit import Place, topology_of
from tests.views.programs import build

WORDS = [("a", 1, 1000), ("b", 2, 2000), ("bb", 2, 12_000), ("a", 3, 30_000)]
KEYS = [(f"k{each:03}", each, 40_000) for each in range(50)]


class Running:
    """What its stores say over HTTP, and a way to write more."""

    def __init__(self, directory: Path, **settings: Any) -> None:
        self.place = Place(directory, **{"in": 2, "table": 2, "versions": 1, "global": 1})
        config = self.place.config(**settings)
        self.streams = Streams(
            topology_of(build, config), config, log=self.place.log, engine=local_engine, http="localhost:0"
        )
        self.streams.start()
        assert self.streams.http_address is not None
        self.client = httpx.Client(base_url=self.streams.http_address, timeout=30)
        self.write("table", [("a", {"x": 1}, 1000), ("b/c d", {"y": None}, 1000)])
        self.write("versions", [("a", {"x": 1}, 1000), ("a", {"x": 2}, 2000)])
        self.write("global", [("a", {"x": 1}, 1000)])
        self.write("in", WORDS + KEYS)

    def write(self, topic: str, records: Iterable[tuple[str, Any, int]]) -> Position:
        """Writes records, and waits until they are seen."""
        bound = self.place.write(topic, records).position
        if topic != "global":
            headers = {"Headrace-Position": position_text(bound)}
            found = self.client.get("/stores/counts/keys/a?wait_ms=20000", headers=headers)
            assert found.status_code in (200, 404), found.text
        return bound

    def get(self, path: str, **parameters: Any) -> httpx.Response:
        return self.client.get(path, params=parameters or None)

    def pages(self, store: str, **parameters: Any) -> list[dict[str, Any]]:
        """Returns all rows of a store, page by page."""
        rows: list[dict[str, Any]] = []
        cursor: str | None = None
        while True:
            given = parameters if cursor is None else {**parameters, "cursor": cursor}
            found = self.client.get(f"/stores/{store}/range", params=given)
            assert found.status_code == 200, found.text
            body = found.json()
            assert len(body["rows"]) <= int(parameters.get("limit", 100))
            rows += body["rows"]
            cursor = body["cursor"]
            if cursor is None:
                return rows

    def close(self) -> None:
        self.client.close()
        self.streams.close()
        self.place.close()


def named(rows: Iterable[dict[str, Any]]) -> list[str]:
    """Returns what tells rows from each other."""
    return [json.dumps([row["key"], row.get("window")]) for row in rows]

"""A server with a schema registry for development, on which statements are carried out as users type them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from headrace.devtools.schema_registry import RegistryServer
from headrace.serdes.registry import SchemaRegistry
from tests.sql.server.kit import Client, SqlPlace

EARLIEST = {"auto.offset.reset": "earliest"}


class Guide:
    """What the reader of a guide does."""

    def __init__(self, client: Client, registry: SchemaRegistry) -> None:
        self.client = client
        self.registry = registry

    def run(self, text: str) -> list[Any]:
        """Carries out statements with ``auto.offset.reset`` set to earliest, and waits until queries have read all."""
        answers = self.client.ksql(text, streamsProperties=EARLIEST)
        self.client.settle()
        return answers

    def rows(self, text: str) -> list[Any]:
        """Returns the rows of a query that ends: a pull query, or a push query with LIMIT."""
        body = {"sql": text, "properties": EARLIEST}
        found = self.client.http.post("/query-stream", json=body)
        assert found.status_code == 200, found.text
        return [json.loads(line) for line in found.text.splitlines()[1:]]


@contextmanager
def guide_on(directory: Path, settings: dict[str, str] | None = None) -> Iterator[Guide]:
    """Starts server and registry in a directory."""
    place = SqlPlace(directory)
    try:
        with RegistryServer(place.log, port=0) as registry:
            client = place.server({"ksql.schema.registry.url": registry.url, **(settings or {})})
            yield Guide(client, SchemaRegistry(registry.url))
            client.close()
    finally:
        place.close()

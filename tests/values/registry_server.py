"""A schema registry for tests that speaks HTTP: as much of the protocol as the clients use, and no compatibility rules.

It stands in for a real one, so that the clients' way through HTTP is tested, too, and from several processes.
"""

from __future__ import annotations

import base64
import json
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import unquote, urlsplit

Answer = tuple[int, Any]


class Registry:
    """What is registered: schemas by number, and the numbers of each subject in the order of their versions."""

    def __init__(self, user: str | None = None) -> None:
        self.schemas: list[dict[str, Any]] = []
        self.subjects: dict[str, list[int]] = {}
        self.user = user
        """Name and password that requests must carry, with a colon between them."""

    def post(self, path: str, body: dict[str, Any]) -> Answer:
        if match := re.fullmatch(r"/subjects/([^/]+)/versions", path):
            return 200, {"id": self._register(unquote(match[1]), _schema(body))}
        if match := re.fullmatch(r"/subjects/([^/]+)", path):
            subject, schema = unquote(match[1]), _schema(body)
            for version, number in enumerate(self.subjects.get(subject, ()), start=1):
                if self.schemas[number - 1] == schema:
                    return 200, self._version(subject, version)
            return 404, {"error_code": 40403, "message": "Schema not found"}
        return 404, {"error_code": 404, "message": path}

    def get(self, path: str) -> Answer:
        if match := re.fullmatch(r"/schemas/ids/(\d+)", path):
            number = int(match[1])
            if 1 <= number <= len(self.schemas):
                return 200, self.schemas[number - 1]
            return 404, {"error_code": 40403, "message": f"Schema {number} not found"}
        if match := re.fullmatch(r"/subjects/([^/]+)/versions(?:/(\w+))?", path):
            subject, wanted = unquote(match[1]), match[2]
            count = len(self.subjects.get(subject, ()))
            if count == 0:
                return 404, {"error_code": 40401, "message": f"Subject '{subject}' not found."}
            if wanted is None:
                return 200, list(range(1, count + 1))
            version = count if wanted == "latest" else int(wanted)
            return (200, self._version(subject, version)) if version <= count else (404, {"error_code": 40402})
        return 404, {"error_code": 404, "message": path}

    def _register(self, subject: str, schema: dict[str, Any]) -> int:
        if schema not in self.schemas:
            self.schemas.append(schema)
        number = self.schemas.index(schema) + 1
        versions = self.subjects.setdefault(subject, [])
        if number not in versions:
            versions.append(number)
        return number

    def _version(self, subject: str, version: int) -> dict[str, Any]:
        number = self.subjects[subject][version - 1]
        return {"subject": subject, "version": version, "id": number, **self.schemas[number - 1]}


@contextmanager
def serving(registry: Registry) -> Iterator[str]:
    """Serves the registry; gives its address."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self._answer(registry.get(urlsplit(self.path).path))

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            self._answer(registry.post(urlsplit(self.path).path, body))

        def _answer(self, answer: Answer) -> None:
            if registry.user is not None:
                wanted = f"Basic {base64.b64encode(registry.user.encode()).decode()}"
                if self.headers["Authorization"] != wanted:
                    answer = 401, {"error_code": 401, "message": "Unauthorized"}
            status, body = answer
            data = json.dumps(body).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/vnd.schemaregistry.v1+json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, format: str, *args: Any) -> None:
            """Says nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def _schema(body: dict[str, Any]) -> dict[str, Any]:
    return {
        "schema": body["schema"],
        "schemaType": body.get("schemaType", "AVRO"),
        "references": body.get("references") or [],
    }

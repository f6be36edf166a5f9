"""Stand-in for a Connect worker, for answers that a real one does not give at will."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


class StubWorker:
    """Answers by method and path; several answers for one of them are given one after the other, the last again."""

    def __init__(self) -> None:
        self.answers: dict[str, list[tuple[int, Any]]] = {}
        self.requests: list[str] = []
        """Method and path of each request."""
        self.bodies: list[Any] = []
        self.authorizations: list[str | None] = []
        self.released = threading.Event()
        """Until then nothing is answered, if ``holds``."""
        self.holds = False
        self.url = ""

    def answer(self, request: str, *answers: tuple[int, Any]) -> None:
        self.answers[request] = list(answers)

    def next_answer(self, request: str) -> tuple[int, Any]:
        self.requests.append(request)
        if self.holds:
            self.released.wait()
        known = self.answers.get(request, [(404, {"error_code": 404, "message": f"{request} not found"})])
        return known.pop(0) if len(known) > 1 else known[0]


@contextmanager
def serving(worker: StubWorker) -> Iterator[StubWorker]:
    """Serves it at a free port."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            length = int(self.headers.get("Content-Length") or 0)
            body = self.rfile.read(length)
            worker.bodies.append(json.loads(body) if body else None)
            worker.authorizations.append(self.headers["Authorization"])
            status, answer = worker.next_answer(f"{self.command} {self.path}")
            data = answer.encode() if isinstance(answer, str) else json.dumps(answer).encode()
            try:
                self.send_response(status)
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)
            except OSError:
                # Who has asked has given up.
                pass

        do_POST = do_PUT = do_DELETE = do_GET

        def log_message(self, format: str, *args: Any) -> None:
            """Says nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    worker.url = f"http://127.0.0.1:{server.server_port}"
    try:
        yield worker
    finally:
        worker.released.set()
        server.shutdown()
        thread.join()
        server.server_close()

"""A server for tests: a question per line as JSON, an answer per line as JSON. What people use comes with HTTP."""

from __future__ import annotations

import json
import socket
import socketserver
import threading
from datetime import timedelta
from typing import Any

from headrace.views import HostInfo, KeyQuery, Position, PositionBound, StateQueryRequest
from headrace.views.view_node import ViewNode


def serve(node: ViewNode) -> str:
    """Answers questions to a node, in threads; returns where."""

    class Handler(socketserver.StreamRequestHandler):
        def handle(self) -> None:
            for line in self.rfile:
                self.wfile.write(json.dumps(answer(node, json.loads(line))).encode() + b"\n")

    class Server(socketserver.ThreadingTCPServer):
        daemon_threads = True
        allow_reuse_address = True

    server = Server(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    host, port = server.server_address[:2]
    return f"{host!s}:{port}"


def answer(node: ViewNode, question: dict[str, Any]) -> dict[str, Any]:
    partition = question["partition"]
    request: StateQueryRequest[Any] = (
        StateQueryRequest.in_store(question["store"])
        .with_query(KeyQuery.with_key(question["key"]))
        .with_partitions([partition])
        .with_position_bound(PositionBound.at(Position.from_map(question["bound"])))
        .waiting(timedelta(milliseconds=question["wait_ms"]))
    )
    result = node.views.query(request).partition_results[partition]
    if result.is_failure:
        return {"failure": result.failure_message}
    return {"value": result.result, "active": node.is_active(f"0_{partition}")}


class Client:
    """Asks one node over one connection."""

    def __init__(self, host: HostInfo) -> None:
        self._socket = socket.create_connection((host.host, host.port), timeout=5)
        self._lines = self._socket.makefile("rb")

    def ask(self, **question: Any) -> dict[str, Any]:
        self._socket.sendall(json.dumps(question).encode() + b"\n")
        line = self._lines.readline()
        if not line:
            message = "the node is gone"
            raise ConnectionError(message)
        found: dict[str, Any] = json.loads(line)
        return found

    def close(self) -> None:
        self._lines.close()
        self._socket.close()

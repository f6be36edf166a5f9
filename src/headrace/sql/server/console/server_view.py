"""View of a server for the pages: its queries with their figures, its streams and tables."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

from headrace.console.node_metrics import node_figures
from headrace.console.topology_json import topology_json
from headrace.errors import StreamsError
from headrace.metrics.names import THREAD, MetricName, Metrics
from headrace.metrics.recording import rates_by
from headrace.sql.catalog.internal_topics import is_internal
from headrace.sql.catalog.persistent_query import PersistentQuery
from headrace.sql.hosting.progress import unread
from headrace.sql.hosting.streams_host import application_id
from headrace.sql.server.console.failures import failed_node, failure_text
from headrace.sql.server.console.node_texts import NodeText, node_texts
from headrace.sql.server.errors import NOT_FOUND, RequestError, terminated
from headrace.sql.server.query_info import shown_state
from headrace.sql.server.service import SqlService

_WAITING_SECONDS = 3.0
"""Asking the log is a request to a broker on Kafka, so it is done less often than all the rest."""


class Watching:
    """Answers in any thread. ``clock`` is in seconds."""

    def __init__(self, service: SqlService, *, accepts: bool, clock: Callable[[], float] = time.monotonic) -> None:
        self._service = service
        self._accepts = accepts
        self._clock = clock
        self._lock = threading.Lock()
        self._waiting: dict[str, int | None] = {}
        self._asked: float | None = None
        self._texts: dict[str, tuple[PersistentQuery, dict[str, NodeText]]] = {}

    # Any: what JSON holds, in all of these.
    def now(self) -> dict[str, Any]:
        """Returns what changes all the time."""
        queries = list(self._service.engine.catalog.queries.values())
        waiting = self._waiting_records()
        return {
            "server": {
                "service_id": self._service.service_id,
                "accepts_statements": self._accepts,
                "position": self._service.position,
                "following": self._service.figures()["following"],
            },
            "queries": [self._figures(query, waiting.get(query.id)) for query in queries],
        }

    def _waiting_records(self) -> dict[str, int | None]:
        service = self._service
        with self._lock:
            queries = list(service.engine.catalog.queries.values())
            now = self._clock()
            known = all(query.id in self._waiting for query in queries)
            if self._asked is None or not known or now - self._asked >= _WAITING_SECONDS:
                self._asked = now
                self._waiting = {query.id: _unread(query, service) for query in queries}
            return self._waiting

    def _figures(self, query: PersistentQuery, waiting: int | None) -> dict[str, Any]:
        host = self._service.host
        status, metrics = host.status(query.id), host.metrics(query.id)
        error = None
        if status.error is not None:
            application = application_id(self._service.service_id, query.id)
            error = failure_text(status.error, query, application, self._node_texts(query))
        return {
            "id": query.id,
            "state": shown_state(query.id, host),
            "error": error,
            "error_details": status.error,
            "restarts": status.restarts,
            "sink": query.sink,
            "sink_topic": query.sink_topic,
            "sources": list(query.sources),
            "records_in": status.metrics.get("records-consumed-total"),
            "records_out": status.metrics.get("records-produced-total"),
            "rate_in": _rate(metrics, "records-consumed-rate"),
            "rate_out": _rate(metrics, "records-produced-rate"),
            "state_rows": status.metrics.get("state-rows"),
            "waiting": waiting,
        }

    def _node_texts(self, query: PersistentQuery) -> dict[str, NodeText]:
        with self._lock:
            known = self._texts.get(query.id)
            if known is None or known[0] is not query:
                running = self._service.engine.catalog.queries
                self._texts = {name: each for name, each in self._texts.items() if name in running}
                known = self._texts[query.id] = (query, node_texts(query))
            return known[1]

    def query(self, query_id: str) -> dict[str, Any]:
        """Returns one query with its topology, and how fast records go through it."""
        service = self._service
        query = service.engine.catalog.queries.get(query_id)
        if query is None:
            raise RequestError(NOT_FOUND, f"There is no query {query_id}; it may have been terminated")
        application = application_id(service.service_id, query.id)
        metrics = service.host.metrics(query.id)
        texts = self._node_texts(query)
        figures = self._figures(query, self._waiting_records().get(query.id))
        nodes = {} if metrics is None else node_figures(query.topology, application, metrics)
        failed = failed_node(figures["error_details"] or "", texts)
        if failed is not None:
            nodes.setdefault(failed, {})["failed"] = True
        return {
            **figures,
            "statement": terminated(query.statement.text),
            "application_id": application,
            "topology": topology_json(query.topology, application, lambda: service.log),
            "description": str(query.topology.describe()),
            "texts": {name: {"sql": text.sql, "role": text.role} for name, text in texts.items()},
            "nodes": nodes,
        }

    def catalog(self) -> dict[str, Any]:
        """Returns the streams, the tables, and the topics that are nobody's internal ones."""
        self._service.catch_up()
        sources = [source for _, source in sorted(self._service.engine.catalog.sources.items())]
        topics = self._service.log.partition_counts()
        return {
            "streams": [{"name": each.name, "topic": each.topic} for each in sources if not each.is_table],
            "tables": [{"name": each.name, "topic": each.topic} for each in sources if each.is_table],
            "topics": [
                {"name": name, "partitions": count} for name, count in sorted(topics.items()) if not is_internal(name)
            ],
        }


def _unread(query: PersistentQuery, service: SqlService) -> int | None:
    try:
        return unread(service.log, application_id(service.service_id, query.id), query.source_topics)
    except (StreamsError, OSError):
        # A log that does not answer is told by what cannot be read; the list of queries is still there.
        return None


def _rate(metrics: Metrics | None, name: str) -> float | None:
    if metrics is None:
        return None
    values = {each: metrics[each] for each in metrics if isinstance(each, MetricName)}
    return round(sum(rates_by(values, name, THREAD, "thread-id").values()), 1)

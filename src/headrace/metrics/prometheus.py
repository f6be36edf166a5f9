"""Metrics as Prometheus reads them."""

from __future__ import annotations

import math
import re
from typing import Any

from headrace.metrics.names import MetricName, Metrics

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
_ILLEGAL = re.compile(r"[^a-zA-Z0-9_]")
_PREFIX = "kafka_streams"
_HELP = {
    "commit-total": "Micro-batches that were committed",
    "dead-letters-total": "Records that went to the dead-letter topic",
    "dropped-records-total": "Records that were dropped, late ones included",
    "expired-rows-total": "Rows that were deleted because their time to live was over",
    "late-records-total": "Records that came after their window had closed",
    "phase-time-total": "Milliseconds spent in a phase of the micro-batches",
    "hit-ratio-avg": "Share of the rows asked for that a record cache had, by micro-batch",
    "process-latency-avg": "Milliseconds; of a task per record, of a thread per micro-batch",
    "process-total": "Records that were processed",
    "punctuate-total": "Punctuations that were called",
    "record-lateness-avg": "Milliseconds by which records are behind the stream time",
    "records-lag": "Records that wait in the log",
    "restore-remaining-records-total": "Rows that a task still has to restore before it can go on",
    "restore-total": "Rows that were restored into working copies",
    "stalled": "1 if nothing moves although it should; the label says why",
    "state-rows": "Rows in all stores",
}


def prometheus_text(metrics: Metrics) -> str:
    """Writes metrics in the text format of Prometheus.

    >>> lag = MetricName("records-lag", "stream-metrics", (("client-id", "shop"),))
    >>> print(prometheus_text(Metrics({lag: 5}, {})), end="")
    # HELP kafka_streams_stream_metrics_records_lag Records that wait in the log
    # TYPE kafka_streams_stream_metrics_records_lag gauge
    kafka_streams_stream_metrics_records_lag{client_id="shop"} 5
    """
    families: dict[str, tuple[MetricName, list[tuple[tuple[tuple[str, str], ...], Any]]]] = {}
    for metric in metrics:
        value = metrics[metric]
        tags = metric.tags
        if isinstance(value, str):
            # Prometheus has numbers only: text becomes a label.
            tags, value = (*tags, ("value", value)), 1
        if isinstance(value, int | float):
            families.setdefault(_family(metric), (metric, []))[1].append((tags, value))
    lines = []
    for family, (metric, several) in sorted(families.items()):
        lines.append(f"# HELP {family} {_HELP.get(metric.name, metric.name.replace('-', ' '))}")
        lines.append(f"# TYPE {family} {'counter' if metric.is_counter else 'gauge'}")
        lines += [f"{family}{_labels(tags)} {_number(value)}" for tags, value in sorted(several)]
    return "\n".join([*lines, ""])


def _family(metric: MetricName) -> str:
    return _ILLEGAL.sub("_", f"{_PREFIX}_{metric.group}_{metric.name}")


def _labels(tags: tuple[tuple[str, str], ...]) -> str:
    if not tags:
        return ""
    return "{" + ",".join(f'{_ILLEGAL.sub("_", name)}="{_escaped(value)}"' for name, value in tags) + "}"


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def _number(value: float) -> str:
    if isinstance(value, bool):
        return str(int(value))
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else ("+Inf" if value > 0 else "-Inf")
    return repr(value)

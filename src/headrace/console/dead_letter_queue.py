"""Dead-letter queue for the console: the reason of each record, and where the record is."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from headrace.topics.log import Raw, ReadableLog

_PREFIX = "__streams.errors."
_PAGE = 200


def read_dead_letters(log: ReadableLog, topics: Sequence[str], limit: int) -> dict[str, Any]:
    """Returns the newest dead letters of some topics, the newest first."""
    counts = log.partition_counts()
    targets = [(topic, each) for topic in topics for each in range(counts.get(topic, 0))]
    begins, ends = log.begin_offsets(targets), log.end_offsets(targets)
    records: list[dict[str, Any]] = []
    for target in targets:
        start = max(begins[target], ends[target] - limit)
        while start < ends[target]:
            found = log.read(*target, start, ends[target], max_records=_PAGE)
            if not found:
                break
            records += [_dead_letter_json(raw, target[0]) for raw in found]
            start = found[-1][0] + 1
    records.sort(key=lambda record: record["timestamp_ms"], reverse=True)
    return {"records": records[:limit], "topics": list(topics)}


def _dead_letter_json(raw: Raw, dead_letter_topic: str) -> dict[str, Any]:
    _, timestamp_ms, key, value, headers = raw
    said = {
        name.removeprefix(_PREFIX): None if data is None else data.decode(errors="replace")
        for name, data in headers
        if name.startswith(_PREFIX)
    }
    exception, message = said.get("exception"), said.get("message")
    return {
        "timestamp_ms": timestamp_ms,
        "dead_letter_topic": dead_letter_topic,
        "reason": ": ".join(each for each in (exception, message) if each) or "no reason is given",
        "stacktrace": said.get("stacktrace"),
        "node": said.get("node"),
        "topic": said.get("topic"),
        "partition": _parse_int(said.get("partition")),
        "offset": _parse_int(said.get("offset")),
        "key": key,
        "value": value,
    }


def _parse_int(text: str | None) -> int | None:
    try:
        return None if text is None else int(text)
    except ValueError:
        return None

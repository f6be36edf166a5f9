"""A server that is killed in the middle of statements and rows, again and again, and what is there in the end."""

from __future__ import annotations

import json
import os
import signal
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx

from headrace import EmbeddedLog
from headrace.sql.hosting.progress import wait_until_read
from headrace.sql.hosting.streams_host import application_id
from tests.sql.server.kit import SOON, SqlPlace
from tests.sql.server.process import ServerProcess

_ROUNDS = 6
Start = Callable[..., ServerProcess]
EARLIEST = {"auto.offset.reset": "earliest"}


def _statements() -> Iterator[str]:
    yield "CREATE STREAM S (K INT KEY, V STRING) WITH (KAFKA_TOPIC='s', VALUE_FORMAT='JSON', PARTITIONS=2);"
    yield "CREATE TABLE LAST AS SELECT K, MAX(V) AS V, COUNT(*) AS N FROM S GROUP BY K;"
    for number in range(_ROUNDS):
        yield f"CREATE STREAM C{number} AS SELECT K, CONCAT(V, '{number}') AS V FROM S;"
        yield from (f"INSERT INTO S VALUES ({key}, 'v{number}');" for key in range(4))
        yield f"CREATE TYPE T{number} AS STRUCT<A INT, B ARRAY<STRING>>;"
        if number % 2:
            yield f"TERMINATE CSAS_C{number - 1}_{number};"
            yield f"DROP STREAM C{number - 1};"


def _send(process: ServerProcess, text: str) -> bool:
    """Returns whether the statement is carried out, now or before its answer was lost."""
    try:
        found = httpx.post(f"{process.url}/ksql", json={"ksql": text}, timeout=SOON.total_seconds())
    except httpx.TransportError:
        return False
    done = ("already exists", "already registered", "Unknown queryId", "does not exist")
    assert found.status_code == 200 or any(each in found.text for each in done), found.text
    return True


def test_killed_server_loses_nothing(tmp_path: Path, start: Start) -> None:
    directory = tmp_path / "killed"
    directory.mkdir()
    process = start(directory)
    kills = {4, 19, 33}
    for number, text in enumerate(_statements()):
        if number in kills:
            # Somewhere in the middle of it.
            timer = threading.Timer(0.004 * (number % 7), os.kill, (process.pid, signal.SIGKILL))
            timer.start()
            _send(process, text)
            timer.join()
            process.end(signal.SIGKILL)
            process = start(directory)
        assert _send(process, text)
    killed = _outcome(directory, process.url)
    process.end(signal.SIGTERM)

    undisturbed = SqlPlace(tmp_path / "undisturbed")
    client = undisturbed.server()
    for text in _statements():
        client.ksql(text)
    expected = _outcome(undisturbed.directory, client.server.url)
    client.close()
    undisturbed.close()
    assert killed == expected


def test_what_push_queries_have_left_is_gone_after_the_next_start(tmp_path: Path, start: Start) -> None:
    process = start(tmp_path)
    setup = (
        "CREATE STREAM \"a-b\" (K INT KEY, V INT) WITH (KAFKA_TOPIC='s', VALUE_FORMAT='JSON', PARTITIONS=1);"
        'INSERT INTO "a-b" VALUES (1, 1);'
    )
    assert _send(process, setup)
    body = {"ksql": 'SELECT K, SUM(V) FROM "a-b" GROUP BY K EMIT CHANGES;', "streamsProperties": EARLIEST}
    with httpx.stream("POST", f"{process.url}/query", json=body, timeout=SOON.total_seconds()) as answer:
        # The first line has an end when the first row is there.
        next(answer.iter_lines())
        process.end(signal.SIGKILL)
    left = _left(tmp_path)
    assert any(each.startswith("_headrace_sql_default_query_transient_") for each in left), left
    assert any(each.endswith("-changelog") for each in left), left
    process = start(tmp_path)
    assert _left(tmp_path) == {"_headrace_sql_default__commands", "_headrace_sql_default__servers", "s"}
    process.end(signal.SIGTERM)


def _left(directory: Path) -> set[str]:
    """Returns the names of topics, and those of applications that have progress."""
    log = EmbeddedLog(directory / "log", sync="none")
    try:
        return {*log.topics(), *log.applications()}
    finally:
        log.close()


def _outcome(directory: Path, url: str) -> dict[str, object]:
    """Returns the catalogue, the last row of each key, and whether every query has answered each record once."""
    answers = httpx.post(
        f"{url}/ksql", json={"ksql": "SHOW STREAMS; SHOW TABLES; SHOW TYPES; SHOW QUERIES;"}, timeout=60
    ).json()
    queries = {each["id"]: each["sinkKafkaTopics"][0] for each in answers[3]["queries"]}
    log = EmbeddedLog(directory / "log", sync="none")
    try:
        assert wait_until_read(log, {application_id("default_", each): ["s"] for each in queries}, SOON)
        inserted = sorted(_values(log, "s"))
        counts: dict[str, bool] = {}
        for query, topic in queries.items():
            if query.startswith("CSAS_"):
                suffix = topic.removeprefix("C")
                wanted = sorted((key, value["V"] + suffix) for key, value in _rows(log, "s"))
                counts[topic] = wanted == sorted((key, value["V"]) for key, value in _rows(log, topic))
        last = {key: value["V"] for key, value in _rows(log, "LAST")}
        # An insert whose answer was lost was sent again, so its row may be there twice; but it was counted so, too.
        total = {key: value["N"] for key, value in _rows(log, "LAST")}
        counted = {key: sum(each == key for each, _ in _rows(log, "s")) for key in total}
    finally:
        log.close()
    assert total == counted
    return {
        "streams": answers[0]["streams"],
        "tables": answers[1]["tables"],
        "types": answers[2]["types"],
        "queries": sorted(queries),
        "rows": sorted(set(inserted)),
        "last": last,
        "counts": counts,
    }


def _rows(log: EmbeddedLog, topic: str) -> list[tuple[bytes | None, dict[str, Any]]]:
    partitions = range(log.describe_topic(topic).partitions)
    return [(raw[2], json.loads(raw[3] or b"{}")) for each in partitions for raw in log.read(topic, each, 0)]


def _values(log: EmbeddedLog, topic: str) -> list[str]:
    return [f"{key!r} {value['V']}" for key, value in _rows(log, topic)]

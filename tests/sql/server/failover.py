"""Load on a server that is killed, and on the one that takes over; then what their queries have come to."""

from __future__ import annotations

import json
import time
from collections import Counter
from typing import Any

import httpx

from headrace.topics.log import TopicLog
from tests.sql.server.kit import SOON
from tests.sql.server.process import ServerProcess

KEYS = 5


def statements(prefix: str) -> str:
    """Returns sources and queries of several kinds; their topics begin with the prefix."""
    return (
        f"CREATE STREAM S (K INT KEY, V INT) WITH (KAFKA_TOPIC='{prefix}s', VALUE_FORMAT='JSON', PARTITIONS=2);"
        f"CREATE TABLE NAMES (K INT PRIMARY KEY, NAME STRING) "
        f"WITH (KAFKA_TOPIC='{prefix}names', VALUE_FORMAT='JSON', PARTITIONS=2);"
        + "".join(f"INSERT INTO NAMES VALUES ({key}, 'n{key}');" for key in range(KEYS))
        + f"CREATE STREAM EVEN WITH (KAFKA_TOPIC='{prefix}even') AS SELECT * FROM S WHERE V % 2 = 0;"
        f"CREATE TABLE COUNTS WITH (KAFKA_TOPIC='{prefix}counts') AS SELECT K, COUNT(*) AS N FROM S GROUP BY K;"
        f"CREATE TABLE DAYS WITH (KAFKA_TOPIC='{prefix}days') AS "
        "SELECT K, COUNT(*) AS N FROM S WINDOW TUMBLING (SIZE 1000 DAYS) GROUP BY K;"
        f"CREATE STREAM NAMED WITH (KAFKA_TOPIC='{prefix}named') AS "
        "SELECT S.K AS K, V, NAME FROM S JOIN NAMES ON S.K = NAMES.K;"
    )


class Load:
    """Rows that are inserted one after the other, at whichever server answers."""

    def __init__(self, http: httpx.Client, *servers: ServerProcess) -> None:
        self._http = http
        self._servers = list(servers)
        self.sent = 0

    def ask(self, text: str) -> Any:
        """Returns the answer of the first server that gives one."""
        for server in self._servers:
            try:
                found = self._http.post(f"{server.url}/ksql", json={"ksql": text})
            except httpx.TransportError:
                continue
            assert found.status_code == 200, found.text
            return found.json()
        message = "no server answers"
        raise AssertionError(message)

    def insert(self, count: int) -> None:
        for _ in range(count):
            self.ask(f"INSERT INTO S VALUES ({self.sent % KEYS}, {self.sent});")
            self.sent += 1


def check_results(load: Load, log: TopicLog, prefix: str) -> None:
    """Waits until the queries have answered everything, and compares with what was inserted."""
    rows = [(_number(key), json.loads(value or b"{}")["V"]) for key, value in _records(log, f"{prefix}s")]
    # A row whose answer was lost was sent again.
    assert {value for _, value in rows} == set(range(load.sent))
    counts = Counter(key for key, _ in rows)
    deadline = time.monotonic() + SOON.total_seconds()
    while (found := _results(log, prefix)) != (expected := _expected(rows, counts)):
        assert time.monotonic() < deadline, (found, expected)
        time.sleep(0.2)
    queries = load.ask("SHOW QUERIES EXTENDED;")[0]["queryDescriptions"]
    assert [(each["state"], each["queryErrors"]) for each in queries] == [("RUNNING", [])] * 4


def _expected(rows: list[tuple[int, int]], counts: Counter[int]) -> tuple[object, ...]:
    return (
        Counter(value for _, value in rows if value % 2 == 0),
        dict(counts),
        dict(counts),
        Counter((value, f"n{key}") for key, value in rows),
        # One row for each record, none of them twice.
        sum(counts.values()),
    )


def _results(log: TopicLog, prefix: str) -> tuple[object, ...]:
    even = Counter(json.loads(value or b"{}")["V"] for _, value in _records(log, f"{prefix}even"))
    named = Counter(
        (row["V"], row["NAME"]) for _, value in _records(log, f"{prefix}named") for row in [json.loads(value or b"{}")]
    )
    counted = _records(log, f"{prefix}counts")
    last, days = (
        {_number(key): json.loads(value or b"{}")["N"] for key, value in records}
        for records in (counted, _records(log, f"{prefix}days"))
    )
    return even, last, days, named, len(counted)


def _number(key: bytes | None) -> int:
    return int.from_bytes((key or b"")[:4], "big")


def _records(log: TopicLog, topic: str) -> list[tuple[bytes | None, bytes | None]]:
    found: list[tuple[bytes | None, bytes | None]] = []
    for partition in range(log.describe_topic(topic).partitions):
        start = 0
        while read := log.read(topic, partition, start):
            found += [(key, value) for _, _, key, value, _ in read]
            start = read[-1][0] + 1
    return found

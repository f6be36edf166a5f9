"""A micro-batch that fails between two levels, and the remedy: one case for every engine and log."""

from __future__ import annotations

import json
from typing import Any, Protocol

import pytest

from headrace import LogAndContinueExceptionHandler, Produced, Serdes, StreamsBuilder
from headrace.errors import DeserializationError
from headrace.topics.journal import DurableLog
from headrace.topics.log import Output

USERS = ("ann", "bob", "cyd", "dan")


class Run(Protocol):
    """Runs an application, with the settings given, until it has read everything that is there."""

    def __call__(self, build: Any, **settings: Any) -> object: ...


def counts_by_user(builder: StreamsBuilder) -> None:
    """Counts in the second level: the records of both partitions go to either of its tasks."""
    grouped = builder.stream("in").group_by(lambda _key, value: value["user"])
    grouped.count().to_stream().to("out", Produced(value_serde=Serdes.json()))


def check_that_all_results_come_once(log: DurableLog, run: Run) -> None:
    """Writes 40 records and one that cannot be read; all 40 counts must come out once, after what the error says."""
    log.create_topic("in", partitions=2)
    log.create_topic("out", partitions=2)
    # Without a cache every record gives a result, so that none can be missing or doubled without being seen.
    settings = {"statestore_cache_max_bytes": 0}
    write(log, range(30))
    run(counts_by_user, **settings)
    write(log, range(30, 40))
    log.append("in", [(0, 1_040, b"k", b"no JSON", ())])
    with pytest.raises(DeserializationError, match="let deserialization_exception_handler skip such records"):
        run(counts_by_user, **settings)
    # What partition 1 has sent to the second level is committed on Kafka, but nobody there has run on a part of it.
    assert sorted(results(log)) == expected(30)
    run(counts_by_user, deserialization_exception_handler=LogAndContinueExceptionHandler(), **settings)
    assert sorted(results(log)) == expected(40)


def write(log: DurableLog, numbers: range) -> None:
    """Writes records in turn to both partitions, and to each of them for every user."""
    records: list[Output] = [
        (n % 2, 1_000 + n, b"k", json.dumps({"user": USERS[n // 2 % len(USERS)]}).encode(), ()) for n in numbers
    ]
    log.append("in", records)


def expected(number: int) -> list[tuple[str, int]]:
    """Returns the results of so many records: each user's counts, from one up."""
    users = [USERS[n // 2 % len(USERS)] for n in range(number)]
    return sorted((user, count) for user in USERS for count in range(1, users.count(user) + 1))


def results(log: DurableLog) -> list[tuple[str, int]]:
    return [
        (key.decode(), json.loads(value))
        for partition in range(2)
        for _, _, key, value, _ in log.read("out", partition, 0)
        if key is not None and value is not None
    ]

"""What must be true after whatever has happened.

How input is cut into batches depends on time, and with it when a table's row is seen by a join behind a repartition. So
two things are checked. With the plans of the run, which say what each batch read, everything follows from the input:
every topic must have, byte for byte, what a run of the same plans writes that nobody disturbs. And what does not depend
on batches must be what a few lines of Python find in the input: each order counted once, joined once, paid as often as
it was paid.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable
from typing import Any

from headrace.topics.log import Output, Raw, TopicLog
from tests.spark.faults import shop


def contents(log: TopicLog, topic: str) -> dict[int, list[Raw]]:
    """Returns all records of a topic by partition."""
    found: dict[int, list[Raw]] = {}
    for partition in range(log.describe_topic(topic).partitions):
        found[partition] = []
        start = log.begin_offsets([(topic, partition)])[topic, partition]
        while part := log.read(topic, partition, start):
            found[partition] += part
            start = part[-1][0] + 1
    return found


def check_equal(disturbed: TopicLog, undisturbed: TopicLog) -> int:
    """Checks that two logs have the same records, in their order, with times and headers; returns how many.

    Changelogs are compacted while the application runs: of them, what is left must be what was written at its offset,
    and nothing may be missing that is the last of its key.
    """
    assert disturbed.topics() == undisturbed.topics()
    count = 0
    for topic in disturbed.topics():
        found, expected = contents(disturbed, topic), contents(undisturbed, topic)
        begins = disturbed.begin_offsets([(topic, partition) for partition in expected])
        for partition, written in expected.items():
            mine = found[partition]
            # What has gone over a back edge is deleted now and then.
            records = [record for record in written if record[0] >= begins[topic, partition]]
            if disturbed.describe_topic(topic).is_compacted:
                left = {record[0] for record in mine}
                last = {record[2]: record[0] for record in records if record[3] is not None}
                last |= {
                    record[2]: -1 for record in records if record[3] is None and record[0] > last.get(record[2], -1)
                }
                assert left >= set(last.values()) - {-1}, f"{topic}-{partition} has lost rows"
                records = [record for record in records if record[0] in left]
            for one, other in zip(mine, records, strict=False):
                assert one == other, f"{topic}-{partition} differs"
            assert len(mine) == len(records), f"{topic}-{partition} has another number of records"
            count += len(records)
        ends = [(topic, partition) for partition in expected]
        assert disturbed.end_offsets(ends) == undisturbed.end_offsets(ends), f"{topic} has another end"
    return count


def check_against_input(log: TopicLog, inputs: Iterable[tuple[str, Output]]) -> None:
    """Checks what does not depend on batches."""
    by_topic: dict[str, list[tuple[str, Any, int]]] = {topic: [] for topic in shop.INPUTS}
    for topic, (_, time_ms, key, value, _) in inputs:
        assert key is not None
        by_topic[topic].append((key.decode(), _value(value), time_ms))
    _check_enriched(log, by_topic["orders"])
    _check_counts(log, by_topic["orders"])
    _check_paid(log, by_topic["orders"], by_topic["payments"])
    _check_cities(log, by_topic["users"], by_topic["cities"])


def _check_enriched(log: TopicLog, orders: list[tuple[str, Any, int]]) -> None:
    found = Counter((key, value[0], time_ms) for key, value, time_ms in _output(log, "enriched"))
    assert found == Counter((order["user"], order["n"], time_ms) for _, order, time_ms in orders)


def _check_counts(log: TopicLog, orders: list[tuple[str, Any, int]]) -> None:
    """Every update is there: the counts of a user's window are 1, 2, 3 and so on, in this order."""
    expected = Counter(f"{order['user']}@{time_ms - time_ms % shop.WINDOW_MS}" for _, order, time_ms in orders)
    found: dict[str, list[int]] = {}
    for key, count, _ in _output(log, "counts"):
        found.setdefault(key, []).append(count)
    assert found == {key: list(range(1, count + 1)) for key, count in expected.items()}


def _check_paid(log: TopicLog, orders: list[tuple[str, Any, int]], payments: list[tuple[str, Any, int]]) -> None:
    times = {key: (order["n"], time_ms) for key, order, time_ms in orders}
    expected: Counter[tuple[str, int, int, int]] = Counter()
    for key, payment, time_ms in payments:
        n, ordered_ms = times[key]
        if abs(time_ms - ordered_ms) <= shop.PAID_WITHIN_MS:
            expected[key, n, payment["n"], max(time_ms, ordered_ms)] += 1
    assert Counter((key, *pair, time_ms) for key, pair, time_ms in _output(log, "paid")) == expected


def _check_cities(log: TopicLog, users: list[tuple[str, Any, int]], cities: list[tuple[str, Any, int]]) -> None:
    """The last row of every user is the join of the last rows of the tables."""
    last_user = {key: user for key, user, _ in users}
    last_city = {key: city for key, city, _ in cities}
    expected = {
        key: [user["v"], last_city[user["city"]]]
        for key, user in last_user.items()
        if user is not None and last_city.get(user["city"]) is not None
    }
    found = {key: row for key, row, _ in _output(log, "user-cities")}
    assert {key: row for key, row in found.items() if row is not None} == expected


def check_consumed(log: TopicLog) -> None:
    """Checks that the whole input was read: positions are the ends."""
    targets = [(topic, partition) for topic in shop.INPUTS for partition in range(shop.PARTITIONS)]
    positions = log.positions(shop.APPLICATION)
    assert {target: positions.get(target) for target in targets} == log.end_offsets(targets)


def _output(log: TopicLog, topic: str) -> list[tuple[str, Any, int]]:
    return [
        (key.decode(), _value(value), time_ms)
        for records in contents(log, topic).values()
        for _, time_ms, key, value, _ in records
        if key is not None
    ]


def _value(data: bytes | None) -> Any:
    return None if data is None else json.loads(data)

"""Checks after faults: results, state and progress as without them.

How input is cut into batches depends on time, and with it when a table's row is seen by a join behind a repartition.
What does not depend on batches must be what a run leaves that nobody disturbs, and what a few lines of Python find in
the input: each order counted once, joined once, paid as often as it was paid. What functions return that never return
the same twice is there once, and everywhere the same: in outputs, behind a repartition, and in stores.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator
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
    """Checks that two logs have the same results, as far as they do not depend on batches; returns how many."""
    count = 0
    for mine, other in zip(_results(disturbed), _results(undisturbed), strict=True):
        assert mine == other
        count += sum(mine.values()) if isinstance(mine, Counter) else len(mine)
    for store in ("users-store", "cities-store", "counts-store"):
        rows = last_rows(disturbed, store)
        assert rows == last_rows(undisturbed, store), f"'{store}' has other rows"
        count += len(rows)
    return count


def _results(log: TopicLog) -> Iterator[dict[Any, Any]]:
    yield Counter((key, value[0], time_ms) for key, value, time_ms in _output(log, "enriched"))
    yield Counter((key, *pair, time_ms) for key, pair, time_ms in _output(log, "paid"))
    counts: dict[str, list[int]] = {}
    for key, count, _ in _output(log, "counts"):
        counts.setdefault(key, []).append(count)
    yield counts
    yield {key: row for key, row in _last(_output(log, "user-cities")).items() if row is not None}
    yield Counter(order["n"] for _, order, _ in _output(log, "stamped"))
    yield Counter((key, row["n"]) for key, row, _ in _output(log, "stamps"))


def last_rows(log: TopicLog, store: str) -> dict[bytes | None, tuple[int, bytes]]:
    """Returns time and value of the rows that a store has, by what its changelog says."""
    last = {
        key: (time_ms, value)
        for records in contents(log, f"{shop.APPLICATION}-{store}-changelog").values()
        for _, time_ms, key, value, _ in records
    }
    return {key: (time_ms, value) for key, (time_ms, value) in last.items() if value is not None}


def _last(records: Iterable[tuple[str, Any, int]]) -> dict[str, Any]:
    return {key: value for key, value, _ in records}


def _check_stamps(log: TopicLog, orders: list[tuple[str, Any, int]]) -> None:
    """What a function has made up is there once, and the same for all who have got it."""
    stamped = {order["n"]: order for _, order, _ in _output(log, "stamped")}
    assert len(_output(log, "stamped")) == len(stamped) == len(orders)
    assert len({order["id"] for order in stamped.values()}) == len(orders), "stamps are never the same"
    again = _output(log, "stamps")
    assert Counter((key, row["n"]) for key, row, _ in again) == Counter((o["user"], o["n"]) for _, o, _ in orders)
    for _, row, _ in again:
        assert row["id"] == stamped[row["n"]]["id"], "what was sent on is not what was written"
    assert len({row["own"] for _, row, _ in again}) == len(orders)
    kept = {(key or b"").decode(): json.loads(value) for key, (_, value) in last_rows(log, "stamps-store").items()}
    assert kept == _last(again), "a store has another row than it has sent last"


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
    _check_stamps(log, by_topic["orders"])


def _check_enriched(log: TopicLog, orders: list[tuple[str, Any, int]]) -> None:
    found = Counter((key, value[0], time_ms) for key, value, time_ms in _output(log, "enriched"))
    wanted = Counter((order["user"], order["n"], time_ms) for _, order, time_ms in orders)
    assert found == wanted, f"too many: {found - wanted}; missing: {wanted - found}"


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
    found = {key: row for key, row in _last(_output(log, "user-cities")).items() if row is not None}
    assert found == expected, f"differ: {set(map(repr, found.items())) ^ set(map(repr, expected.items()))}"


def check_consumed(log: TopicLog) -> None:
    """Checks that the whole input was read, with what the application has sent to itself."""
    assert not unread(log)


def unread(log: TopicLog) -> dict[tuple[str, int], tuple[int, int]]:
    """Returns position and end of those partitions that are not read to their ends.

    Positions come first: a batch that is committed later moves both, and the answers that it has sent itself would be
    overlooked if their end had been asked before.
    """
    positions = log.positions(shop.APPLICATION)
    topics = [topic for topic in log.topics() if topic in shop.INPUTS or topic.endswith("response-topic")]
    ends = log.end_offsets([(topic, partition) for topic in topics for partition in range(shop.PARTITIONS)])
    return {target: (positions.get(target, 0), end) for target, end in ends.items() if positions.get(target, 0) != end}


def _output(log: TopicLog, topic: str) -> list[tuple[str, Any, int]]:
    return [
        (key.decode(), _value(value), time_ms)
        for records in contents(log, topic).values()
        for _, time_ms, key, value, _ in records
        if key is not None
    ]


def _value(data: bytes | None) -> Any:
    return None if data is None else json.loads(data)

"""Rows for many queries of five kinds, sent without a pause, and the results that plain Python finds for them."""

from __future__ import annotations

import itertools
import json
import random
import threading
import time
from bisect import bisect_left, bisect_right
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import httpx

from headrace.topics.log import Raw, TopicLog

CUSTOMERS = 50
WINDOW_MS = 10_000
_PATIENCE_S = 60.0
_EARLIEST = {"auto.offset.reset": "earliest"}
SOURCES = """
    CREATE STREAM orders (customer STRING KEY, id BIGINT, amount DOUBLE)
        WITH (KAFKA_TOPIC='orders', VALUE_FORMAT='JSON', PARTITIONS=1);
    CREATE STREAM payments (customer STRING KEY, id BIGINT, amount DOUBLE)
        WITH (KAFKA_TOPIC='payments', VALUE_FORMAT='JSON', PARTITIONS=1);
    CREATE TABLE customers (customer STRING PRIMARY KEY, region INT)
        WITH (KAFKA_TOPIC='customers', VALUE_FORMAT='JSON', PARTITIONS=1);
"""


class Row(NamedTuple):
    """A row of one of the two streams."""

    customer: str
    id: int
    amount: float
    time_ms: int


Results = list[tuple[Any, ...]]


class Kind(NamedTuple):
    """A kind of query: its statement, and its results by Python's own reckoning and as they were written."""

    statement: str
    expected: Callable[[Sequence[Row], Sequence[Row]], Iterable[tuple[Any, ...]]]
    written: Callable[[bytes, Mapping[str, Any]], tuple[Any, ...]]
    is_counted: bool = False
    """Whether results are the counts of a key, one after the other."""


def region_of(customer: str) -> int:
    return int(customer[1:]) % 7


def _filtered(orders: Sequence[Row], _payments: Sequence[Row]) -> Iterator[tuple[Any, ...]]:
    return ((row.customer, row.id) for row in orders if row.amount > 0)


def _counted(orders: Sequence[Row], _payments: Sequence[Row]) -> Iterator[tuple[Any, ...]]:
    counts = Counter[str]()
    for row in orders:
        counts[row.customer] += 1
        yield row.customer, counts[row.customer]


def _counted_in_windows(orders: Sequence[Row], _payments: Sequence[Row]) -> Iterator[tuple[Any, ...]]:
    counts = Counter[tuple[str, int]]()
    for row in orders:
        window = row.customer, row.time_ms - row.time_ms % WINDOW_MS
        counts[window] += 1
        yield *window, counts[window]


def _in_regions(orders: Sequence[Row], _payments: Sequence[Row]) -> Iterator[tuple[Any, ...]]:
    return ((row.customer, row.id, region_of(row.customer)) for row in orders)


def _paid(orders: Sequence[Row], payments: Sequence[Row]) -> Iterator[tuple[Any, ...]]:
    by_customer = defaultdict[str, list[tuple[int, int]]](list)
    for row in payments:
        by_customer[row.customer].append((row.time_ms, row.id))
    for each in by_customer.values():
        each.sort()
    for row in orders:
        near = by_customer[row.customer]
        first = bisect_left(near, (row.time_ms - WINDOW_MS, 0))
        last = bisect_right(near, (row.time_ms + WINDOW_MS, 1 << 62))
        yield from ((row.customer, row.id, payment) for _, payment in near[first:last])


KINDS = (
    Kind(
        "CREATE STREAM {} AS SELECT * FROM orders WHERE amount > 0 EMIT CHANGES;",
        _filtered,
        lambda key, value: (key.decode(), value["ID"]),
    ),
    Kind(
        "CREATE TABLE {} AS SELECT customer, COUNT(*) AS n FROM orders GROUP BY customer EMIT CHANGES;",
        _counted,
        lambda key, value: (key.decode(), value["N"]),
        is_counted=True,
    ),
    Kind(
        "CREATE TABLE {} AS SELECT customer, COUNT(*) AS n FROM orders WINDOW TUMBLING (SIZE 10 SECONDS) "
        "GROUP BY customer EMIT CHANGES;",
        _counted_in_windows,
        lambda key, value: (key[:-8].decode(), int.from_bytes(key[-8:], "big"), value["N"]),
        is_counted=True,
    ),
    Kind(
        "CREATE STREAM {} AS SELECT o.customer AS customer, o.id AS id, region FROM orders o "
        "JOIN customers c ON o.customer = c.customer EMIT CHANGES;",
        _in_regions,
        lambda key, value: (key.decode(), value["ID"], value["REGION"]),
    ),
    Kind(
        "CREATE STREAM {} AS SELECT o.customer AS customer, o.id AS id, p.id AS payment FROM orders o "
        "JOIN payments p WITHIN 10 SECONDS ON o.customer = p.customer EMIT CHANGES;",
        _paid,
        lambda key, value: (key.decode(), value["ID"], value["PAYMENT"]),
    ),
)


class ManyQueries:
    """Queries of all kinds on one server, and what they have to come to."""

    def __init__(self, log: TopicLog, count: int) -> None:
        self._log = log
        self.outputs = [f"Q{number}" for number in range(count)]

    def create(self, url: str) -> None:
        """Has the server make sources and queries, and fills the table."""
        with httpx.Client(base_url=url, timeout=_PATIENCE_S, trust_env=False) as http:
            send(http, SOURCES)
            customers = [f"c{number}" for number in range(CUSTOMERS)]
            send(http, "".join(f"INSERT INTO customers VALUES ('{each}', {region_of(each)});" for each in customers))
            for number, name in enumerate(self.outputs):
                send(http, KINDS[number % len(KINDS)].statement.format(name))

    def new_since(self, positions: Mapping[str, int]) -> set[str]:
        """Returns the outputs that have records behind their positions: markers of transactions are none."""
        ends = self._log.end_offsets([(name, 0) for name in positions])
        moved = [name for name, at in positions.items() if ends[name, 0] > at]
        return {name for name in moved if self._log.read(name, 0, positions[name], max_records=1)}

    def ends(self) -> dict[str, int]:
        return {name: end for (name, _), end in self._log.end_offsets([(name, 0) for name in self.outputs]).items()}

    def check_results(self, acknowledged: set[int]) -> str:
        """Waits until every query has answered every row; raises if one of them has not, or has answered twice."""
        orders, payments = self._rows("orders"), self._rows("payments")
        ids = Counter(row.id for row in (*orders, *payments))
        assert not acknowledged - ids.keys(), f"acknowledged, and lost: {sorted(acknowledged - ids.keys())}"
        assert not (twice := [each for each, count in ids.items() if count > 1]), f"written twice: {twice}"
        expected = [sorted(kind.expected(orders, payments)) for kind in KINDS]
        deadline = time.monotonic() + _PATIENCE_S
        total = 0
        for number, name in enumerate(self.outputs):
            kind, wanted = KINDS[number % len(KINDS)], expected[number % len(KINDS)]
            while (found := self._results(name, kind)) != wanted:
                assert time.monotonic() < deadline, f"{name}: {kind.statement}\n{_difference(wanted, found)}"
                time.sleep(0.2)
            total += len(found)
        return (
            f"{len(orders)} orders and {len(payments)} payments, of which {len(ids) - len(acknowledged)} were not "
            f"acknowledged: {total} results of {len(self.outputs)} queries are right"
        )

    def _rows(self, topic: str) -> list[Row]:
        return [
            Row((key or b"").decode(), value["ID"], value["AMOUNT"], time_ms)
            for _, time_ms, key, text, _ in self._records(topic)
            for value in [json.loads(text or b"{}")]
        ]

    def _results(self, topic: str, kind: Kind) -> Results:
        found = [kind.written(key or b"", json.loads(value or b"{}")) for _, _, key, value, _ in self._records(topic)]
        if kind.is_counted:
            last = {each[:-1]: each[-1] for each in found}
            assert last == {key: max(each[-1] for each in several) for key, several in _by_key(found)}, topic
        return sorted(found)

    def _records(self, topic: str) -> list[Raw]:
        found: list[Raw] = []
        start = 0
        while page := self._log.read(topic, 0, start):
            found += page
            start = page[-1][0] + 1
        return found


def _by_key(found: Results) -> Iterator[tuple[tuple[Any, ...], list[tuple[Any, ...]]]]:
    for key, several in itertools.groupby(sorted(found), key=lambda each: each[:-1]):
        yield key, list(several)


def _difference(wanted: Results, found: Results) -> str:
    missing, strange = Counter(wanted) - Counter(found), Counter(found) - Counter(wanted)
    return (
        f"{len(wanted)} results are wanted and {len(found)} were found; {missing.total()} are missing, as "
        f"{list(missing)[:5]}, and {strange.total()} are too many, as {list(strange)[:5]}"
    )


def send(http: httpx.Client, text: str) -> Any:
    """Carries out statements, which must not fail."""
    answer = http.post("/ksql", json={"ksql": text, "streamsProperties": _EARLIEST})
    assert answer.status_code == 200, answer.text
    return answer.json()


class Load:
    """Rows with ids of their own, half of them by INSERT VALUES and half by ``/inserts-stream``.

    Rows go to whichever of ``urls`` answers. One whose answer is lost is not sent again.
    """

    def __init__(self, rate: float, seed: int) -> None:
        self.urls: list[str] = []
        self.acknowledged: set[int] = set()
        self.refused: list[str] = []
        """Answers that say that a row was not taken."""
        self._rate = rate
        self._chance = random.Random(seed)
        self._ids = itertools.count()
        self._stopping = threading.Event()

    @contextmanager
    def running(self) -> Iterator[None]:
        threads = [threading.Thread(target=self._keep_sending, args=(door,)) for door in (self._insert, self._stream)]
        for thread in threads:
            thread.start()
        try:
            yield
        finally:
            self._stopping.set()
            for thread in threads:
                thread.join()

    def _keep_sending(self, door: Callable[[httpx.Client, str], None]) -> None:
        with httpx.Client(timeout=_PATIENCE_S, trust_env=False) as http:
            while not self._stopping.is_set():
                for url in list(self.urls):
                    try:
                        door(http, url)
                        break
                    except httpx.TransportError:
                        continue
                else:
                    self._stopping.wait(0.1)

    def _row(self) -> tuple[str, dict[str, Any]]:
        number = next(self._ids)
        amount = 0.0 if number % 10 == 0 else 9.5
        row = {"CUSTOMER": f"c{self._chance.randrange(CUSTOMERS)}", "ID": number, "AMOUNT": amount}
        return ("ORDERS", "PAYMENTS")[self._chance.randrange(2)], row

    def _insert(self, http: httpx.Client, url: str) -> None:
        target, row = self._row()
        text = f"INSERT INTO {target} VALUES ('{row['CUSTOMER']}', {row['ID']}, {row['AMOUNT']});"
        begun = time.monotonic()
        answer = http.post(f"{url}/ksql", json={"ksql": text})
        if answer.status_code == 200:
            self.acknowledged.add(row["ID"])
        else:
            self.refused.append(answer.text)
        self._stopping.wait(max(0.0, begun + 2 / self._rate - time.monotonic()))

    def _stream(self, http: httpx.Client, url: str) -> None:
        """Sends the rows of about a second."""
        ids: list[int] = []

        def lines() -> Iterator[bytes]:
            target = self._row()[0]
            yield json.dumps({"target": target}).encode() + b"\n"
            for _ in range(max(1, round(self._rate / 2))):
                _, row = self._row()
                ids.append(row["ID"])
                yield json.dumps(row).encode() + b"\n"
                if self._stopping.wait(2 / self._rate):
                    return

        with http.stream("POST", f"{url}/inserts-stream", content=lines()) as answer:
            for line in answer.iter_lines():
                said = json.loads(line)
                if said.get("status") == "ok":
                    self.acknowledged.add(ids[said["seq"]])
                else:
                    self.refused.append(line)

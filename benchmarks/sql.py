"""What does a query in SQL cost next to the same topology in the DSL, and how fast are pull queries?

The driver runs both in batches, in turns in one process; records/s are of CPU time, and the ratio of the best times is
what counts. What is written is compared: keys as bytes, values as JSON. Then the time to compile statements, and pull
queries by key in this process and over HTTP, one after the other and from several connections.

    python -m benchmarks.sql [--records 100000] [--rounds 5] [--queries 3000]
"""

from __future__ import annotations

import argparse
import gc
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

import httpx
import orjson

from benchmarks.driver import KEYS, WINDOW_MS, Row, customers, purchases
from headrace import (
    Consumed,
    Grouped,
    Joined,
    Materialized,
    Produced,
    Serdes,
    StreamsBuilder,
    StreamsConfig,
    TimeWindows,
    Topology,
    TopologyTestDriver,
)
from headrace.sql.reading.pull import pull
from headrace.sql.sql_engine import SqlEngine
from headrace.sql.syntax.parser import parse_statement
from headrace.sql.syntax.statements import SelectQuery
from tests.sql.server.kit import Client, SqlPlace

TARGET = 1.3
STRING, JSON, LONG = Serdes.string(), Serdes.json(), Serdes.long()
READ_JSON = Consumed(key_serde=STRING, value_serde=JSON)
WRITE_JSON = Produced(key_serde=STRING, value_serde=JSON)
SOURCES = """
    CREATE STREAM purchases (customer STRING KEY, `id` BIGINT, `amount` DOUBLE, `item` STRING, `card` STRING, `n` INT)
        WITH (KAFKA_TOPIC='purchases', VALUE_FORMAT='JSON', PARTITIONS=1);
    CREATE TABLE customers (customer STRING PRIMARY KEY, `name` STRING, `region` INT)
        WITH (KAFKA_TOPIC='customers', VALUE_FORMAT='JSON', PARTITIONS=1);
"""


@dataclass(frozen=True)
class Case:
    """The same question twice."""

    name: str
    sql: str
    dsl: Callable[[StreamsBuilder], None]
    has_table: bool = False


def filter_project(builder: StreamsBuilder) -> None:
    (
        builder.stream("purchases", READ_JSON)
        .filter(lambda key, purchase: purchase["amount"] > 50)
        .map_values(lambda row: {"id": row["id"], "twice": row["amount"] * 2, "item": row["item"]})
        .to("out", WRITE_JSON)
    )


def count(builder: StreamsBuilder) -> None:
    (
        builder.stream("purchases", READ_JSON)
        .group_by_key(Grouped(key_serde=STRING, value_serde=JSON))
        .count(materialized=Materialized("counts", key_serde=STRING, value_serde=LONG))
        .map_values(lambda number: {"n": number})
        .to_stream()
        .to("out", WRITE_JSON)
    )


def windowed(builder: StreamsBuilder) -> None:
    windows = TimeWindows.of_size_and_grace(timedelta(milliseconds=WINDOW_MS), timedelta(seconds=10))
    (
        builder.stream("purchases", READ_JSON)
        .group_by_key(Grouped(key_serde=STRING, value_serde=JSON))
        .windowed_by(windows)
        .count(materialized=Materialized("windows", key_serde=STRING, value_serde=LONG))
        .map_values(lambda number: {"n": number})
        .to_stream()
        .to("out", Produced(key_serde=Serdes.time_windowed(STRING, WINDOW_MS), value_serde=JSON))
    )


def join(builder: StreamsBuilder) -> None:
    table = builder.table("customers", READ_JSON, Materialized("customers", key_serde=STRING, value_serde=JSON))
    (
        builder.stream("purchases", READ_JSON)
        .join(
            table,
            lambda purchase, customer: {"id": purchase["id"], "region": customer["region"]},
            joined=Joined(key_serde=STRING, value_serde=JSON),
        )
        .to("out", WRITE_JSON)
    )


INTO = "out WITH (KAFKA_TOPIC='out') AS SELECT"
CASES = (
    Case(
        "filter, project",
        f"CREATE STREAM {INTO} customer, `id`, `amount` * 2 AS `twice`, `item` FROM purchases WHERE `amount` > 50;",
        filter_project,
    ),
    Case("group by, count", f"CREATE TABLE {INTO} customer, COUNT(*) AS `n` FROM purchases GROUP BY customer;", count),
    Case(
        "tumbling window",
        f"CREATE TABLE {INTO} customer, COUNT(*) AS `n` FROM purchases "
        "WINDOW TUMBLING (SIZE 1 MINUTE, GRACE PERIOD 10 SECONDS) GROUP BY customer;",
        windowed,
    ),
    Case(
        "stream-table join",
        f"CREATE STREAM {INTO} purchases.customer AS customer, `id`, `region` FROM purchases "
        "JOIN customers ON purchases.customer = customers.customer;",
        join,
        has_table=True,
    ),
)


def topologies(case: Case) -> tuple[Topology, Topology]:
    engine = SqlEngine()
    engine.execute(SOURCES + case.sql)
    (query,) = engine.catalog.queries.values()
    builder = StreamsBuilder()
    case.dsl(builder)
    return query.topology, builder.build()


def run(topology: Topology, batches: list[dict[str, list[Row]]]) -> tuple[float, list[tuple[bytes | None, object]]]:
    """Runs a topology; what is timed is the commit of each batch, the work that Spark would give a task."""
    spent, written = 0.0, []
    gc.collect()
    with TopologyTestDriver(topology, StreamsConfig(application_id="bench"), batched=True) as driver:
        for batch in batches:
            for topic, rows in batch.items():
                driver.pipe_raw_batch(topic, rows)
            started = time.process_time()
            driver.commit()
            spent += time.process_time() - started
            written += driver.take_outputs("out", driver.unread("out"))
    return spent, [(key, None if value is None else orjson.loads(value)) for _, _, key, value, _ in written]


def compare(records: int, rounds: int) -> bool:
    """Prints a line per case; returns whether all were within the target."""
    size = max(1, records // 4)
    rows = purchases(records, KEYS)
    batches = [{"purchases": rows[start : start + size]} for start in range(0, records, size)]
    print(f"{'query':<20}{'SQL rec/s':>12}{'DSL rec/s':>12}{'ratio':>8}{'target':>8}")
    good = True
    for case in CASES:
        in_sql, in_dsl = topologies(case)
        made = [{"customers": customers(KEYS)}, *batches] if case.has_table else batches
        best_sql = best_dsl = float("inf")
        for _ in range(rounds):
            of_sql, found = run(in_sql, made)
            of_dsl, wanted = run(in_dsl, made)
            if found != wanted:
                message = f"{case.name}: what SQL wrote differs from what the DSL wrote"
                raise SystemExit(message)
            best_sql, best_dsl = min(best_sql, of_sql), min(best_dsl, of_dsl)
        ratio = best_sql / best_dsl
        good &= ratio <= TARGET
        verdict = "" if ratio <= TARGET else "  above target"
        rates = f"{records / best_sql:>12,.0f}{records / best_dsl:>12,.0f}"
        print(f"{case.name:<20}{rates}{ratio:>8.2f}{TARGET:>8}{verdict}", flush=True)
    return good


def compile_times(rounds: int) -> None:
    """Prints how long each statement takes, from its text to the topology."""
    for case in CASES:
        parsing, whole = [], []
        for _ in range(rounds):
            engine = SqlEngine()
            engine.execute(SOURCES)
            started = time.perf_counter()
            parse_statement(case.sql)
            parsed = time.perf_counter()
            engine.execute(case.sql)
            whole.append(time.perf_counter() - parsed)
            parsing.append(parsed - started)
        figures = (
            f"{statistics.median(whole) * 1000:6.2f} ms, of it parsing {statistics.median(parsing) * 1000:5.2f} ms"
        )
        print(f"compiling {case.name:20} {figures}", flush=True)


def timed(ask: Callable[[int], object], questions: int, threads: int = 1) -> str:
    """Asks from some threads; returns questions/s and how long one took."""
    taken: list[float] = []

    def one(number: int) -> None:
        started = time.perf_counter()
        ask(number)
        taken.append(time.perf_counter() - started)

    started = time.perf_counter()
    if threads == 1:
        for number in range(questions):
            one(number)
    else:
        with ThreadPoolExecutor(threads) as pool:
            list(pool.map(one, range(questions)))
    rate = questions / (time.perf_counter() - started)
    taken.sort()
    p50, p99 = (taken[int(len(taken) * part)] * 1000 for part in (0.5, 0.99))
    return f"{rate:8,.0f} queries/s   p50 {p50:6.2f} ms, p99 {p99:6.2f} ms"


def text_of(number: int) -> str:
    return f"SELECT * FROM counts WHERE customer = 'customer-{number * 7919 % KEYS}';"


def ask_in_process(client: Client) -> Callable[[int], object]:
    context = client.server.service.context({})

    def ask(number: int) -> None:
        statement = parse_statement(text_of(number))
        assert isinstance(statement, SelectQuery)
        (_,) = pull(statement, context).rows

    return ask


def ask_over_http(url: str) -> Callable[[int], object]:
    local = threading.local()

    def ask(number: int) -> None:
        if not hasattr(local, "client"):
            local.client = httpx.Client(base_url=url)
        found = local.client.post("/query", json={"ksql": text_of(number)})
        assert len(found.json()) == 2, found.text

    return ask


def pull_queries(questions: int) -> None:
    """Prints how fast the row of a key is found."""
    with tempfile.TemporaryDirectory(prefix="headrace-bench-") as directory:
        place = SqlPlace(Path(directory))
        client = place.server()
        client.ksql(SOURCES + "CREATE TABLE counts AS SELECT customer, COUNT(*) AS n FROM purchases GROUP BY customer;")
        each_key = [(None, 0, f"customer-{n}".encode(), b'{"id":1}', ()) for n in range(KEYS)]
        place.log.append("purchases", each_key)
        client.settle()
        for name, ask, threads in (
            ("in this process", ask_in_process(client), 1),
            ("over HTTP, 1 connection", ask_over_http(client.server.url), 1),
            ("over HTTP, 4 connections", ask_over_http(client.server.url), 4),
        ):
            ask(0)
            print(f"pull query {name:26} {timed(ask, questions, threads)}", flush=True)
        place.close()


def main() -> int:
    """Prints all figures; returns 1 if a target was missed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--records", type=int, default=100_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--queries", type=int, default=3000)
    options = parser.parse_args()
    compile_times(20)
    good = compare(options.records, options.rounds)
    pull_queries(options.queries)
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())

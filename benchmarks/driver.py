"""How much does the topology cost above a hand-written loop that does the same work?

Both read the same bytes, parse the same JSON, keep the same state and write the same bytes, in batches: the driver in
its batched mode, the loop as a Python programmer would write it. They take turns in one process on one core, and the
ratio of the best times is what counts: machines are noisy, ratios less so. Outputs are compared, so that a fast wrong
answer fails.

    python benchmarks/driver.py [--records 400000] [--batch 100000] [--rounds 5]
"""

from __future__ import annotations

import argparse
import gc
import random
import time
from collections.abc import Callable
from datetime import timedelta

import orjson

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

Row = tuple[int | None, int, bytes | None, bytes | None, tuple[tuple[str, bytes | None], ...]]
Batch = dict[str, list[Row]]
Pairs = list[tuple[bytes | None, bytes | None]]
Result = dict[str, Pairs]

Loop = Callable[[], Callable[[Batch], Result]]

STRING, JSON, LONG = Serdes.string(), Serdes.json(), Serdes.long()
READ_JSON = Consumed(key_serde=STRING, value_serde=JSON)
WINDOW_MS = 60_000
KEYS = 10_000


def purchases(count: int, keys: int) -> list[Row]:
    """Returns purchases of about 100 bytes, in time order with a little disorder."""
    rng = random.Random(7)
    rows: list[Row] = []
    for number in range(count):
        key = f"customer-{rng.randrange(keys)}"
        amount = rng.randrange(1, 50_000) / 100
        value = {"id": number, "amount": amount, "item": f"item-{number % 977}", "card": "4111-1111-1111-1111", "n": 2}
        rows.append((0, max(0, number - rng.randrange(50)), key.encode(), orjson.dumps(value), ()))
    return rows


def customers(keys: int) -> list[Row]:
    """Returns one row per customer."""
    return [
        (0, 0, f"customer-{n}".encode(), orjson.dumps({"name": f"name {n}", "region": n % 7}), ()) for n in range(keys)
    ]


class Case:
    """One piece of work: a topology, and a loop that does the same."""

    def __init__(self, name: str, target: float, topology: Topology, loop: Loop) -> None:
        self.name, self.target, self.topology, self.loop = name, target, topology, loop


def stateless() -> Topology:
    """Parse, filter, map, write."""
    builder = StreamsBuilder()
    (
        builder.stream("purchases", READ_JSON)
        .filter(lambda key, purchase: purchase["amount"] > 50)
        .map_values(lambda purchase: {**purchase, "card": "xxxx-" + purchase["card"][-4:]})
        .to("out", Produced(key_serde=STRING, value_serde=JSON))
    )
    return builder.build()


def stateless_loop() -> Callable[[Batch], Result]:
    """The same by hand."""

    def run(batch: Batch) -> Result:
        out: Pairs = []
        for _, _, key, value, _ in batch["purchases"]:
            name = key.decode()  # type: ignore[union-attr]
            purchase = orjson.loads(value)  # type: ignore[arg-type]
            if purchase["amount"] > 50:
                masked = {**purchase, "card": "xxxx-" + purchase["card"][-4:]}
                out.append((name.encode(), orjson.dumps(masked)))
        return {"out": out}

    return run


def count_by_key() -> Topology:
    """Parse, count by key, write the new counts at the end of a batch."""
    builder = StreamsBuilder()
    (
        builder.stream("purchases", READ_JSON)
        .group_by_key(Grouped(key_serde=STRING, value_serde=JSON))
        .count(materialized=Materialized("counts", key_serde=STRING, value_serde=LONG))
        .to_stream()
        .to("out", Produced(key_serde=STRING, value_serde=LONG))
    )
    return builder.build()


def count_by_key_loop() -> Callable[[Batch], Result]:
    """The same by hand: counts with their timestamps in a dict, the changed ones written in order of last change."""
    counts: dict[str, tuple[int, int]] = {}

    def run(batch: Batch) -> Result:
        changed: dict[str, None] = {}
        for _, timestamp, key, value, _ in batch["purchases"]:
            name = key.decode()  # type: ignore[union-attr]
            purchase = orjson.loads(value)  # type: ignore[arg-type]
            if name is None or purchase is None:
                continue
            found = counts.get(name)
            if found is None:
                counts[name] = (1, timestamp)
            else:
                count, newest = found
                counts[name] = (count + 1, timestamp if timestamp > newest else newest)
            changed.pop(name, None)
            changed[name] = None
        return {"out": [(name.encode(), counts[name][0].to_bytes(8, "big", signed=True)) for name in changed]}

    return run


def windowed_count() -> Topology:
    """Parse, count by key and minute, write the new counts at the end of a batch."""
    builder = StreamsBuilder()
    windows = TimeWindows.of_size_and_grace(timedelta(milliseconds=WINDOW_MS), timedelta(seconds=10))
    (
        builder.stream("purchases", READ_JSON)
        .group_by_key(Grouped(key_serde=STRING, value_serde=JSON))
        .windowed_by(windows)
        .count(materialized=Materialized("windows", key_serde=STRING, value_serde=LONG))
        .to_stream()
        .to("out", Produced(key_serde=Serdes.time_windowed(STRING, WINDOW_MS), value_serde=LONG))
    )
    return builder.build()


def windowed_count_loop() -> Callable[[Batch], Result]:
    """The same by hand, closed windows refused and forgotten."""
    counts: dict[tuple[str, int], tuple[int, int]] = {}
    stream_time = -1
    grace = 10_000

    def run(batch: Batch) -> Result:
        nonlocal stream_time
        changed: dict[tuple[str, int], None] = {}
        for _, timestamp, key, value, _ in batch["purchases"]:
            name = key.decode()  # type: ignore[union-attr]
            orjson.loads(value)  # type: ignore[arg-type]
            if timestamp > stream_time:
                stream_time = timestamp
            start = timestamp - timestamp % WINDOW_MS
            if start + WINDOW_MS <= stream_time - grace:
                continue
            row = (name, start)
            found = counts.get(row)
            if found is None:
                counts[row] = (1, timestamp)
            else:
                count, newest = found
                counts[row] = (count + 1, timestamp if timestamp > newest else newest)
            changed.pop(row, None)
            changed[row] = None
        out: Pairs = [
            (row[0].encode() + row[1].to_bytes(8, "big", signed=True), counts[row][0].to_bytes(8, "big", signed=True))
            for row in changed
        ]
        horizon = stream_time - WINDOW_MS - grace
        for row in [row for row in counts if row[1] <= horizon]:
            del counts[row]
        return {"out": out}

    return run


def stream_table_join() -> Topology:
    """Parse, look the customer up, write both."""
    builder = StreamsBuilder()
    table = builder.table("customers", READ_JSON, Materialized("customers", key_serde=STRING, value_serde=JSON))
    (
        builder.stream("purchases", READ_JSON)
        .join(
            table,
            lambda purchase, customer: {"id": purchase["id"], "region": customer["region"]},
            joined=Joined(key_serde=STRING, value_serde=JSON, other_value_serde=JSON),
        )
        .to("out", Produced(key_serde=STRING, value_serde=JSON))
    )
    return builder.build()


def stream_table_join_loop() -> Callable[[Batch], Result]:
    """The same by hand: the table in a dict."""
    table: dict[str, dict[str, object]] = {}

    def run(batch: Batch) -> Result:
        out: Pairs = []
        for _, _, key, value, _ in batch.get("customers", ()):
            table[key.decode()] = orjson.loads(value)  # type: ignore[union-attr,arg-type]
        for _, _, key, value, _ in batch["purchases"]:
            name = key.decode()  # type: ignore[union-attr]
            purchase = orjson.loads(value)  # type: ignore[arg-type]
            customer = table.get(name)
            if customer is not None:
                joined = {"id": purchase["id"], "region": customer["region"]}
                out.append((name.encode(), orjson.dumps(joined)))
        return {"out": out}

    return run


def cases() -> list[Case]:
    """Returns the four questions and their targets."""
    return [
        Case("stateless chain", 1.6, stateless(), stateless_loop),
        Case("count by key", 1.6, count_by_key(), count_by_key_loop),
        Case("windowed count", 2.5, windowed_count(), windowed_count_loop),
        Case("stream-table join", 2.5, stream_table_join(), stream_table_join_loop),
    ]


def batches(case: Case, records: int, size: int) -> list[Batch]:
    """Returns the input in batches; a table is loaded with the first, before time starts."""
    rows = purchases(records, KEYS)
    made: list[Batch] = [{"purchases": rows[start : start + size]} for start in range(0, records, size)]
    if case.name == "stream-table join":
        made.insert(0, {"customers": customers(KEYS), "purchases": []})
    return made


def time_driver(case: Case, made: list[Batch]) -> tuple[float, list[Result]]:
    """Runs the topology; what is timed is the commit of each batch, the work that Spark would give a task."""
    config = StreamsConfig(application_id="bench")
    results: list[Result] = []
    spent = 0.0
    with TopologyTestDriver(case.topology, config, batched=True, initial_wall_clock_ms=0) as driver:
        for batch in made:
            for topic, rows in batch.items():
                driver.pipe_raw_batch(topic, rows)
            started = time.process_time()
            driver.commit()
            spent += time.process_time() - started
            taken = driver.take_outputs("out", driver.unread("out"))
            results.append({"out": [(key, value) for _, _, key, value, _ in taken]})
    return spent, results


def time_loop(case: Case, made: list[Batch]) -> tuple[float, list[Result]]:
    """Runs the hand-written loop."""
    run = case.loop()
    results: list[Result] = []
    started = time.process_time()
    for batch in made:
        results.append(run(batch))
    return time.process_time() - started, results


def main() -> None:
    """Prints a line per case."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--records", type=int, default=400_000)
    parser.add_argument("--batch", type=int, default=100_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--only", help="run the cases whose name contains this")
    arguments = parser.parse_args()
    size = f"{arguments.records:,} records, {KEYS:,} keys, batches of {arguments.batch:,}"
    print(f"{size}; CPU time, best of {arguments.rounds} turns")
    print(f"{'case':<20}{'driver rec/s':>14}{'loop rec/s':>14}{'ratio':>8}{'target':>8}")
    for case in cases():
        if arguments.only and arguments.only not in case.name:
            continue
        made = batches(case, arguments.records, arguments.batch)
        driver_times, loop_times = [], []
        for _ in range(arguments.rounds):
            gc.collect()
            loop_spent, wanted = time_loop(case, made)
            gc.collect()
            driver_spent, found = time_driver(case, made)
            if found != wanted:
                message = f"{case.name}: the driver's output differs from the loop's"
                raise SystemExit(message)
            driver_times.append(driver_spent)
            loop_times.append(loop_spent)
        driver_best, loop_best = min(driver_times), min(loop_times)
        ratio = driver_best / loop_best
        verdict = "" if ratio <= case.target else "  above target"
        print(
            f"{case.name:<20}{arguments.records / driver_best:>14,.0f}{arguments.records / loop_best:>14,.0f}"
            f"{ratio:>8.2f}{case.target:>8.1f}{verdict}",
            flush=True,
        )


if __name__ == "__main__":
    main()

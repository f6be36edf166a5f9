"""The programs of the engine's benchmark as a Python programmer would write them by hand: one core, one dict.

Each factory returns a function that takes what was read of the inputs, in order, and returns what is to be written.
The loops write what the topologies write, byte for byte, but lose their state with the process.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Mapping
from typing import Any

import orjson

from benchmarks.engine_load import CUSTOMERS, PAYMENTS, PURCHASES
from benchmarks.engine_programs import GRACE_MS, JOIN_MS, LONG_JOIN_MS, WINDOW_MS
from headrace.topics.log import Output, Raw

Batch = Mapping[str, list[Raw]]
Run = Callable[[Batch], list[Output]]


def parse_filter_map() -> Run:
    def run(batch: Batch) -> list[Output]:
        out: list[Output] = []
        for _, time_ms, key, value, _ in batch[PURCHASES]:
            purchase = orjson.loads(value or b"")
            if purchase["amount"] > 50:
                purchase["card"] = "xxxx-" + purchase["card"][-4:]
                out.append((None, time_ms, key, orjson.dumps(purchase), ()))
        return out

    return run


def count_by_key() -> Run:
    counts: dict[bytes, int] = defaultdict(int)

    def run(batch: Batch) -> list[Output]:
        changed: dict[bytes, int] = {}
        for _, time_ms, key, value, _ in batch[PURCHASES]:
            if key is not None and orjson.loads(value or b"")["amount"] > 5:
                counts[key] += 1
                changed[key] = time_ms
        return [(None, time_ms, key, counts[key].to_bytes(8, "big"), ()) for key, time_ms in changed.items()]

    return run


def rekey_and_count() -> Run:
    counts: dict[str, int] = defaultdict(int)

    def run(batch: Batch) -> list[Output]:
        changed: dict[str, int] = {}
        for _, time_ms, _, value, _ in batch[PURCHASES]:
            purchase = orjson.loads(value or b"")
            if purchase["amount"] > 5:
                item = purchase["item"]
                counts[item] += 1
                changed[item] = time_ms
        return [
            (None, time_ms, item.encode(), counts[item].to_bytes(8, "big"), ()) for item, time_ms in changed.items()
        ]

    return run


def windowed_count() -> Run:
    windows: dict[int, dict[bytes, int]] = {}

    def run(batch: Batch) -> list[Output]:
        changed: dict[tuple[int, bytes], int] = {}
        stream_time_ms = 0
        for _, time_ms, key, value, _ in batch[PURCHASES]:
            if key is None or orjson.loads(value or b"")["amount"] <= 5:
                continue
            stream_time_ms = max(stream_time_ms, time_ms)
            start_ms = time_ms - time_ms % WINDOW_MS
            if start_ms + WINDOW_MS + GRACE_MS <= stream_time_ms:
                continue
            window = windows.get(start_ms)
            if window is None:
                window = windows[start_ms] = defaultdict(int)
            window[key] += 1
            changed[start_ms, key] = time_ms
        out: list[Output] = [
            (None, time_ms, key + start_ms.to_bytes(8, "big"), windows[start_ms][key].to_bytes(8, "big"), ())
            for (start_ms, key), time_ms in changed.items()
        ]
        for start_ms in [start for start in windows if start + WINDOW_MS + GRACE_MS <= stream_time_ms]:
            del windows[start_ms]
        return out

    return run


def stream_table_join() -> Run:
    table: dict[bytes | None, Any] = {}

    def run(batch: Batch) -> list[Output]:
        for _, _, key, value, _ in batch[CUSTOMERS]:
            table[key] = orjson.loads(value or b"")
        out: list[Output] = []
        for _, time_ms, key, value, _ in batch[PURCHASES]:
            purchase = orjson.loads(value or b"")
            customer = table.get(key)
            if customer is not None:
                joined = {"id": purchase["id"], "region": customer["region"]}
                out.append((None, time_ms, key, orjson.dumps(joined), ()))
        return out

    return run


def stream_stream_join(join_ms: int = JOIN_MS, *, odd_ones: bool = True) -> Run:
    Side = dict[bytes | None, list[tuple[int, int]]]
    bought: Side = defaultdict(list)
    paid: Side = defaultdict(list)

    def forget(side: Side, horizon_ms: int) -> None:
        for key, rows in list(side.items()):
            if rows[-1][0] < horizon_ms:
                del side[key]
            elif rows[0][0] < horizon_ms:
                del rows[: bisect_left(rows, (horizon_ms, 0))]

    def run(batch: Batch) -> list[Output]:
        out: list[Output] = []
        # Both lists are in order, so sorting is merging.
        rows = [(time_ms, 0, key, value) for _, time_ms, key, value, _ in batch[PAYMENTS]]
        rows += [(time_ms, 1, key, value) for _, time_ms, key, value, _ in batch[PURCHASES]]
        rows.sort(key=lambda row: row[0])
        for time_ms, is_purchase, key, value in rows:
            parsed = orjson.loads(value or b"")
            oldest_ms = time_ms - join_ms
            if is_purchase:
                number = parsed["id"]
                if number % 2 and not odd_ones:
                    continue
                bought[key].append((time_ms, number))
                for other_ms, other in reversed(paid.get(key, ())):
                    if other_ms < oldest_ms:
                        break
                    out.append((None, time_ms, key, orjson.dumps({"id": number, "purchase": other}), ()))
            else:
                number = parsed["purchase"]
                paid[key].append((time_ms, number))
                for other_ms, other in reversed(bought.get(key, ())):
                    if other_ms < oldest_ms:
                        break
                    out.append((None, time_ms, key, orjson.dumps({"id": other, "purchase": number}), ()))
        if rows:
            horizon_ms = rows[-1][0] - join_ms
            forget(bought, horizon_ms)
            forget(paid, horizon_ms)
        return out

    return run


LOOPS: dict[str, Callable[[], Run]] = {
    "a": parse_filter_map,
    "b": count_by_key,
    "c": rekey_and_count,
    "d": windowed_count,
    "e": stream_table_join,
    "f": stream_stream_join,
    "g": lambda: stream_stream_join(LONG_JOIN_MS, odd_ones=False),
}

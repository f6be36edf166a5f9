"""What does a row of SQL cost as JSON, next to a dict with ``Serdes.json()``?

Nanoseconds per record on one core, the best of some rounds in turns. Both sides read the same bytes and write the same
values; a row is read into typed columns, a dict is not. The plain columns have a target.

    python -m benchmarks.sql_formats [--records 50000] [--rounds 9]
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import Any

from headrace import Serdes
from headrace.sql.formats import format_named
from headrace.sql.types import (
    ARRAY,
    BIGINT,
    BOOLEAN,
    DECIMAL,
    DOUBLE,
    INTEGER,
    STRING,
    STRUCT,
    TIMESTAMP,
    StructField,
)
from headrace.sql.types.schema import Column

TARGET = 1.2
PLAIN = (("ID", BIGINT, 123456), ("NAME", STRING, "hello world"), ("AMOUNT", DOUBLE, 12.5), ("COUNT", INTEGER, 7))
CASES: dict[str, tuple[tuple[str, Any, Any], ...]] = {
    "plain": PLAIN,
    "ten columns": tuple(
        (f"C{n}", type, value)
        for n, (type, value) in enumerate(
            [(BIGINT, 5), (STRING, "abc"), (DOUBLE, 1.25), (BOOLEAN, True), (TIMESTAMP, 1_700_000_000_000)] * 2
        )
    ),
    "decimal": (*PLAIN, ("PRICE", DECIMAL(10, 2), Decimal("12.50"))),
    "nested": (
        *PLAIN,
        (
            "LINES",
            ARRAY(STRUCT((StructField("SKU", STRING), StructField("PRICE", DOUBLE)))),
            [{"SKU": "a", "PRICE": 1.5}, {"SKU": "b", "PRICE": 2.5}],
        ),
    ),
}


def nanoseconds(call: Callable[[Any], object], argument: Any, records: int) -> float:
    start = time.perf_counter_ns()
    for _ in range(records):
        call(argument)
    return (time.perf_counter_ns() - start) / records


def measured(columns: tuple[tuple[str, Any, Any], ...], records: int, rounds: int) -> dict[str, float]:
    """Returns the times of the four functions, which the engine would call."""
    rows = format_named("JSON").serde(tuple(Column(name, type) for name, type, _ in columns))
    dicts = Serdes.json()
    row = [value for _, _, value in columns]
    data = rows.serialize(row)
    assert data is not None
    value = dicts.deserialize(data)
    assert rows.deserialize(data) == row
    assert json.loads(data) == value
    work = {
        "read dict": (dicts.fast_deserializer(is_key=False), data),
        "read row": (rows.fast_deserializer(is_key=False), data),
        "write dict": (dicts.fast_serializer(is_key=False), value),
        "write row": (rows.fast_serializer(is_key=False), row),
    }
    best = dict.fromkeys(work, float("inf"))
    for _ in range(rounds):
        for name, (call, argument) in work.items():
            assert call is not None, "both serdes have functions for the engine"
            best[name] = min(best[name], nanoseconds(call, argument, records))
    return best


def main(arguments: Sequence[str] | None = None) -> int:
    """Prints the times; returns 1 if a target was missed."""
    parser = argparse.ArgumentParser(description="JSON of rows next to JSON of dicts.")
    parser.add_argument("--records", type=int, default=50_000)
    parser.add_argument("--rounds", type=int, default=9)
    options = parser.parse_args(arguments)
    missed = False
    print(f"{'columns':14}{'':8}{'dict, ns':>10}{'row, ns':>10}{'ratio':>8}{'target':>8}")
    for case, columns in CASES.items():
        times = measured(columns, options.records, options.rounds)
        for direction in ("read", "write"):
            of_dict, of_row = times[f"{direction} dict"], times[f"{direction} row"]
            ratio, has_target = of_row / of_dict, case == "plain"
            missed |= has_target and ratio > TARGET
            target = f"{TARGET:>8}" if has_target else ""
            print(f"{case:14}{direction:8}{of_dict:>10,.0f}{of_row:>10,.0f}{ratio:>8.2f}{target}")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())

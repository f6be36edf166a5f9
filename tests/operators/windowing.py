"""Windowed aggregations to test: they join the values of a window to one string and write it to "out"."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

from headrace import (
    EmitStrategy,
    KTable,
    Materialized,
    SessionWindows,
    SlidingWindows,
    StreamsBuilder,
    Windowed,
    Windows,
)
from tests.operators.driving import STRING, Step

AnyWindows = Windows | SlidingWindows | SessionWindows
CACHE = 10_000_000


def ms(milliseconds: int) -> timedelta:
    return timedelta(milliseconds=milliseconds)


def records(*values: tuple[str | None, int], key: str | None = "k") -> list[Step]:
    return [Step("in", key, value, timestamp_ms) for value, timestamp_ms in values]


def show(key: Windowed[str], value: str | None) -> str:
    return f"{key.key}@{key.window.start_ms}/{key.window.end_ms}"


def concat(key: str, value: str | None, aggregate: str) -> str:
    return f"{aggregate}{value or '-'}"


def merge(key: str, first: str, second: str) -> str:
    return first + second


def table_of(
    builder: StreamsBuilder, windows: AnyWindows, *, final: bool = False, retention: timedelta | None = None
) -> KTable[Windowed[str], str]:
    grouped: Any = builder.stream("in").group_by_key().windowed_by(windows)
    if final:
        grouped = grouped.emit_strategy(EmitStrategy.on_window_close())
    functions = (concat, merge) if isinstance(windows, SessionWindows) else (concat,)
    store = Materialized("windows", key_serde=STRING, value_serde=STRING, retention=retention)
    table: KTable[Windowed[str], str] = grouped.aggregate(lambda: "", *functions, materialized=store)
    return table


def aggregate(
    windows: AnyWindows, *, final: bool = False, retention: timedelta | None = None
) -> Callable[[StreamsBuilder], None]:
    def build(builder: StreamsBuilder) -> None:
        table_of(builder, windows, final=final, retention=retention).to_stream(show).to("out")

    return build

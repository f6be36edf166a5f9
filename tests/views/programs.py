"""A topology with a store of every kind, the same questions to the driver's stores and to views, and inputs for it."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from headrace import (
    Grouped,
    Materialized,
    Processor,
    Record,
    SessionWindows,
    Stores,
    StreamsBuilder,
    TimeWindows,
)
from headrace.views import QueryableStoreTypes as Types

KEYS = ("", "a", "b", "bb", "c", "zoë")
TOPICS = ("in", "table", "versions", "global")
LATEST_MS = 400_000
RETENTION = timedelta(minutes=2)


class Remember(Processor[str, Any, str, Any]):
    """Keeps what comes, in stores without timestamps; a null deletes."""

    stores = (
        Stores.key_value_store_builder(Stores.persistent_key_value_store("plain")),
        Stores.window_store_builder(Stores.persistent_window_store("plain-windows", RETENTION, timedelta(seconds=10))),
        Stores.window_store_builder(
            Stores.persistent_window_store("doubles", RETENTION, timedelta(seconds=10), retain_duplicates=True)
        ),
    )

    def process(self, record: Record[str, Any]) -> None:
        key, value = record.key, record.value
        self.context.get_state_store("plain").put(key, value)
        start_ms = record.timestamp_ms // 10_000 * 10_000
        self.context.get_state_store("plain-windows").put(key, value, start_ms)
        self.context.get_state_store("doubles").put(key, value, start_ms)


def build(builder: StreamsBuilder) -> None:
    stream = builder.stream("in").filter(lambda key, value: key is not None)
    stream.process(Remember)
    grouped = stream.group_by_key()
    grouped.count(materialized=Materialized("counts"))
    size, grace = timedelta(seconds=10), timedelta(seconds=20)
    windows = TimeWindows.of_size_and_grace(size, grace)
    grouped.windowed_by(windows).count(materialized=Materialized("windows", retention=RETENTION))
    sessions = SessionWindows.of_inactivity_gap_and_grace(timedelta(seconds=15), grace)
    grouped.windowed_by(sessions).count(materialized=Materialized("sessions", retention=RETENTION))
    stream.group_by(lambda key, value: f"{value}", Grouped("by-value")).count(materialized=Materialized("by-value"))
    builder.table("table", materialized=Materialized("rows"))
    versions = Stores.persistent_versioned_key_value_store("history", timedelta(minutes=2))
    builder.table("versions", materialized=Materialized(versions))
    builder.global_table("global", materialized=Materialized("everywhere"))


def v1_types(kind: str) -> list[Any]:
    """How a store of this kind can be seen."""
    known: dict[str, list[Any]] = {
        "key_value": [Types.key_value_store()],
        "timestamped_key_value": [Types.key_value_store(), Types.timestamped_key_value_store()],
        "versioned": [Types.versioned_key_value_store()],
        "window": [Types.window_store()],
        "timestamped_window": [Types.window_store(), Types.timestamped_window_store()],
        "session": [Types.session_store()],
    }
    return known[kind]


def read_everything(store: Any, kind: str, base_ms: int = 0) -> dict[str, Any]:
    """Asks a store, the driver's or a view's face, everything that its kind can be asked; Any: stores have no base."""
    answers: dict[str, Any] = {}

    def ask(name: str, *arguments: Any, **options: Any) -> None:
        found = getattr(store, name)(*arguments, **options)
        answers[f"{name}{arguments}{options or ''}"] = list(found) if hasattr(found, "has_next") else found

    times = tuple(base_ms + each for each in (0, 100_000, 200_000, LATEST_MS))
    first_ms, last_ms = base_ms, base_ms + LATEST_MS
    if kind in ("key_value", "timestamped_key_value"):
        for key in KEYS:
            ask("get", key)
        for low, high in ((None, None), ("a", None), (None, "b"), ("b", "c")):
            ask("range", low, high)
            ask("reverse_range", low, high)
        ask("all")
        ask("reverse_all")
        ask("approximate_num_entries")
        ask("prefix_scan", "b", str.encode)
    elif kind == "versioned":
        for key in KEYS:
            ask("get", key)
            ask("history", key)
            for time_ms in times:
                ask("get", key, time_ms)
                ask("history", key, time_ms, time_ms + 50_000, reverse=True)
    elif kind in ("window", "timestamped_window"):
        for key in KEYS:
            ask("fetch_range", key, first_ms, last_ms)
            ask("backward_fetch_range", key, base_ms + 50_000, base_ms + 200_000)
            # Of several values, Kafka Streams' store gives one that depends on what else was put: not worth a question.
            for time_ms in () if store.name == "doubles" else times:
                ask("fetch", key, time_ms)
        ask("fetch_keys", "a", "c", first_ms, last_ms)
        ask("fetch_keys", None, "b", base_ms + 100_000, base_ms + 300_000)
        ask("backward_fetch_keys", "b", None, first_ms, last_ms)
        ask("fetch_all", base_ms + 100_000, base_ms + 300_000)
        ask("backward_fetch_all", first_ms, last_ms)
        ask("all")
        ask("backward_all")
    else:
        for key in KEYS:
            ask("fetch", key)
            ask("backward_fetch", key)
            ask("find_sessions", key, base_ms + 50_000, base_ms + 250_000)
            ask("backward_find_sessions", key, first_ms, last_ms)
        ask("fetch_keys", "a", "c")
        ask("backward_fetch_keys", None, None)
        ask("find_sessions_keys", "a", None, base_ms, base_ms + 200_000)
        ask("find_sessions_in", first_ms, last_ms)
    return answers

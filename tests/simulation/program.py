"""Program of the histories: two levels with a re-key between them, a back edge, a clock, and functions that are random.

``first`` gives every record a random token and keeps the last token of each key; ``second`` does so by another key, and
sends some records back to ``first`` once. Whatever is written names the token before it, so outputs of a key are a
chain: each names its predecessor, nothing is missing, and nothing is there twice. Some records are dropped at random,
at the beginning, so that a task has work and writes nothing.

In some histories ``first`` also keeps the input as a table, which is restored from the input itself, and names the
record that the table had before.
"""

from __future__ import annotations

from datetime import timedelta
from functools import cache
from typing import Any

from headrace.processor import Processor, PunctuationType
from headrace.record import Record
from headrace.serdes import Serdes
from headrace.state import Stores
from headrace.topology.subtopologies import Subtopology
from headrace.topology.topology import Topology
from tests.simulation.threads import World

APPLICATION = "app"
PARTITIONS = 2
FIRST, SECOND, TABLE = "first", "second", "table"
FIRST_OUT, OUT = "first-out", "out"
LOOP, REKEYED = "loop", "rekeyed"
_INTERVAL = timedelta(milliseconds=700)
TICKS = 2
"""How often the clock of each task of the first level does something."""
WRITTEN, DROPPED, LOOPED = "plain", "drop", "loop"


class _Chained(Processor[str, Any, str, Any]):
    store_name = ""

    def init(self, context: Any) -> None:
        super().init(context)
        self.store: Any = context.get_state_store(self.store_name)

    def chain(self, key: str, id_: str) -> dict[str, Any]:
        """Puts another token in place of the last one, or nothing; returns what is to be written."""
        scheduler = World.scheduler
        token = None if scheduler.rng.random() < 0.2 else scheduler.token()
        before = self.store.get(key)
        if token is None:
            self.store.delete(key)
        else:
            self.store.put(key, token)
        return {"id": id_, "token": token, "before": before}


class First(_Chained):
    store_name = FIRST

    def init(self, context: Any) -> None:
        super().init(context)
        self._schedule = context.schedule(_INTERVAL, PunctuationType.WALL_CLOCK_TIME, self._tick)

    def process(self, record: Record[str, Any]) -> None:
        kind, id_, hop = record.value["kind"], record.value["id"], record.value["hop"]
        call_function()
        if kind == DROPPED and World.scheduler.rng.random() < 0.6:
            return
        self._write(record.key, kind, id_, hop)

    def _tick(self, now_ms: int) -> None:
        key = f"ticks-{self.context.task_id}"
        count = self.store.get(key)
        call_function()
        if count is not None and int(count) >= TICKS:
            self._schedule.cancel()
            return
        number = int(count or 0) + 1
        self.store.put(key, str(number))
        self._write(f"clock-{self.context.task_id}", WRITTEN, f"tick-{self.context.task_id}-{number}", 0)

    def _write(self, key: str, kind: str, id_: str, hop: int) -> None:
        time_ms = self.context.current_system_time_ms()
        self.context.forward(Record(key, self.chain(key, f"{id_}/{hop}"), time_ms), FIRST_OUT)
        value = {"kind": kind, "id": id_, "hop": hop, "key": key}
        self.context.forward(Record(f"r{sum(id_.encode()) % 3}", value, time_ms), REKEYED)


class FirstWithTable(First):
    """Names the record of the same key that came before, as far as the table of the input knows."""

    def init(self, context: Any) -> None:
        super().init(context)
        self._table: Any = context.get_state_store(TABLE)
        self._previous: dict[str, Any] = {}

    def process(self, record: Record[str, Any]) -> None:
        id_, hop = record.value["id"], record.value["hop"]
        if hop == 0:
            before = self._table.get(record.key)
            self._previous = {f"{id_}/0": None if before is None else before["id"]}
            self._table.put(record.key, record.value)
        super().process(record)

    def chain(self, key: str, id_: str) -> dict[str, Any]:
        found = super().chain(key, id_)
        return {**found, "previous": self._previous[id_]} if id_ in self._previous else found


class Second(_Chained):
    store_name = SECOND

    def process(self, record: Record[str, Any]) -> None:
        value = record.value
        call_function()
        time_ms = self.context.current_system_time_ms()
        if value["kind"] == LOOPED and value["hop"] == 0:
            again = {"kind": LOOPED, "id": value["id"], "hop": 1}
            self.context.forward(Record(value["key"], again, time_ms), LOOP)
            return
        self.context.forward(Record(record.key, self.chain(record.key, value["id"]), time_ms), OUT)


def call_function() -> None:
    """A user's function: others run meanwhile, and it may fail."""
    scheduler = World.scheduler
    scheduler.step("function")
    if scheduler.chance(World.failing):
        message = "no such number"
        raise ValueError(message)


class _Program(Topology):
    """A topology to which nothing is added any more: every history asks for the same again and again."""

    _parts: tuple[Subtopology, ...] | None = None

    def subtopologies(self) -> tuple[Subtopology, ...]:
        return super().subtopologies() if self._parts is None else self._parts

    def finish(self) -> Topology:
        self._parts = self.subtopologies()
        return self


@cache
def topology(*, in_memory: bool, table: bool) -> Topology:
    made = _Program()
    made.add_internal_topic(LOOP, PARTITIONS)
    made.add_internal_topic(REKEYED, PARTITIONS)
    made.add_source("in", "in").add_source("again", LOOP)
    made.add_processor(FIRST, FirstWithTable if table else First, "in", "again")
    made.add_sink(FIRST_OUT, FIRST_OUT, FIRST).add_sink(REKEYED, REKEYED, FIRST)
    made.add_source("by-id", REKEYED)
    made.add_processor(SECOND, Second, "by-id")
    made.add_sink(OUT, OUT, SECOND).add_sink(LOOP, LOOP, SECOND)
    supplier = Stores.in_memory_key_value_store if in_memory else Stores.persistent_key_value_store
    for store in (FIRST, SECOND):
        builder = Stores.key_value_store_builder(supplier(store), Serdes.string(), Serdes.string())
        made.add_state_store(builder, store)
    if table:
        builder = Stores.key_value_store_builder(supplier(TABLE), Serdes.string(), Serdes.json())
        made.add_state_store(builder.with_logging_disabled(), FIRST)
        made.connect_source_store_and_topic(TABLE, "in")
    return made.finish()

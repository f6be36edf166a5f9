"""Stores of one's own."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import pytest

from headrace import (
    InvalidStateStoreError,
    Processor,
    ProcessorContext,
    Record,
    Serdes,
    StateStore,
    StateStoreContext,
    Stores,
    StreamsBuilder,
    Topology,
    TopologyError,
    TopologyTestDriver,
)
from headrace.state import Changes, MemoryEngine, OverlayEngine


class Totals(StateStore):
    """Sums by key, which are only in memory until a commit."""

    def __init__(self, context: StateStoreContext, factor: int = 1) -> None:
        super().__init__(context)
        self.factor = factor
        self._encode = context.key_serde.serializer(context.topic, is_key=True)
        self._pending: dict[bytes, int] = {}

    def add(self, key: str, amount: int) -> int:
        self.check_open()
        name = self._encode(key)
        self._pending[name] = self._total(name) + amount * self.factor
        return self._pending[name]

    def __getitem__(self, key: str) -> int:
        return self._total(self._encode(key))

    def _total(self, name: bytes) -> int:
        return self._pending[name] if name in self._pending else int(self.engine.get(name) or b"0")

    def flush_writes(self) -> None:
        for name, total in self._pending.items():
            self.engine.put(name, str(total).encode())
        self._pending.clear()

    def reload(self) -> None:
        self._pending.clear()


BUILDER = Stores.custom("totals", Totals)


class Add(Processor[str, int, str, int]):
    def init(self, context: ProcessorContext) -> None:
        super().init(context)
        self.totals: Totals = context.get_state_store("totals")

    def process(self, record: Record[str, int]) -> None:
        total = self.totals.add(record.key, record.value)
        self.context.forward(record.with_value(total))


def topology(builder: Any = BUILDER) -> Topology:
    streams = StreamsBuilder()
    streams.add_state_store(builder)
    streams.stream("in").process(Add, "totals").to("out")
    return streams.build()


@pytest.mark.parametrize("batched", [False, True])
def test_processor_gets_the_store_itself(batched: bool) -> None:  # noqa: FBT001
    with TopologyTestDriver(topology(), batched=batched) as driver:
        driver.create_input_topic("in").pipe_key_values([("a", 1), ("b", 2), ("a", 3)])
        if batched:
            driver.commit()
        assert driver.create_output_topic("out").read_key_values() == [("a", 1), ("b", 2), ("a", 4)]
        store = driver.get_state_store("totals")
        assert isinstance(store, Totals)
        assert (store["a"], store["b"], store["c"]) == (4, 2, 0)


def test_topology_takes_it_too() -> None:
    made = Topology().add_source("source", "in").add_processor("add", Add, "source")
    made.add_state_store(BUILDER, "add").add_sink("sink", "out", "add")
    with TopologyTestDriver(made) as driver:
        driver.create_input_topic("in").pipe_input("a", 1)
        assert driver.create_output_topic("out").read_value() == 1


def test_changes_go_to_the_changelog_at_a_commit() -> None:
    with TopologyTestDriver(topology()) as driver:
        driver.create_input_topic("in").pipe_key_values([("a", 1), ("a", 3)])
        changelog = driver.create_output_topic("headrace-totals-changelog", value_serde=Serdes.string())
        assert changelog.read_key_values() == [("a", "1"), ("a", "4")]


def test_changelog_can_be_switched_off() -> None:
    with TopologyTestDriver(topology(BUILDER.with_logging_disabled())) as driver:
        driver.create_input_topic("in").pipe_input("a", 1)
        assert driver.produced_topic_names() == {"out"}


def test_rows_on_disk_are_there_after_a_restart(tmp_path: Path) -> None:
    for expected in (1, 2):
        with TopologyTestDriver(topology(), state_dir=tmp_path) as driver:
            driver.create_input_topic("in").pipe_input("a", 1)
            assert driver.create_output_topic("out").read_value() == expected


def test_changelog_restores_another_store() -> None:
    engine = OverlayEngine(MemoryEngine())
    first, second = BUILDER.build(engine), BUILDER.build(MemoryEngine())
    first.add("a", 5)
    first.flush_writes()
    second.add("b", 1)
    second.restore(first.changelog_records(engine.changes()))
    assert (second["a"], second["b"]) == (5, 1)
    second.restore(first.changelog_records(Changes(rows={b"a": None})))
    assert second["a"] == 0


def test_factory_can_have_arguments_and_serdes_of_its_own() -> None:
    builder = Stores.custom("totals", partial(Totals, factor=10), key_serde=Serdes.long(), persistent=False)
    store = builder.build(MemoryEngine())
    assert (store.add(7, 2), store[7], store.persistent) == (20, 20, False)


class Positions(StateStore):
    def note(self) -> str:
        return str(self.record_metadata)


def test_store_knows_the_record_at_hand_and_its_position() -> None:
    class Note(Processor[str, str, str, str]):
        stores = (Stores.custom("positions", Positions),)

        def process(self, record: Record[str, str]) -> None:
            self.context.forward(record.with_value(self.context.get_state_store("positions").note()))

    builder = StreamsBuilder()
    builder.stream("in").process(Note).to("out")
    with TopologyTestDriver(builder.build()) as driver:
        driver.create_input_topic("in").pipe_key_values([("a", "x"), ("a", "y")])
        values = driver.create_output_topic("out").read_values()
        assert values[1] == "RecordMetadata(topic='in', partition=0, offset=1)"
        assert driver.get_state_store("positions").position == {("in", 0): 1}


def test_global_store_can_be_of_ones_own() -> None:
    class Fill(Processor[str, int, None, None]):
        def init(self, context: ProcessorContext) -> None:
            self.totals: Totals = context.get_state_store("totals")

        def process(self, record: Record[str, int]) -> None:
            self.totals.add(record.key, record.value)

    class Read(Processor[str, str, str, int]):
        def process(self, record: Record[str, str]) -> None:
            self.context.forward(Record(record.key, self.context.get_state_store("totals")[record.key], 0))

    builder = StreamsBuilder()
    builder.add_global_store(BUILDER.with_logging_disabled(), "amounts", None, Fill)
    builder.stream("in").process(Read).to("out")
    with TopologyTestDriver(builder.build()) as driver:
        driver.create_input_topic("amounts").pipe_key_values([("a", 1), ("a", 2)])
        driver.create_input_topic("in").pipe_input("a", "x")
        assert driver.create_output_topic("out").read_value() == 3


def test_closed_store_can_refuse() -> None:
    with TopologyTestDriver(topology()) as driver:
        store = driver.get_state_store("totals")
    with pytest.raises(InvalidStateStoreError, match="store 'totals' is closed"):
        store.add("a", 1)


def test_it_cannot_be_cached() -> None:
    with pytest.raises(TopologyError, match="store 'totals': a store of one's own cannot be cached"):
        BUILDER.with_caching_enabled()


@pytest.mark.parametrize(
    ("factory", "message"),
    [
        (7, "store 'mine': factory must be a StateStore class, got int 7"),
        (lambda context: {}, "store 'mine': its factory must return a StateStore; found dict"),
    ],
)
def test_factory_must_make_a_state_store(factory: Any, message: str) -> None:
    with pytest.raises(TopologyError, match=message):
        Stores.custom("mine", factory).build(MemoryEngine())

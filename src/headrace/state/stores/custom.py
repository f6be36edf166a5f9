"""Custom stores: a user's class above an engine, which keeps its bytes."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, ClassVar

from headrace.record import RecordMetadata
from headrace.serdes import Serde
from headrace.state.engines.changes import Changes
from headrace.state.engines.engine import Engine
from headrace.state.stores.store import ChangelogRecord, Store


@dataclass(frozen=True, slots=True)
class StateStoreContext:
    """Arguments of a custom store: its name, engine, serdes and changelog topic."""

    name: str
    """Name of the store."""
    engine: Engine
    """An ordered map of bytes, for this store alone: what is put there is committed and restored with the task."""
    persistent: bool
    """Whether the engine is on disk, where the host has a disk."""
    key_serde: Serde[Any]
    """Serde that the builder was given for keys, or the application's default."""
    value_serde: Serde[Any]
    """Serde that the builder was given for values, or the application's default."""
    topic: str
    """Changelog topic of the store, which serdes are told."""


class StateStore(Store):
    """Base of custom stores: subclass it, add the methods that your processors need, build it by `Stores.custom`.

    A store that writes to ``engine`` at once and reads from there has nothing else to do: its rows are committed,
    logged to the changelog topic and restored with everything else. One that keeps more in memory overrides
    ``flush_writes``, to bring it to the engine at a commit, and ``reload``, to forget it and read the engine again;
    both are also called around a restoration. Delete rows one by one: the changelog has no record for a deleted range,
    unless ``changelog_records`` is overridden, too.

    There is one store per task, so it sees the keys of one partition only. It is not cached.

    >>> from headrace import Processor, Record, StateStoreContext, Stores, StreamsBuilder, TopologyTestDriver
    >>> class SetStore(StateStore):
    ...     def __init__(self, context: StateStoreContext) -> None:
    ...         super().__init__(context)
    ...         self._bytes_of = context.key_serde.serializer(context.topic, is_key=True)
    ...
    ...     def add(self, member: object) -> bool:
    ...         name = self._bytes_of(member)
    ...         is_new = self.engine.get(name) is None
    ...         self.engine.put(name, b"")
    ...         return is_new
    >>> class Distinct(Processor[str, str, str, str]):
    ...     stores = (Stores.custom("seen", SetStore),)
    ...
    ...     def process(self, record: Record[str, str]) -> None:
    ...         if self.context.get_state_store("seen").add(record.value):
    ...             self.context.forward(record)
    >>> builder = StreamsBuilder()
    >>> builder.stream("in").process(Distinct).to("out")
    >>> with TopologyTestDriver(builder.build()) as driver:
    ...     driver.create_input_topic("in").pipe_values(["a", "b", "a"])
    ...     driver.create_output_topic("out").read_values()
    ['a', 'b']
    """

    kind: ClassVar[str] = "custom"

    def __init__(self, context: StateStoreContext) -> None:
        super().__init__(context.name, context.engine, persistent=context.persistent)
        self.context = context
        self.dirty = {}

    @property
    def record_metadata(self) -> RecordMetadata | None:
        """Topic, partition and offset of the record that is being processed; None inside a punctuation."""
        origin = self.task.origin
        return None if origin is None else RecordMetadata(origin[0], origin[1], self.task.offset)

    def flush_writes(self) -> None:
        """Brings what is only in memory to the engine; called at every commit. Here there is nothing."""

    def forget_volatile(self) -> None:
        # Nobody knows what it keeps in memory.
        self.reload()

    def reload(self) -> None:
        """Forgets what is in memory, because the engine has changed or may have. Here there is nothing."""

    def read_only(self) -> Any:
        """Returns what processors get that only read, if the store is global: the store itself, unless overridden."""
        return self

    def changelog_records(self, changes: Changes) -> list[ChangelogRecord]:
        """Returns what has changed in the engine as records of the changelog topic: keys and values as they are."""
        return [(key, value, None) for key, value in changes.rows.items()]

    def restore(self, records: Iterable[ChangelogRecord]) -> None:
        """Writes records of the changelog topic into the engine."""
        self.flush_writes()
        self.engine.apply(Changes(rows={key: value for key, value, _ in records}))
        self.reload()

"""Stores of a topology that can be queried, with the topics that their views are read from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from headrace.state import StoreBuilder
from headrace.topology.queryable_stores import changelogs_of
from headrace.topology.topology import Topology

Part = tuple[str, int]
"""A store and one of its partitions."""


@dataclass(frozen=True)
class ViewedStore:
    """A store that can be queried."""

    name: str
    builder: StoreBuilder
    topic: str
    """Where its changes are read."""
    subtopology: int
    """Stores of one sub-topology are kept together, partition by partition; -1 if it is global."""
    is_global: bool = False
    """Whether it is whole on every instance, and kept from its own topic by its own processor."""
    is_source: bool = False
    """Whether its changelog is the topic that the table is read from; then it is read as far as the application is."""

    @property
    def kind(self) -> str:
        return self.builder.kind


def viewed_stores(topology: Topology, application_id: str) -> dict[str, ViewedStore]:
    """Returns the stores that can be queried, by name.

    >>> from headrace import Materialized, StreamsBuilder
    >>> builder = StreamsBuilder()
    >>> table = builder.stream("in").group_by_key().count(materialized=Materialized("counts"))
    >>> prices = builder.global_table("prices", materialized=Materialized("prices"))
    >>> {name: store.topic for name, store in viewed_stores(builder.build(), "app").items()}
    {'counts': 'app-counts-changelog', 'prices': 'prices'}
    """
    home = {store: part.id for part in topology.subtopologies() for store in part.state_stores}
    own = changelogs_of(topology, application_id)
    generated = {names.state_store for names in topology.implicit_names}
    all_topics = topology.changelog_topics(application_id)
    found: dict[str, ViewedStore] = {}
    for name in topology.state_stores:
        builder = topology.store_builders[name]
        if builder.kind == "custom":
            # Nobody but its class knows what could be asked.
            continue
        if name in own:
            found[name] = ViewedStore(name, builder.unlimited(), own[name], home[name])
        elif name in all_topics and not builder.logging and name not in generated:
            found[name] = ViewedStore(name, builder.unlimited(), all_topics[name], home[name], is_source=True)
    for name, store in topology.global_stores.items():
        found[name] = ViewedStore(name, store.builder, store.topic, -1, is_global=True)
    return found


def task_name(store: ViewedStore, partition: int) -> str:
    """Returns the task of a partition: the unit that is assigned to instances."""
    return f"{store.subtopology}_{partition}"


def task_counts(stores: Mapping[str, ViewedStore], partitions: Mapping[str, int]) -> dict[str, list[Part]]:
    """Returns the parts of stores by task; ``partitions`` are those of their topics."""
    tasks: dict[str, list[Part]] = {}
    for store in stores.values():
        if not store.is_global:
            for each in range(partitions[store.topic]):
                tasks.setdefault(task_name(store, each), []).append((store.name, each))
    return tasks

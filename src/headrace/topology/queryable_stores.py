"""Stores that can be queried, their changelog topics, and the topics that are not internal to the application."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from headrace.state.stores.suppliers import InternalSupplier
from headrace.topology.graph import Graph
from headrace.topology.nodes import ProcessorNode
from headrace.topology.operations import Distinct, JoinWindowStore, StreamSelfJoin


def queryable_stores(topology: Graph) -> frozenset[str]:
    """Returns the stores that get a changelog topic of their own, from which views are kept.

    They are those that the user has named and not excluded from logging. What a join, a deduplication or a suppression
    keeps for itself is not among them, named or not; nor is a table whose changelog is the topic it is read from.

    >>> from headrace import Materialized, StreamsBuilder
    >>> builder = StreamsBuilder()
    >>> grouped = builder.stream("in").group_by_key()
    >>> tables = grouped.count(), grouped.count(materialized=Materialized("counts"))
    >>> sorted(queryable_stores(builder.build()))
    ['counts']
    """
    excluded = {names.state_store for names in topology.implicit_names}
    for node in topology.nodes.values():
        # What these remember of records is their own business; names are given to survive a change of topology.
        if isinstance(node, ProcessorNode) and isinstance(node.operation, JoinWindowStore | StreamSelfJoin | Distinct):
            excluded.add(node.operation.store)
    builders = ((name, topology.store_builders[name]) for name in topology.state_stores)
    return frozenset(
        name
        for name, builder in builders
        if builder.logging and name not in excluded and not isinstance(builder.supplier, InternalSupplier)
    )


def topics_of_others(topology: Graph, application_id: str, topics: Iterable[str]) -> list[str]:
    """Returns the topics that are not the application's own internal ones: what a pattern may match.

    >>> from headrace import Grouped, StreamsBuilder
    >>> builder = StreamsBuilder()
    >>> grouped = builder.stream("in").group_by(lambda key, value: value, Grouped("by-value"))
    >>> grouped.count().to_stream().to("out")
    >>> topics_of_others(builder.build(), "app", ["app-by-value-repartition", "in", "out"])
    ['in', 'out']
    """
    own = set(topology.internal_topics(application_id))
    own.update(f"{application_id}-{store}-changelog" for store in topology.state_stores)
    # Where processes that keep views announce themselves.
    own.add(f"{application_id}-views")
    return [topic for topic in topics if topic not in own]


def logged_stores(topology: Graph, application_id: str) -> Mapping[str, str]:
    """Returns the stores that write a changelog topic of their own, and the topic.

    >>> from headrace import StreamsBuilder
    >>> builder = StreamsBuilder()
    >>> table = builder.stream("in").group_by_key().count()
    >>> list(logged_stores(builder.build(), "app").values())
    ['app-KSTREAM-AGGREGATE-STATE-STORE-0000000001-changelog']
    """
    topics = topology.changelog_topics(application_id)
    return {
        store: topics[store]
        for store in topology.state_stores
        if store in topics and topology.store_builders[store].logging
    }


def changelogs_of(topology: Graph, application_id: str) -> Mapping[str, str]:
    """Returns the changelog topics of the stores that can be queried, by store.

    >>> from headrace import Materialized, StreamsBuilder
    >>> builder = StreamsBuilder()
    >>> table = builder.stream("in").group_by_key().count(materialized=Materialized("counts"))
    >>> changelogs_of(builder.build(), "app")
    {'counts': 'app-counts-changelog'}
    """
    topics = topology.changelog_topics(application_id)
    return {store: topics[store] for store in topology.state_stores if store in queryable_stores(topology)}

"""Rewrites: what happens to the logical graph before it is written, one function per file.

Each takes a graph and returns another one. Some always happen, the others if ``topology_optimization`` asks for them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from headrace.config import StreamsConfig
from headrace.dsl.graph import Graph
from headrace.dsl.rewrites.merge_repartitions import key_changers, merge_repartition_topics
from headrace.dsl.rewrites.merge_sources import merge_duplicate_sources
from headrace.dsl.rewrites.null_keys import keep_null_keys
from headrace.dsl.rewrites.reuse_topics import reuse_source_topics
from headrace.dsl.rewrites.self_join import join_with_one_store
from headrace.dsl.rewrites.versioned import use_versioned_semantics

Rewrite = Callable[[Graph], Graph]


def rewrite(graph: Graph, config: StreamsConfig) -> Graph:
    """Applies all rewrites that the configuration asks for, in Kafka Streams' order."""
    # Who caused which repartition topic is asked before sources are merged, because that changes the order of parents.
    changers = key_changers(graph)
    optimizations: Mapping[str, Rewrite] = {
        "reuse.ktable.source.topics": reuse_source_topics,
        "merge.repartition.topics": lambda graph: merge_repartition_topics(graph, changers),
        "single.store.self.join": join_with_one_store,
    }
    graph = merge_duplicate_sources(graph)
    for name, optimize in optimizations.items():
        if name in config.optimizations:
            graph = optimize(graph)
    return use_versioned_semantics(keep_null_keys(graph))

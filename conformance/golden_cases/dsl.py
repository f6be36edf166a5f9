"""Builds the topology of a DSL case."""

from __future__ import annotations

from types import ModuleType

from golden_cases import dsl_streams, dsl_tables
from golden_cases.case import Case
from golden_cases.dsl_build import DslBuild
from golden_cases.effects import EffectSink
from headrace import StreamsBuilder, StreamsConfig, Topology

_CALLS = dsl_streams.CALLS | dsl_tables.CALLS


def build(case: Case, functions: ModuleType, config: StreamsConfig, effects: EffectSink) -> Topology:
    """Builds the topology with the calls that the case lists, in their order."""
    making = DslBuild(functions, effects, StreamsBuilder(config))
    for node in case["nodes"]:
        making.handles[node["id"]] = _CALLS[node["op"]](making, node)
    return making.builder.build(config)

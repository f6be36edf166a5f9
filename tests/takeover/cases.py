"""Topologies of the golden cases, as applications with topics of their own and generated input."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from golden_cases.case import Case, case_lines, load_functions, parse
from golden_cases.dsl import build
from headrace import StreamsConfig, Topology
from headrace.topics.log import Output

_GOLDEN = Path(__file__).parent.parent / "golden"
_KEYS = ("a", "b", "c", "d", "m", "z")
_VALUES = ("a", "b", "c", "ab", "ba", "m", "zab", "aab", "ca", "mm")
_JAVA_OPS = frozenset(
    {
        *("stream", "table", "to", "filter", "filter_not", "map_values", "flat_map_values", "map", "flat_map"),
        *("select_key", "merge", "repartition", "peek", "for_each", "process", "process_values", "to_table"),
        *("group_by_key", "group_by", "count", "reduce", "aggregate", "cogroup", "table_group_by", "table_reduce"),
        *("table_aggregate", "table_filter", "table_filter_not", "table_map_values", "suppress", "to_stream"),
        *("to_stream_windowed", "join", "left_join", "outer_join", "fk_join", "fk_left_join"),
    }
)
_JAVA_PROCESSORS = frozenset({"count_per_key", "dedup", "scan", "pass"})
_STATEFUL = frozenset(
    {
        *("table", "process", "process_values", "to_table", "count", "reduce", "aggregate", "cogroup", "table_reduce"),
        *("table_aggregate", "suppress", "join", "left_join", "outer_join", "fk_join", "fk_left_join"),
    }
)
STORE_KINDS = frozenset(
    {
        *("key_value", "timestamped_key_value", "versioned", "timestamped_window", "session"),
        # Of operations: both sides of a stream-stream join, what has found no partner, what waits for a table.
        *("window", "unmatched", "buffer"),
        *("suppress", "subscription"),
    }
)
"""Kinds of stores that have a changelog in Kafka Streams."""
FEWEST = 30
"""Topologies that a long run has at least."""
_SENDING = frozenset({"select_key", "map", "flat_map", "group_by", "repartition", "table_group_by"})


@dataclass(frozen=True)
class Application:
    """One case under a name of its own."""

    name: str
    case: Case

    @property
    def inputs(self) -> list[str]:
        return [self._topic(topic) for topic in self.case["topics"]]

    @property
    def outputs(self) -> list[str]:
        return [self._topic(topic) for topic in self.case["outputs"]]

    def _topic(self, topic: str) -> str:
        return f"{self.name}.{topic}"

    @property
    def partitions(self) -> int:
        """Of all topics: one where records are sent on, because the order of what several tasks send is not certain."""
        return 1 if any(node["op"] in _SENDING for node in self.case["nodes"]) else 2

    @property
    def nodes(self) -> list[dict[str, Any]]:
        return [
            {**node, "topic": self._topic(node["topic"])} if "topic" in node else node for node in self.case["nodes"]
        ]

    @property
    def is_eventual(self) -> bool:
        """Whether tables meet that were sent on their ways apart: only the last result of a key is certain."""
        return any(node["op"].startswith("fk_") for node in self.case["nodes"])

    @property
    def waits_for_tables(self) -> bool:
        """Whether records wait for a table in a buffer, whose changelog Kafka Streams itself cannot read again."""
        return any("grace_ms" in node for node in self.case["nodes"])

    def config(self, servers: str, directory: Path) -> StreamsConfig:
        return StreamsConfig.of(
            {
                "application_id": self.name,
                "bootstrap.servers": servers,
                "state_dir": str(directory),
                "emit.interval.ms": 0,
                "statestore.cache.max.bytes": 0,
                "max_batch_records": 150,
            }
        )

    def topology(self, config: StreamsConfig) -> Topology:
        functions = load_functions(_GOLDEN / "functions.py")
        return build({**self.case, "nodes": self.nodes}, functions, config, [])

    def records(self, count: int, seed: int, begin_ms: int) -> list[tuple[int, Output]]:
        """Returns input by the number of its topic, each record later than the one before.

        Times are those of today: brokers delete rows of windows in changelogs of Kafka Streams by their own clocks.
        Late records would show a difference that is none: Kafka Streams forgets at a restart how late it is.
        """
        chance = random.Random(f"{self.case['id']} {seed}")
        tables = {self.case["topics"].index(node["topic"]) for node in self.case["nodes"] if node["op"] == "table"}
        found: list[tuple[int, Output]] = []
        time_ms = begin_ms
        for _ in range(count):
            time_ms += chance.choice((1, 1, 1, 2, 3, 3, 12))
            number = chance.randrange(len(self.case["topics"]))
            is_deletion = number in tables and chance.random() < 0.1
            value = None if is_deletion else chance.choice(_VALUES).encode()
            found.append((number, (None, time_ms, chance.choice(_KEYS).encode(), value, ())))
        return found


def golden_cases(*ids: str) -> Iterator[Case]:
    """Returns cases by their ids; without any, all that Java can build and that have certain results."""
    for line in case_lines(_GOLDEN / "scenarios.jsonl.gz"):
        case = parse(line)
        if case["id"] in ids or (not ids and _is_fit(case)):
            yield case


def selected_cases(every: int, seed: int) -> list[Case]:
    """Returns every so many of the cases, others for other seeds."""
    return list(islice(golden_cases(), seed % every, None, every))


def _is_fit(case: Case) -> bool:
    nodes = case["nodes"]
    operations = {node["op"] for node in nodes}
    processors = {node["processor"] for node in nodes if "processor" in node}
    tricks = any("extractor" in node or "topic_fn" in node or "topics" in node for node in nodes)
    fills_up = any(node.get("full") == "shut_down" or "max_records" in node for node in nodes)
    return (
        case["api"] == "dsl"
        and "build_error" not in case
        and operations <= _JAVA_OPS
        and bool(operations & _STATEFUL)
        and processors <= _JAVA_PROCESSORS
        and not tricks
        and not fills_up
        and not _races(nodes, operations)
    )


def _races(nodes: list[dict[str, Any]], operations: set[str]) -> bool:
    """Whether what was sent over a repartition meets what was not: which comes first differs from run to run."""
    sends = bool(operations & _SENDING)
    meets = any(node["op"] in {"cogroup", "join", "left_join", "outer_join", "merge"} for node in nodes)
    return sends and meets

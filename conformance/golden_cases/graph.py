"""Graph of a case: the nodes that lead to each topic and store."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cached_property

from golden_cases.case import Case, GoldenNode
from headrace import Topology
from headrace.topology.levels import back_edges, forward_edges

AGGREGATIONS = frozenset({"count", "reduce", "aggregate", "cogroup", "table_reduce", "table_aggregate"})
TABLES = AGGREGATIONS | {"table", "to_table", "table_filter", "table_filter_not", "table_map_values"}
PROCESSORS = frozenset({"process", "process_values", "add_processor"})
_JOINS = frozenset({"join", "left_join", "outer_join", "fk_join", "fk_left_join"})


class CaseGraph:
    """A case as a graph, and what its topology was made into."""

    def __init__(self, case: Case, topology: Topology) -> None:
        self.case = case
        self.nodes: dict[str, GoldenNode] = {_name(node): node for node in case["nodes"]}
        self.parts = [part for part in topology.subtopologies() if not part.is_global]
        self.has_edges = bool(forward_edges(topology) or back_edges(topology))
        self.has_cache = case["config"]["cache_bytes"] > 0

    def named(self, *ops: str) -> set[str]:
        return {name for name, node in self.nodes.items() if node["op"] in ops}

    def is_table(self, node: GoldenNode) -> bool:
        return node["op"] in TABLES or (node["op"] in _JOINS and node.get("right", "TT") == "TT")

    @cached_property
    def _children(self) -> dict[str, set[str]]:
        children: dict[str, set[str]] = {name: set() for name in self.nodes}
        written: dict[str, set[str]] = {}
        for name, node in self.nodes.items():
            if node["op"] in {"to", "add_sink"}:
                written.setdefault(node["topic"], set()).add(name)
            for parent in node.get("of", ()):
                # A store hangs on its processors, and through it they hang on each other.
                children[parent].add(name)
                if node["op"] == "add_state_store":
                    children[name].add(parent)
        for name, node in self.nodes.items():
            for topic in node.get("topics") or [node.get("topic")]:
                if node["op"] in {"stream", "table", "add_source"}:
                    for sink in written.get(topic, ()):
                        children[sink].add(name)
        return children

    def below(
        self, starts: Iterable[str], *, through: Callable[[GoldenNode], bool] | None = None, itself: bool = True
    ) -> set[str]:
        """Returns nodes and all that hangs on them.

        With ``through``, only from an operation of that kind on; unless ``itself``, a start is not yet one.
        """
        seen: set[tuple[str, bool]] = set()
        waiting = [(name, self._is(name, through) if itself else through is None) for name in starts]
        while waiting:
            name, behind = waiting.pop()
            if (name, behind) not in seen:
                seen.add((name, behind))
                waiting += [(child, behind or self._is(child, through)) for child in self._children[name]]
        return {name for name, behind in seen if behind}

    def _is(self, name: str, kind: Callable[[GoldenNode], bool] | None) -> bool:
        return kind is None or kind(self.nodes[name])

    def topics(self, nodes: Iterable[str]) -> set[str]:
        """Returns the output topics that nodes write; an extractor may write any that begins with its topic."""
        written = [self.nodes[name] for name in nodes if self.nodes[name]["op"] in {"to", "add_sink"}]
        return {
            topic
            for topic in self.case["outputs"]
            for node in written
            if topic == node["topic"] or ("topic_fn" in node and topic.startswith(node["topic"]))
        }

    def stores(self, nodes: Iterable[str]) -> set[str]:
        """Returns the named stores of nodes."""
        return {self.nodes[name]["store"] for name in nodes if "store" in self.nodes[name]}


def _name(node: GoldenNode) -> str:
    # Stores of the Processor API have no name as a node.
    if node["op"] == "add_state_store":
        return f"store {node['store']}"
    name: str = node["id"] if "id" in node else node["name"]
    return name

"""Lowering of nodes to functions: each node is one function that calls those of its children."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Any

from headrace.errors import TopologyError
from headrace.operators import Edge, ValueGetter, operator
from headrace.operators import getter as table_getter
from headrace.operators.base import with_made_functions
from headrace.record import Change
from headrace.runtime.context import NodeContext
from headrace.runtime.debug_metrics import counting, measuring
from headrace.runtime.sinks import sink_edge
from headrace.runtime.stages import Stages
from headrace.runtime.task_state import TaskState
from headrace.runtime.waiting_calls import WaitingCalls
from headrace.topics.log import Headers
from headrace.topology.nodes import ProcessorNode, SinkNode, SourceNode
from headrace.topology.operations import EdgeKind, Operation

AnyNode = SourceNode | ProcessorNode | SinkNode


def _end_of_stream(key: Any, value: Any, timestamp_ms: int, headers: Headers) -> None:
    """A node without children."""


def _end_of_table(key: Any, new: Any, old: Any, timestamp_ms: int, headers: Headers, latest: bool) -> None:  # noqa: FBT001
    """A table without children."""


def _end_of_record() -> None:
    """The trace of a record."""


def fan_out(edges: Sequence[Edge], kind: EdgeKind) -> Edge:
    """Returns one edge that calls all of them in order, each with its whole subtree before the next.

    One and two children, by far the most common, get no loop.
    """
    if not edges:
        return _end_of_stream if kind == "stream" else _end_of_table
    if len(edges) == 1:
        return edges[0]
    if len(edges) == 2:
        first, second = edges

        def stream_to_two(key: Any, value: Any, timestamp_ms: int, headers: Headers) -> None:
            first(key, value, timestamp_ms, headers)
            second(key, value, timestamp_ms, headers)

        def table_to_two(key: Any, new: Any, old: Any, timestamp_ms: int, headers: Headers, latest: bool) -> None:  # noqa: FBT001
            first(key, new, old, timestamp_ms, headers, latest)
            second(key, new, old, timestamp_ms, headers, latest)

        return stream_to_two if kind == "stream" else table_to_two

    def stream_to_all(key: Any, value: Any, timestamp_ms: int, headers: Headers) -> None:
        for edge in edges:
            edge(key, value, timestamp_ms, headers)

    def table_to_all(key: Any, new: Any, old: Any, timestamp_ms: int, headers: Headers, latest: bool) -> None:  # noqa: FBT001
        for edge in edges:
            edge(key, new, old, timestamp_ms, headers, latest)

    return stream_to_all if kind == "stream" else table_to_all


def _changes_as_values(edge: Edge) -> Edge:
    """Lets a node that takes records stand below a table: its values are the changes themselves."""

    def adapt(key: Any, new: Any, old: Any, timestamp_ms: int, headers: Headers, latest: bool) -> None:  # noqa: FBT001
        edge(key, Change(new, old, latest), timestamp_ms, headers)

    return adapt


def _takes(node: AnyNode) -> EdgeKind:
    return node.operation.takes if isinstance(node, ProcessorNode) else "stream"


def _gives(node: AnyNode) -> EdgeKind:
    return node.operation.gives if isinstance(node, ProcessorNode) else "stream"


class Lowering:
    """Lowers the nodes of one task; parents come before their children in ``nodes``."""

    def __init__(self, nodes: Sequence[AnyNode], children: Mapping[str, Sequence[str]], state: TaskState) -> None:
        self._nodes = {node.name: node for node in nodes}
        self._children = children
        self._state = state
        self._contexts = {node.name: NodeContext(node.name, state, self) for node in nodes}
        self._edges: dict[str, Edge] = {}
        self._getters: dict[str, ValueGetter] = {}
        self._counts = state.config.metrics_recording_level != "INFO"
        self._stages = Stages.divide(nodes, children)
        state.waiting = tuple(WaitingCalls(state) for _ in range(self._stages.count))

    def rank(self, name: str, store: str) -> int:
        """Returns how many nodes before this one do the same with a store: inputs of a cogroup have one together."""
        nodes = [node for node in self._nodes.values() if isinstance(node, ProcessorNode)]
        users = [(node.name, type(node.operation)) for node in nodes if getattr(node.operation, "store", None) == store]
        kind = dict(users)[name]
        return [user for user, operation in users if operation is kind].index(name)

    def sources(self) -> dict[str, Edge]:
        """Lowers every node and returns, by the name of each source node, what a record of it goes to."""
        for name in reversed(self._nodes):
            node = self._nodes[name]
            if isinstance(node, ProcessorNode):
                self._edges[name] = operator(with_made_functions(node.operation), self._contexts[name])
            elif isinstance(node, SinkNode):
                self._edges[name] = sink_edge(node, self._state)
            if self._counts and name in self._edges:
                self._edges[name], self._state.process_counts[name] = counting(self._edges[name], _takes(node))
            if name in self._stages.barriers:
                self._edges[name] = self._behind_all_waiting(self._edges[name], self._stages.of[name])
        # Lowering goes from the leaves up, but processors are initialised from the sources down.
        self._state.reverse_actions()
        sources = [name for name, node in self._nodes.items() if isinstance(node, SourceNode)]
        edges = {name: self.forward(name) for name in sources}
        if self._state.waiting and self._state.has_processors:
            edges = {name: self._leaving_a_trace(edge) for name, edge in edges.items()}
        if self._counts:
            for name in sources:
                edges[name], self._state.lateness[name] = measuring(edges[name], self._state)
        return edges

    def forward(self, name: str) -> Edge:
        """Returns the edge from a node to all its children."""
        kind = _gives(self._nodes[name])
        return fan_out([self.edge(name, child) for child in self._children.get(name, ())], kind)

    def edge(self, parent: str, child: str) -> Edge:
        """Returns the edge from a node to one child."""
        if child not in self._children.get(parent, ()):
            known = ", ".join(self._children.get(parent, ())) or "none"
            message = f"node '{parent}': cannot forward to '{child}', which is not one of its children ({known})"
            raise TopologyError(message)
        edge = self._edges[child]
        if _gives(self._nodes[parent]) == "table" and _takes(self._nodes[child]) == "stream":
            edge = _changes_as_values(edge)
        for waiting in reversed(self._state.waiting[self._stage_below(parent) : self._stages.of[child]]):
            edge = waiting.deferring(edge)
        return edge

    def _stage_below(self, parent: str) -> int:
        """Returns the stage in which a node calls its children."""
        return self._stages.batching.get(parent, self._stages.of[parent])

    def _behind_all_waiting(self, edge: Edge, stage: int) -> Edge:
        later = self._state.waiting[stage:]

        def run_waiting_first(*arguments: Any) -> None:
            for waiting in later:
                waiting.run()
            edge(*arguments)

        return run_waiting_first

    def _leaving_a_trace(self, edge: Edge) -> Edge:
        """Lets every record wait in some way: a processor may schedule a punctuation that is due when it comes."""
        trace: Edge = _end_of_record
        for waiting in reversed(self._state.waiting):
            trace = waiting.deferring(trace)

        def pass_and_trace(key: Any, value: Any, timestamp_ms: int, headers: Headers) -> None:
            edge(key, value, timestamp_ms, headers)
            trace()

        return pass_and_trace

    def waiting_behind(self, name: str) -> WaitingCalls:
        """Returns the calls that wait for the batches of a node."""
        return self._state.waiting[self._stages.batching[name] - 1]

    def getter(self, name: str) -> ValueGetter:
        """Returns the rows of the table that a node makes."""
        if name not in self._getters:
            node = self._nodes[name]
            operation: Operation | None = node.operation if isinstance(node, ProcessorNode) else None
            if operation is None:
                message = f"node '{name}' is not a table"
                raise TopologyError(message)
            self._getters[name] = table_getter(with_made_functions(operation), self._contexts[name])
        return self._getters[name]

    def connected_stores(self, name: str) -> frozenset[str]:
        """Returns the names of the stores that a processor may use."""
        node = self._nodes[name]
        return frozenset(node.stores) if isinstance(node, ProcessorNode) else frozenset()

    def functions(self, name: str) -> list[Any]:
        """Returns what a node was given to call, for messages."""
        node = self._nodes[name]
        if not isinstance(node, ProcessorNode):
            return []
        return [getattr(node.operation, field.name) for field in fields(node.operation)]

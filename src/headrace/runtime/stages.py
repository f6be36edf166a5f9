"""Stages of a task: the order of its nodes around ``map_batches``.

A record that reaches ``map_batches`` waits there for others. What comes after it has to see everything in the order in
which it would have come without waiting: other inputs of a join, rows of a table that is looked up, stream time. So the
nodes of a task are divided into stages. Sources and what is above ``map_batches`` are in the first stage and run at
once. All others are in a later stage: a call that goes from one stage to a later one waits in a queue, and the queue is
run in its order once the values of its batch are there. Tables that nodes of a stage look rows up in belong to that
stage as well.

Where a node writes a store that a node of a later stage uses, no order of stages is right. Such a node is a *barrier*:
whatever waits is run before it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from headrace.topology.nodes import ProcessorNode, SinkNode, SourceNode
from headrace.topology.operations import MapBatches, Operation, StreamTableJoin

AnyNode = SourceNode | ProcessorNode | SinkNode


@dataclass(frozen=True)
class Stages:
    """The stages of a task's nodes, by name; ``count`` is the number of the last one."""

    count: int
    of: Mapping[str, int]
    """The stage in which a node runs."""
    batching: Mapping[str, int]
    """The stage into which ``map_batches`` forwards."""
    barriers: frozenset[str]

    @classmethod
    def divide(cls, nodes: Sequence[AnyNode], children: Mapping[str, Sequence[str]]) -> Stages:
        """Divides the nodes of a task; parents come before their children.

        >>> from headrace import StreamsBuilder
        >>> builder = StreamsBuilder()
        >>> orders, users = builder.stream("orders"), builder.table("users")
        >>> orders.map_batches(len, name="score").join(users, max, name="join").to("out")
        >>> topology = builder.build()
        >>> stages = Stages.divide(list(topology.nodes.values()), topology.children)
        >>> stages.of["score"], stages.of["join"], stages.of["KTABLE-SOURCE-0000000003"], stages.count
        (0, 1, 1, 1)
        """
        names = {node.name for node in nodes}
        parents = {node.name: [parent for parent in node.parents if parent in names] for node in nodes}
        batching: dict[str, int] = {}
        depth: dict[str, int] = {}
        for node in nodes:
            depth[node.name] = max((depth[parent] for parent in parents[node.name]), default=0)
            if isinstance(node, ProcessorNode) and isinstance(node.operation, MapBatches):
                depth[node.name] += 1
                batching[node.name] = depth[node.name]
        count = max(batching.values(), default=0)
        of = dict.fromkeys(parents, count)
        users = _users_of_stores(nodes)
        for rank in range(count, 0, -1):
            here = [name for name, stage in batching.items() if stage == rank]
            behind = _reachable(here, children) - set(here)
            for name in _above(here, parents, behind, users):
                of[name] = rank - 1
        # The task calls sources itself, whatever they are above.
        of |= {node.name: 0 for node in nodes if isinstance(node, SourceNode)}
        return cls(count, of, batching, _barriers(of, users))


def _above(
    start: Iterable[str],
    parents: Mapping[str, Sequence[str]],
    behind: set[str],
    users: Mapping[str, Mapping[str, Operation]],
) -> set[str]:
    """Returns nodes with all that are above them, and with those that share a store with one of these."""
    found: set[str] = set()
    while (grown := _reachable([*start, *found], parents)) != found:
        found = grown
        for store in users.values():
            if not found.isdisjoint(store):
                found |= store.keys() - behind
    return found


def _reachable(start: Iterable[str], following: Mapping[str, Sequence[str]]) -> set[str]:
    found: set[str] = set()
    ahead = list(start)
    while ahead:
        name = ahead.pop()
        if name not in found:
            found.add(name)
            ahead += following.get(name, ())
    return found


def _users_of_stores(nodes: Iterable[AnyNode]) -> dict[str, dict[str, Operation]]:
    users: dict[str, dict[str, Operation]] = {}
    for node in nodes:
        if isinstance(node, ProcessorNode):
            for store in node.stores:
                users.setdefault(store, {})[node.name] = node.operation
    return users


def _barriers(of: Mapping[str, int], users: Mapping[str, Mapping[str, Operation]]) -> frozenset[str]:
    return frozenset(
        name
        for store in users.values()
        for name, operation in store.items()
        for other, another in store.items()
        # Two that only look rows up do not disturb each other.
        if of[name] < of[other] and not (_only_reads(operation) and _only_reads(another))
    )


def _only_reads(operation: Operation) -> bool:
    return isinstance(operation, StreamTableJoin)

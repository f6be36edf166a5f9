"""Splitting a stream into branches."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeVar

from headrace.arguments.hints import Hinting, explaining
from headrace.dsl import hints
from headrace.dsl.argument_checks import check_function, check_option
from headrace.dsl.graph import NodeId, Process
from headrace.dsl.options import Branched
from headrace.errors import TopologyError
from headrace.topology import operations as ops

if TYPE_CHECKING:
    from headrace.dsl.kstream import KStream

K = TypeVar("K")
V = TypeVar("V")


class Branches(dict[str, "KStream[K, V]"], Generic[K, V]):
    """The streams of a split by name; an unknown name is answered with the known ones.

    >>> from headrace import StreamsBuilder
    >>> split = StreamsBuilder().stream("in").split(name="size-")
    >>> branches = split.branch(lambda key, value: value > 10).default_branch()
    >>> branches["large"]
    Traceback (most recent call last):
    ...
    KeyError: "there is no branch 'large'; the branches are: 'size-1', 'size-0'"
    """

    def __missing__(self, name: str) -> KStream[K, V]:
        known = ", ".join(map(repr, self)) or "none"
        message = f"there is no branch {name!r}; the branches are: {known}"
        raise KeyError(message)


@explaining
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class BranchedKStream(Hinting, Generic[K, V]):
    """A split that is being defined: add branches one by one, then finish it.

    A record goes to the first branch whose predicate holds. If none does, it goes to the default branch, or is dropped.
    """

    _HINTS: ClassVar[Mapping[str, str]] = hints.BRANCHED

    _source: KStream[K, V]
    _node: NodeId
    _name: str
    _branches: dict[str, KStream[K, V]] = field(default_factory=dict)
    _finished: list[str] = field(default_factory=list)

    def branch(self, predicate: Callable[[K, V], bool], branched: Branched | None = None) -> BranchedKStream[K, V]:
        """Adds a branch for the records for which ``predicate(key, value)`` is true.

        >>> from headrace import Branched, StreamsBuilder
        >>> split = StreamsBuilder().stream("in").split(name="size-")
        >>> split = split.branch(lambda key, value: value > 100, Branched("large"))
        >>> list(split.branch(lambda key, value: value > 10).no_default_branch())
        ['size-large', 'size-2']
        """
        where = f"branch() of '{self._name}'"
        check_function(where, "predicate", predicate, "(key, value)")
        self._check_open(where)
        operation = self._operation
        name = self._child_name(len(operation.predicates) + 1, where, branched)
        self._source._draft.change(
            self._node,
            operation=replace(
                operation, predicates=(*operation.predicates, predicate), children=(*operation.children, name)
            ),
        )
        self._add_branch(name, branched)
        return self

    def default_branch(self, branched: Branched | None = None) -> dict[str, KStream[K, V]]:
        """Adds a branch for all other records, and returns the branches by their names.

        The split is finished. Branches with a consumer, or whose function returned None, are not in the result.

        >>> from headrace import StreamsBuilder, TopologyTestDriver
        >>> builder = StreamsBuilder()
        >>> branches = builder.stream("in").split(name="size-").branch(lambda key, value: value > 10).default_branch()
        >>> branches["size-0"].to("small")
        >>> with TopologyTestDriver(builder.build()) as driver:
        ...     driver.create_input_topic("in").pipe_key_values([("a", 1), ("b", 20)])
        ...     driver.create_output_topic("small").read_key_values()
        [KeyValue(key='a', value=1)]
        """
        where = f"default_branch() of '{self._name}'"
        self._check_open(where)
        self._finished.append("default_branch")
        name = self._child_name(0, where, branched)
        self._source._draft.change(self._node, operation=replace(self._operation, default=name))
        self._add_branch(name, branched)
        return Branches(self._branches)

    def no_default_branch(self) -> dict[str, KStream[K, V]]:
        """Drops all other records, and returns the branches by their names.

        >>> from headrace import StreamsBuilder
        >>> StreamsBuilder().stream("in").split(name="size-").branch(lambda key, value: value > 10).no_default_branch()
        {'size-1': <KStream 'size-1'>}
        """
        self._check_open(f"no_default_branch() of '{self._name}'")
        self._finished.append("no_default_branch")
        return Branches(self._branches)

    @property
    def _operation(self) -> ops.Branch:
        operation: ops.Branch = self._source._draft.nodes[self._node].operation  # type: ignore[attr-defined]  # split made it
        return operation

    def _check_open(self, where: str) -> None:
        if self._finished:
            message = f"{where}: the split was finished by {self._finished[0]}(); call split() again for another one"
            raise TopologyError(message)

    def _child_name(self, index: int, where: str, branched: Branched | None) -> str:
        option = check_option(where, "branched", branched, Branched, Branched())
        name = self._name + (str(index) if option.name is None else option.name)
        taken = (*self._operation.children, self._operation.default)
        if name in taken:
            message = f"{where}: there is already a branch named '{name}'; give this one another name"
            raise TopologyError(message)
        return name

    def _add_branch(self, name: str, branched: Branched | None) -> None:
        source, option = self._source, branched or Branched()
        # The index is taken although the name is not generated.
        source._draft.names.node(name)
        node = source._draft.add(Process, name, (self._node,), operation=ops.PassThrough())
        stream = replace(source, _node=node, _name=name)
        if option.consumer is not None:
            option.consumer(stream)
        elif option.function is not None:
            changed = option.function(stream)
            if changed is not None:
                self._branches[name] = changed
        else:
            self._branches[name] = stream


def split(stream: KStream[Any, Any], name: str | None) -> BranchedKStream[Any, Any]:
    """Adds the node that chooses a branch for each record."""
    node_name = stream._draft.names.named(name, "KSTREAM-BRANCH-")
    node = stream._draft.add(Process, node_name, (stream._node,), operation=ops.Branch((), ()))
    return BranchedKStream(stream, node, node_name)

"""Matching of two outlines: which store, node or topic of the former topology is which one of the new one.

What the user has named is found by its name. Generated names count the operators before them, so they are matched by
what the nodes do: by their operations, and by the sources and operations above them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import TypeAlias

from headrace.topology.outline import NodeOutline, Outline, is_generated

# They neither keep rows nor decide which records meet, so they may come and go above a store.
_TRANSPARENT = frozenset(
    {"PassThrough", "TablePassThrough", "Filter", "NullKeyFilter", "MapValues", "FlatMapValues", "Peek", "Print"}
    | {"Branch", "MapBatches", "TableFilter", "TableMapValues", "TableToStream"}
)

Sign: TypeAlias = Callable[[str], str]
"""Name of a store, node or topic -> what it does, as a digest; equal digests are taken for the same thing."""


class Signatures:
    """Signatures of an outline's nodes, to be compared with those of another one, closely or less so."""

    def __init__(self, outline: Outline) -> None:
        self._outline = outline
        self._writers: dict[str, list[NodeOutline]] = {}
        self._users: dict[str, NodeOutline] = {}
        for node in outline.nodes:
            if node.operation == NodeOutline.SINK:
                for topic in node.topics:
                    self._writers.setdefault(topic, []).append(node)
            for store in node.stores:
                # The first one is above all others, so it is the one that writes.
                self._users.setdefault(store, node)
        self._known: dict[tuple[str, str], str] = {}

    def identical(self, node: NodeOutline) -> str:
        """Tells nodes apart by all that is known of them and of those above them, code of functions included."""
        return self._sign("identical", node, lambda each: (each.operation, each.details, each.functions))

    def alike(self, node: NodeOutline) -> str:
        """Tells nodes apart by operations and their settings, with all that is above them."""
        return self._sign("alike", node, lambda each: (each.operation, each.details))

    def same_function(self, node: NodeOutline) -> str:
        """Tells nodes apart by what they do themselves, code included, and by their place."""
        return _digest(node.operation, node.details, node.functions, self.place(node))

    def place(self, node: NodeOutline) -> str:
        """Tells nodes apart by their operation, and by sources and operations above that keep rows or change keys."""
        if node.operation in _TRANSPARENT:
            above = self._above(node, self.place)
            return above[0] if len(above) == 1 else _digest(*above)
        return self._sign("place", node, lambda each: (each.operation,), self.place)

    def inputs_of(self, store: str) -> list[str]:
        """Returns the topics of others whose records a store is made of, over repartitionings as well."""
        found: set[str] = set()
        seen: set[str] = set()
        waiting = [self._users[store]] if store in self._users else []
        while waiting:
            node = waiting.pop()
            if node.name in seen:
                continue
            seen.add(node.name)
            waiting += [self._outline.node_named[parent] for parent in node.parents]
            if node.operation == NodeOutline.SOURCE:
                for topic in node.topics:
                    if topic in self._outline.internal_topics:
                        waiting += self._writers.get(topic, [])
                    else:
                        found |= {topic} if topic in self._outline.reader else self._match_pattern(topic)
        return sorted(found)

    def _match_pattern(self, pattern: str) -> set[str]:
        return {topic for topic in self._outline.reader if re.fullmatch(pattern, topic)}

    def of_store(self, by: Callable[[NodeOutline], str]) -> Sign:
        """Returns what compares stores, by the node that writes them."""

        def sign(store: str) -> str:
            user = self._users.get(store)
            kind = self._outline.store_named[store].kind.removeprefix("timestamped_")
            return _digest(kind) if user is None else _digest(kind, str(user.stores.index(store)), by(user))

        return sign

    def of_node(self, by: Callable[[NodeOutline], str]) -> Sign:
        """Returns what compares nodes."""
        return lambda node: by(self._outline.node_named[node])

    def of_topic(self, by: Callable[[NodeOutline], str]) -> Sign:
        """Returns what compares internal topics, by the nodes that write them."""
        return lambda topic: _digest(*sorted(by(writer) for writer in self._writers.get(topic, ())))

    def _sign(
        self,
        way: str,
        node: NodeOutline,
        own: Callable[[NodeOutline], tuple[str, ...]],
        above: Callable[[NodeOutline], str] | None = None,
    ) -> str:
        known = self._known.get((way, node.name))
        if known is None:
            # A cycle through topics ends here.
            self._known[way, node.name] = ""
            parents = self._above(node, above or (lambda each: self._sign(way, each, own)))
            known = self._known[way, node.name] = _digest(*own(node), *parents)
        return known

    def _above(self, node: NodeOutline, sign: Callable[[NodeOutline], str]) -> list[str]:
        """Returns what is above a node: its parents, the writers of an internal topic, or the name of any other."""
        if node.operation != NodeOutline.SOURCE:
            return sorted({sign(self._outline.node_named[parent]) for parent in node.parents})
        found = []
        for topic in node.topics:
            writers = self._writers.get(topic) if topic in self._outline.internal_topics else None
            found += [topic] if writers is None else [sign(writer) for writer in writers]
        return sorted(found)


@dataclass(frozen=True)
class Matching:
    """Former names and new names of one kind of thing."""

    pairs: Mapping[str, str] = field(default_factory=dict)
    """New names by former ones."""
    unclear: tuple[tuple[tuple[str, ...], tuple[str, ...]], ...] = ()
    """Former and new names of which each could be any other."""


def match_names(
    old: Iterable[str],
    new: Iterable[str],
    ways: Iterable[tuple[Sign, Sign]],
    given: Mapping[str, str] | None = None,
    *,
    by_name: bool = True,
) -> Matching:
    """Finds out which new name stands for which former one; ``given`` are those that the user has said.

    ``ways`` compare the two sides, the closest first: the first of them takes several that are identical in their
    order, since it makes no difference; each of the others has to find exactly one on either side. With ``by_name``
    names that the user has chosen are never given up for others.
    """
    olds, news = list(old), list(new)
    pairs = dict(given or {})
    # A store that is renamed leaves its name to others.
    pairs |= {name: name for name in olds if name in news and name not in pairs and name not in pairs.values()}
    # That a generated name is still there says nothing: something else may have it now.
    pairs = {name: now for name, now in pairs.items() if name != now or not is_generated(name)}
    left_old = [name for name in olds if name not in pairs and (is_generated(name) or not by_name)]
    left_new = [name for name in news if name not in pairs.values()]
    unclear: list[tuple[tuple[str, ...], tuple[str, ...]]] = []
    for number, (sign_old, sign_new) in enumerate(ways):
        unclear = []
        for group_old, group_new in _groups(left_old, left_new, sign_old, sign_new):
            if len(group_old) == len(group_new) and (number == 0 or len(group_old) == 1):
                pairs |= dict(zip(group_old, group_new, strict=True))
            else:
                unclear.append((group_old, group_new))
        left_old = [name for name in left_old if name not in pairs]
        left_new = [name for name in left_new if name not in pairs.values()]
    # Where nothing has shifted, those that are alike are most likely where they were.
    pairs |= {name: name for group_old, group_new in unclear if set(group_old) == set(group_new) for name in group_old}
    return Matching(pairs, tuple(each for each in unclear if set(each[0]) != set(each[1])))


def match_stores(old: Outline, new: Outline, given: Mapping[str, str] | None = None) -> Matching:
    """Finds out which store of a former topology is which one of a new one.

    >>> from headrace import StreamsBuilder, StreamsConfig
    >>> def outline(*, filtered: bool) -> Outline:
    ...     builder = StreamsBuilder()
    ...     stream = builder.stream("in")
    ...     stream = stream.filter(lambda key, value: bool(value)) if filtered else stream
    ...     stream.group_by_key().count()
    ...     return Outline.of(builder.build(), StreamsConfig(application_id="app"), {"in": 1})
    >>> match_stores(outline(filtered=False), outline(filtered=True)).pairs
    {'KSTREAM-AGGREGATE-STATE-STORE-0000000001': 'KSTREAM-AGGREGATE-STATE-STORE-0000000002'}
    """
    stores_old = [store.name for store in old.stores if not store.is_global]
    stores_new = [store.name for store in new.stores if not store.is_global]
    return match_names(stores_old, stores_new, ways_of(Signatures(old), Signatures(new), "store"), given)


def ways_of(old: Signatures, new: Signatures, kind: str) -> list[tuple[Sign, Sign]]:
    """Returns how to compare the things of one kind, ``store``, ``node`` or ``topic``, the closest way first."""
    return [
        (getattr(old, f"of_{kind}")(getattr(old, way)), getattr(new, f"of_{kind}")(getattr(new, way)))
        for way in ("identical", "same_function", "alike", "place")
    ]


def _groups(
    olds: Iterable[str], news: Iterable[str], sign_old: Sign, sign_new: Sign
) -> list[tuple[tuple[str, ...], tuple[str, ...]]]:
    by_sign: dict[str, tuple[list[str], list[str]]] = {}
    for name in olds:
        by_sign.setdefault(sign_old(name), ([], []))[0].append(name)
    for name in news:
        by_sign.setdefault(sign_new(name), ([], []))[1].append(name)
    return [(tuple(old), tuple(new)) for old, new in by_sign.values() if old and new]


def _digest(*parts: str) -> str:
    return blake2b("\0".join(parts).encode(), digest_size=12).hexdigest()

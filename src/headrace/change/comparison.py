"""Comparison of the topology that the log knows of an application with a new one, store by store.

State follows names: positions follow topics, rows follow stores, and what operators remember follows the stores and
nodes that it belongs to. So sub-topologies may be renumbered, united and divided, as long as partitions stay the same.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

from headrace.app.fingerprint import find_misread
from headrace.change.verdicts import Comparison, Options, PartChange, StoreChange, Verdict
from headrace.config import StreamsConfig
from headrace.errors import TopologyError, did_you_mean
from headrace.state.stores.builder import MIGRATED_KINDS
from headrace.topology.matching import Matching, Signatures, match_names, match_stores, ways_of
from headrace.topology.outline import Outline, PartOutline, StoreOutline, serde_name
from headrace.topology.topology import Topology


def compare(topology: Topology, config: StreamsConfig, old: Outline, new: Outline, options: Options) -> Comparison:
    """Returns what happens if a topology with the outline ``new`` takes the place of one with the outline ``old``."""
    _check_options(old, new, options)
    given = {former: name for former, name in options.renames.items() if former in old.store_named}
    matching = match_stores(old, new, given)
    signatures = Signatures(old), Signatures(new)
    # Nobody relies on these names: a repartitioning may be named after a store that has another name now.
    topics = match_names(old.internal_topics, new.internal_topics, ways_of(*signatures, "topic"), by_name=False)
    nodes = match_names(old.node_named, new.node_named, ways_of(*signatures, "node"), by_name=False)
    external = {topic: topic for topic in old.reader if topic not in old.internal_topics and topic in new.reader}
    topic_names = {**topics.pairs, **external}
    rebuilt = _connected(new, [new.home[store].number for store in options.rebuild])
    comparer = _Comparer(topology, config, old, new, options, matching, topic_names, rebuilt)
    stores = tuple(comparer.stores())
    taken_over = {
        change.former: change.store
        for change in stores
        if change.former is not None and change.verdict not in (Verdict.DROPPED, Verdict.REBUILT)
    }
    return Comparison(
        stores,
        tuple(comparer.parts()),
        tuple(_describe_unclear(matching)),
        taken_over,
        nodes.pairs,
        topic_names,
        rebuilt,
    )


class _Comparer:
    """The two sides of a comparison, and the matching of their names."""

    def __init__(
        self,
        topology: Topology,
        config: StreamsConfig,
        old: Outline,
        new: Outline,
        options: Options,
        matching: Matching,
        topic_names: Mapping[str, str],
        rebuilt: frozenset[int],
    ) -> None:
        self._topology = topology
        self._config = config
        self._old = old
        self._new = new
        self._options = options
        self._former = {now: before for before, now in matching.pairs.items()}
        self._taken_over = matching.pairs
        self._read_before = {now: before for before, now in topic_names.items()}
        self._rebuilt = rebuilt

    def stores(self) -> Iterator[StoreChange]:
        for store in self._new.stores:
            yield self._global(store) if store.is_global else self._store(store)
        for store in self._old.stores:
            if store.is_global and not self._is_still_global(store.name):
                yield StoreChange(store.name, Verdict.DROPPED, "global; its topic stays as it is", store.name)
            elif not store.is_global and store.name not in self._taken_over:
                yield StoreChange(store.name, Verdict.DROPPED, self._describe_deletion(store), store.name)

    def _global(self, store: StoreOutline) -> StoreChange:
        verdict = Verdict.KEPT if store.name in self._old.store_named else Verdict.NEW
        note = f"global; every start reads it from '{store.topic}'"
        return StoreChange(store.name, verdict, note, store.name if verdict is Verdict.KEPT else None)

    def _is_still_global(self, name: str) -> bool:
        now = self._new.store_named.get(name)
        return now is not None and now.is_global

    def _store(self, store: StoreOutline) -> StoreChange:
        former = self._former.get(store.name)
        part = self._new.home[store.name]
        if refusal := self._name_taken(store, former):
            return StoreChange(store.name, Verdict.REFUSED, refusal, former)
        if part.number in self._rebuilt:
            return StoreChange(store.name, Verdict.REBUILT, self._rebuilding(part), former)
        if former is None:
            return StoreChange(store.name, Verdict.NEW, self._beginning(store))
        before = self._old.store_named[former]
        refusal = self._refusal(before, store)
        if refusal:
            return StoreChange(store.name, Verdict.REFUSED, refusal, former)
        converts = before.value_serde != store.value_serde and store.name not in self._options.keep_bytes
        notes = list(self._notes(before, store, converts=converts))
        if former != store.name:
            how = "" if former in self._options.renames else " (its name is generated: matched by what its nodes do)"
            notes.insert(0, f"was '{former}'{how}; its rows are copied to '{self._changelog(store)}'")
            return StoreChange(store.name, Verdict.RENAMED, "; ".join(notes), former, converts)
        if store.name in self._options.renames.values():
            notes.insert(0, "has had this name before, so nothing is renamed")
        verdict = Verdict.CONVERTED if converts else Verdict.KEPT
        return StoreChange(store.name, verdict, "; ".join(notes), former, converts)

    def _notes(self, before: StoreOutline, now: StoreOutline, *, converts: bool) -> Iterator[str]:
        was, home = self._old.home[before.name].number, self._new.home[now.name].number
        if was != home:
            yield f"moves from sub-topology {was} to {home}"
        if converts:
            yield f"its values are rewritten, from the serde {before.value_serde} to {now.value_serde}"
        elif before.value_serde != now.value_serde or before.key_serde != now.key_serde:
            yield "its rows are left as they are, and read with the new serdes"
        if before.retention_ms != now.retention_ms:
            yield f"its rows are kept for {now.retention_ms} ms from now on, not for {before.retention_ms} ms"
        if now.topic is None:
            yield "it has no changelog, and is lost with its process"
        elif before.topic is None:
            yield "it has had no changelog, so it begins empty"

    def _refusal(self, before: StoreOutline, now: StoreOutline) -> str:
        """Returns why rows of the former store are of no use to the new one; nothing if they are."""
        anew = f"give the new store another name than '{now.name}': then this one is dropped, and that one begins empty"
        was, home = self._old.home[before.name], self._new.home[now.name]
        if was.tasks != home.tasks:
            return (
                f"it had {was.tasks} partitions and now has {home.tasks}: rows would not be where their keys go; grow "
                f"the inputs with `headrace grow {self._config.application_id}`"
            )
        if before.topic is None or now.topic is None:
            return ""
        if before.is_logged != now.is_logged:
            return (
                f"it was restored from '{before.topic}' and is now restored from '{now.topic}'; {anew}, or keep "
                "topology_optimization as it was"
            )
        if _format(before) != _format(now):
            return f"it was a {_kind_text(before)} and is now a {_kind_text(now)}; {anew}"
        if now.name in self._options.keep_bytes:
            return ""
        found = list(find_misread(before, now))
        if before.window_ms != now.window_ms or before.key_serde != now.key_serde:
            return f"it {'; it '.join(found)}; {anew}"
        return self._unmigrated(before, now) if found else ""

    def _name_taken(self, store: StoreOutline, former: str | None) -> str:
        """Returns why a store cannot have the changelog that another store has left, or its own one emptied."""
        other = self._old.store_named.get(store.name)
        is_emptied = former != store.name or self._new.home[store.name].number in self._rebuilt
        if other is None or not (other.is_logged and store.is_logged and is_emptied):
            return ""
        if _format(other) == _format(store) and store.kind != "versioned":
            return ""
        return (
            f"its changelog '{self._changelog(store)}' has rows of a {_kind_text(other)}, which cannot be deleted one "
            f"by one for the {_kind_text(store)}; give the new store another name"
        )

    def _unmigrated(self, before: StoreOutline, now: StoreOutline) -> str:
        """Returns why values cannot be rewritten with another serde; nothing if they can."""
        serdes = f"its values are written with the serde {before.value_serde}, and it now has {now.value_serde}"
        as_is = f"--keep-bytes {now.name} if that one reads the same bytes"
        if now.kind not in MIGRATED_KINDS:
            return f"{serdes}; rows of {_kind_text(now)}s cannot be rewritten; keep the serde, or say {as_is}"
        migration = self._topology.store_builders[now.name].migration
        if migration is None:
            return f"{serdes}; say how to read them, Materialized(migrate=Migration(…)), or {as_is}"
        found = serde_name(migration.value_serde)
        if found != before.value_serde:
            return f"{serdes}; but its migration reads values with {found}; give it the former serde"
        return ""

    def _beginning(self, store: StoreOutline) -> str:
        if store.topic is None:
            return "it has no changelog; begins empty"
        if not store.is_logged:
            return f"filled from '{store.topic}'"
        inputs = Signatures(self._new).inputs_of(store.name)
        known = [topic for topic in inputs if topic in self._read_before]
        suggestion = self._suggestion(store)
        if not known:
            return f"filled from {_listed(inputs)}, which nothing has read before{suggestion}"
        read_on = "is read on from where it is" if len(known) == 1 else "are read on from where they are"
        rebuild = f"(--rebuild {store.name} reads from the beginning)"
        return f"begins empty: {_listed(known)} {read_on} {rebuild}{suggestion}"

    def _suggestion(self, store: StoreOutline) -> str:
        """Returns the former store that this one may be under another name."""
        lost = [
            each
            for each in self._old.stores
            if not each.is_global and each.name not in self._taken_over and _format(each) == _format(store)
        ]
        sign_old, sign_new = ways_of(Signatures(self._old), Signatures(self._new), "store")[-1]
        alike = [each.name for each in lost if sign_old(each.name) == sign_new(store.name)]
        return f"; or is it '{alike[0]}'? say --rename {alike[0]}={store.name}" if len(alike) == 1 else ""

    def _inputs(self, part: PartOutline) -> list[str]:
        """Returns the topics of others that a sub-topology is fed with, over repartitionings as well."""
        fed = _upstream_parts(self._new, part.number)
        return sorted(
            topic
            for each in self._new.parts
            if each.number in fed
            for topic in each.topics
            if topic not in self._new.internal_topics
        )

    def _rebuilding(self, part: PartOutline) -> str:
        return f"emptied, and filled from {_listed(self._inputs(part))}, from the beginning"

    def _describe_deletion(self, store: StoreOutline) -> str:
        if not store.is_logged:
            return "nothing is deleted"
        if any(now.topic == store.topic and now.is_logged for now in self._new.stores):
            return f"its rows in '{self._changelog(store)}' make room for those of another store"
        return f"its changelog '{self._changelog(store)}' is deleted"

    def _changelog(self, store: StoreOutline) -> str:
        return f"{self._config.application_id}-{store.topic}"

    def parts(self) -> Iterator[PartChange]:
        continued: set[int] = set()
        for part in self._new.parts:
            before = {
                self._old.reader[self._read_before[topic]].number
                for topic in part.topics
                if topic in self._read_before and self._read_before[topic] in self._old.reader
            }
            continued |= before
            yield self._part(part, tuple(sorted(before)))
        for part in self._old.parts:
            if part.number not in continued:
                note = f"read {_listed(part.topics)}; its positions are forgotten"
                yield PartChange(part.number, Verdict.DROPPED, note, (part.number,))

    def _part(self, part: PartOutline, former: tuple[int, ...]) -> PartChange:
        reads = f"reads {_listed(part.topics)}"
        if part.number in self._rebuilt:
            return PartChange(
                part.number, Verdict.REBUILT, f"{reads}, from the beginning; writes its results again", former
            )
        if not former:
            return PartChange(part.number, Verdict.NEW, f"{reads}, from where its sources say", former)
        notes = [reads]
        if former != (part.number,):
            notes.append(f"was {' and '.join(map(str, former))}")
        begun = [topic for topic in part.topics if topic not in self._read_before]
        begun = [topic for topic in begun if topic not in self._new.internal_topics]
        if begun:
            notes.append(f"{_listed(begun)} for the first time, from where its source says")
        left = {topic for number in former for topic in self._part_named(number).topics} - set(self._old_topics(part))
        gone = sorted(topic for topic in left if topic not in self._read_before.values())
        gone = [topic for topic in gone if topic not in self._old.internal_topics]
        if gone:
            notes.append(f"no longer {_listed(gone)}")
        return PartChange(part.number, Verdict.KEPT, "; ".join(notes), former)

    def _part_named(self, number: int) -> PartOutline:
        return next(part for part in self._old.parts if part.number == number)

    def _old_topics(self, part: PartOutline) -> list[str]:
        return [self._read_before[topic] for topic in part.topics if topic in self._read_before]


def _check_options(old: Outline, new: Outline, options: Options) -> None:
    before = [store.name for store in old.stores if not store.is_global]
    now = [store.name for store in new.stores if not store.is_global]
    # If the command of a finished change is given again, the store has its new name already.
    for former, name in options.renames.items():
        if former not in before and not (name in before and name in now and former not in now):
            message = f"--rename {former}={name}: the former topology has no store '{former}'"
            raise TopologyError(message + (did_you_mean(former, before) or f"; it has {_listed(before)}"))
        if name not in now:
            message = f"--rename {former}={name}: the new topology has no store '{name}'"
            raise TopologyError(message + (did_you_mean(name, now) or f"; it has {_listed(now)}"))
    twice = [name for name in options.renames.values() if list(options.renames.values()).count(name) > 1]
    if twice:
        message = f"--rename: a store can take over one other store; found two for '{twice[0]}'"
        raise TopologyError(message)
    for option, names in (("--keep-bytes", options.keep_bytes), ("--rebuild", options.rebuild)):
        for name in sorted(names):
            if name not in now:
                message = f"{option} {name}: the new topology has no store '{name}'"
                raise TopologyError(message + (did_you_mean(name, now) or f"; it has {_listed(now)}"))


def _describe_unclear(matching: Matching) -> Iterator[str]:
    for olds, news in matching.unclear:
        example = f"--rename {olds[0]}={news[0]}"
        yield (
            f"which of the stores {_listed(olds)} is which of {_listed(news)} cannot be told, since their names are "
            f"generated and their nodes do the same; say it, for example {example}"
        )


def _connected(outline: Outline, numbers: Collection[int]) -> frozenset[int]:
    """Returns the sub-topologies that these are connected with by internal topics, themselves included."""
    found = set(numbers)
    while True:
        grown = found | {part for edge in _edges(outline) if found & set(edge) for part in edge}
        if grown == found:
            return frozenset(found)
        found = grown


def _upstream_parts(outline: Outline, number: int) -> set[int]:
    """Returns a sub-topology and those upstream of it."""
    found = {number}
    while True:
        grown = found | {writer for writer, reader in _edges(outline) if reader in found}
        if grown == found:
            return found
        found = grown


def _edges(outline: Outline) -> Iterator[tuple[int, int]]:
    """Returns writer and reader of each internal topic."""
    homes = {name: part.number for part in outline.parts for name in part.nodes}
    for node in outline.nodes:
        if node.operation == node.SINK:
            for topic in node.topics:
                if topic in outline.internal_topics and topic in outline.reader:
                    yield homes[node.name], outline.reader[topic].number


def _format(store: StoreOutline) -> tuple[str, bool]:
    """Returns what decides how a changelog is written, besides serdes: a timestamp is that of the record."""
    return store.kind.removeprefix("timestamped_"), store.with_duplicates


def _kind_text(store: StoreOutline) -> str:
    kind = store.kind.replace("_", " ")
    return f"{kind} store with duplicates" if store.with_duplicates else f"{kind} store"


def _listed(names: Collection[str]) -> str:
    return ", ".join(f"'{name}'" for name in names) or "nothing"

"""Seed of an application: state, times and positions as if it had read a history that is not in its topics.

A backfill computes what every task has in the end. That is committed as the first micro-batch of the application, a
change of a stopped application: if it is interrupted, nothing runs before the same call has finished it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from struct import Struct
from tempfile import TemporaryDirectory
from typing import TypeAlias

import msgspec

from headrace.app.description import Description
from headrace.app.topics import (
    check_sources,
    check_unused,
    external_partitions,
    internal_topics,
    make_internal,
    make_outputs,
)
from headrace.batches.bounded_rows import BoundedJob, RowKind, ShuffleRow, bounded_config
from headrace.batches.change_plan import ChangePlan
from headrace.batches.layout import Layout
from headrace.change.changelog_rows import read_pages
from headrace.change.stopped_application import TaskUpdate, stopped_application
from headrace.config import StreamsConfig
from headrace.errors import ChangeRefusedError
from headrace.topics.journal import DurableLog
from headrace.topics.log import Offsets, Output, TopicPartition
from headrace.topology.topology import Topology

SEED = "seed"
_PAGE_BYTES = 4 << 20
_ROW_BYTES = 400
"""What a row takes in memory besides its key and value, about."""
_LENGTH = Struct(">Q")
_decode_page = msgspec.msgpack.Decoder(list[ShuffleRow]).decode

Cut: TypeAlias = int | Mapping[TopicPartition, int]
"""Where history ends and the topics go on: a time in milliseconds, or an offset for each partition of each input."""


@dataclass(frozen=True)
class Seed:
    """An application that is to be seeded, and where it goes on in its topics."""

    layout: Layout
    positions: Offsets
    cut_ms: int | None
    """The time of the cut, if it was given as one."""

    def job(self, now_ms: int, chunk_records: int) -> BoundedJob:
        """Returns what computes the state: tasks are those of the application."""
        layout = replace(self.layout, config=bounded_config(self.layout.config))
        return BoundedJob(layout, now_ms, chunk_records, logs_changes=True, logs_rows=True)


def prepare_seed(topology: Topology, config: StreamsConfig, log: DurableLog, cut: Cut) -> Seed:
    """Checks that an application can be seeded, makes its topics, and finds out where it goes on.

    Raises ChangeRefusedError if it has run before. A seed that was interrupted goes on from its own cut.
    """
    application = config.application_id
    known = Description.read(log, application)
    if known is not None and known.change is not None and known.change.change != SEED:
        known.change.refuse_start(application)
    if known is not None and known.change is None:
        message = (
            f"application '{application}' has run already, or was seeded: what it has would be lost; start it, choose "
            f"another application_id, or delete what it has with `headrace reset {application}`"
        )
        raise ChangeRefusedError(message)
    check_sources(topology, external_partitions(topology, application, log))
    make_outputs(topology, config, log, external_partitions(topology, application, log))
    wanted = internal_topics(topology, config, external_partitions(topology, application, log))
    if known is None:
        check_unused(wanted, application, log)
    make_internal(wanted, config, log, () if known is None else known.internal_topics)
    layout = Layout.on(log, topology, config)
    _check_stores(layout)
    if known is not None and known.change is not None:
        details = known.change.details
        positions = {(topic, partition): at for topic, partition, at in details["positions"]}
        begun = Seed(layout, positions, details["cut_ms"])
        if not isinstance(cut, Mapping) and cut != begun.cut_ms:
            known.change.refuse_start(application)
        return begun
    return Seed(layout, _positions(layout, log, cut), None if isinstance(cut, Mapping) else cut)


def commit_seed(
    seed: Seed,
    log: DurableLog,
    results: Iterable[ShuffleRow],
    *,
    with_outputs: bool = False,
    command: str = "",
    tell: Callable[[str], object] = lambda _line: None,
) -> None:
    """Commits what a backfill has computed: after this the application can be started, and goes on from the cut.

    ``with_outputs`` its output records are written, too, each exactly once.
    """
    layout, config = seed.layout, seed.layout.config
    description = Description.on(log, layout.topology, config)
    with stopped_application(config, log, [place.name for place in layout.tasks]) as app:
        plan = app.check_resumes(SEED)
        if plan is None:
            details = {"positions": [[*target, at] for target, at in seed.positions.items()], "cut_ms": seed.cut_ms}
            named = command or "headrace.spark.backfill(…, seed=True)"
            plan = ChangePlan(SEED, named, app.next_batch_id, details)
        app.begin(plan, description)
        begins = _internal_begins(layout, log)
        with TemporaryDirectory(prefix="headrace-seed-") as directory:
            parts = {} if app.is_committed else _spool(results, Path(directory), with_outputs=with_outputs)
            for number, part in sorted(parts.items()):
                place = layout.tasks[number]
                positions = {target: {**seed.positions, **begins}[target] for target in layout.log_inputs(place)}
                if app.commit_task(place.name, layout.own_changelogs(place), part.update(positions)):
                    tell(f"task {place.name} is seeded")
            app.commit({**seed.positions, **begins})
        app.finish(description)


class _TaskPart:
    """The part of a seed that is committed for one task, in a file until all of it is there."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._page: list[ShuffleRow] = []
        self._size = 0
        self.memory: ShuffleRow | None = None

    def add(self, row: ShuffleRow) -> None:
        if row.kind == RowKind.MEMORY:
            self.memory = row
            return
        if self._page and (row.topic != self._page[0].topic or self._size >= _PAGE_BYTES):
            self.flush()
        self._page.append(row)
        self._size += row.size + _ROW_BYTES

    def flush(self) -> None:
        page = msgspec.msgpack.encode(self._page)
        with self._path.open("ab") as file:
            file.write(_LENGTH.pack(len(page)) + page)
        self._page, self._size = [], 0

    def update(self, positions: Offsets) -> TaskUpdate:
        memory = self.memory
        assert memory is not None, "a task that was run has left what it remembers"
        clock_ms = None if memory.timestamp < 0 else memory.timestamp
        return TaskUpdate(
            positions=positions, memory=memory.value or b"", next_clock_ms=clock_ms, written=self._written()
        )

    def _written(self) -> Iterator[tuple[str, list[Output]]]:
        with self._path.open("rb") as file:
            while length := file.read(_LENGTH.size):
                page = _decode_page(file.read(*_LENGTH.unpack(length)))
                if page:
                    yield page[0].topic, [row.output() for row in page]


def _spool(results: Iterable[ShuffleRow], directory: Path, *, with_outputs: bool) -> dict[int, _TaskPart]:
    """Sorts results by task, in files: what a task remembers comes last, and is committed first."""
    parts: dict[int, _TaskPart] = {}
    for row in results:
        if row.kind in (RowKind.CHANGELOG, RowKind.MEMORY) or (with_outputs and row.kind == RowKind.OUTPUT):
            if row.task not in parts:
                parts[row.task] = _TaskPart(directory / str(row.task))
            parts[row.task].add(row)
    for part in parts.values():
        part.flush()
    return parts


def _inputs(layout: Layout) -> list[TopicPartition]:
    """Returns the input topics that are not internal to the application."""
    internal = layout.topology.internal_topics(layout.config.application_id)
    found = dict.fromkeys(target for place in layout.tasks for target in layout.log_inputs(place))
    return [target for target in found if target[0] not in internal]


def _internal_begins(layout: Layout, log: DurableLog) -> Offsets:
    """Returns where tasks begin to read back edges: those of the history have been used up."""
    own = set(_inputs(layout))
    back = [target for place in layout.tasks for target in layout.log_inputs(place) if target not in own]
    return log.begin_offsets(dict.fromkeys(back)) if back else {}


def _positions(layout: Layout, log: DurableLog, cut: Cut) -> Offsets:
    inputs = _inputs(layout)
    if isinstance(cut, Mapping):
        missing = [f"{topic}-{partition}" for topic, partition in inputs if (topic, partition) not in cut]
        if missing:
            message = (
                f"seed of application '{layout.config.application_id}': the cut must name an offset for each partition "
                f"of each input; {', '.join(missing)} {'has' if len(missing) == 1 else 'have'} none"
            )
            raise ChangeRefusedError(message)
        return {target: cut[target] for target in inputs}
    ends = log.end_offsets(inputs)
    found = log.offsets_for_time(dict.fromkeys(inputs, cut))
    positions = {target: ends[target] if (at := found[target]) is None else at for target in inputs}
    for target, at in positions.items():
        _check_in_order(log, target, at, ends[target], cut)
    return positions


def _check_in_order(log: DurableLog, target: TopicPartition, start: int, end: int, cut_ms: int) -> None:
    """Complains about a record behind the cut that is older: it would be read, and is in the history, too."""
    for page in read_pages(log, target, start, end):
        for offset, time_ms, *_ in page:
            if time_ms < cut_ms:
                message = (
                    f"the cut at {cut_ms} does not divide {target[0]}-{target[1]}: offset {start} is the first of that "
                    f"time, and the record at offset {offset} behind it is older ({time_ms}); cut by offsets, or at a "
                    "time around which records are in order"
                )
                raise ChangeRefusedError(message)


def _check_stores(layout: Layout) -> None:
    """Complains about what could not go on from a history that is not in the topics."""
    application = layout.config.application_id
    for place in layout.tasks:
        for store, topic in place.changelogs.items():
            if store not in layout.changelogs:
                message = (
                    f"application '{application}' cannot be seeded: the table '{store}' is restored from its topic "
                    f"'{topic}', which lacks the history; build the topology without the optimization "
                    "'reuse.ktable.source.topics', so that it has a changelog"
                )
                raise ChangeRefusedError(message)
    written = {sink.topic for sink in layout.topology.sink_nodes}
    looped = sorted({topic for topic, _ in _inputs(layout) if topic in written})
    if looped:
        message = (
            f"application '{application}' cannot be seeded: it reads '{looped[0]}', which it also writes, so history "
            "and topic would both have its records; use repartition() between the two"
        )
        raise ChangeRefusedError(message)

"""Offsets with metadata as positions and memory of tasks, and back.

Kafka Streams forgets at every restart what its operators remember besides rows, so nothing else is taken over: the
task goes on as Kafka Streams would after a restart with an empty state directory.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from headrace.batches.layout import Layout, TaskPlace
from headrace.change.stopped_application import TaskUpdate
from headrace.runtime.task_memory import pack_memory
from headrace.topics.consumer_group import GroupOffset, OffsetMetadata
from headrace.topics.log import Offsets, TopicPartition
from headrace.topology.nodes import ProcessorNode
from headrace.topology.operations import SessionAggregate, SlidingAggregate, WindowAggregate

_UNKNOWN_MS = -1


def task_update(
    layout: Layout, place: TaskPlace, offsets: Mapping[TopicPartition, GroupOffset], begins: Offsets
) -> TaskUpdate:
    """Returns a task as Kafka Streams has left it.

    Where nothing was committed in a repartition topic nothing was read, so it is read from where it ``begins``.
    """
    inputs = [(topic, partition) for _, topic, partition in place.inputs]
    positions = {target: begins[target] for target in inputs if target[0] in layout.edges}
    positions |= {target: offsets[target].offset for target in inputs if target in offsets}
    known = {
        target: metadata
        for target in inputs
        if target in offsets and (metadata := OffsetMetadata.decode(offsets[target].metadata)) is not None
    }
    times = {target: metadata.time_ms for target, metadata in known.items()}
    memory: dict[str, Any] = {
        "stream_time_ms": max(times.values(), default=_UNKNOWN_MS),
        "cells": _emitted_cells(layout, place, known.values()),
        "punctuations": {},
        "partition_times": times,
    }
    return TaskUpdate(positions=positions, memory=pack_memory(memory, {}))


def group_offsets(
    layout: Layout, place: TaskPlace, positions: Mapping[TopicPartition, int], memory: Mapping[str, Any]
) -> dict[TopicPartition, GroupOffset]:
    """Returns the offsets that Kafka Streams goes on from, for every input of a task that has a position."""
    cells, times = memory["cells"], memory["partition_times"]
    emitted = {
        store: cells[cell]
        for store, cell in emitting_stores(layout, place).items()
        if cells.get(cell, _UNKNOWN_MS) != _UNKNOWN_MS
    }
    return {
        (topic, partition): GroupOffset(
            positions[topic, partition],
            OffsetMetadata(times.get((topic, partition), _UNKNOWN_MS), emitted).encode(),
        )
        for _, topic, partition in place.inputs
        if (topic, partition) in positions
    }


def emitting_stores(layout: Layout, place: TaskPlace) -> dict[str, str]:
    """Returns the stores of windows, with the cell in which a task keeps up to when closed ones were emitted."""
    nodes = [layout.topology.nodes[name] for name in layout.parts[place.id.subtopology].nodes]
    return {
        node.operation.store: f"{node.operation.store}/emitted"
        for node in nodes
        if isinstance(node, ProcessorNode)
        and isinstance(node.operation, WindowAggregate | SlidingAggregate | SessionAggregate)
    }


def _emitted_cells(layout: Layout, place: TaskPlace, known: Iterable[OffsetMetadata]) -> dict[str, int]:
    cells: dict[str, int] = {}
    stores = emitting_stores(layout, place)
    for metadata in known:
        for store, time_ms in metadata.emitted_ms.items():
            if store in stores:
                # All inputs of a task carry the same times; after a crash some may be older.
                cells[stores[store]] = max(time_ms, cells.get(stores[store], time_ms))
    return cells

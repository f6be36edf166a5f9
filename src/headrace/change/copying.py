"""Copying of rows into the changelogs of stores that have another name or another serde than before."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TypeAlias

from headrace.change.changelog_rows import last_offsets, latest_rows, read_pages
from headrace.change.verdicts import Comparison
from headrace.config import StreamsConfig
from headrace.errors import ProcessorStateError, describe_value
from headrace.serdes.base import StoreTopic, resolved
from headrace.state import StoreBuilder
from headrace.topics.log import Output, ReadableLog, TopicPartition
from headrace.topology.outline import Outline

_NOTHING = (0, 0)

Convert: TypeAlias = Callable[[bytes], "bytes | None"]
"""The bytes of a former value -> those of the new one; None deletes the row."""


@dataclass(frozen=True)
class Copy:
    """Rows that get into one partition of a changelog, by offsets that are decided once."""

    store: str
    """Whose changelog it is, by its new name."""
    topic: str
    partition: int
    source: str | None = None
    """The changelog that they are copied from, which may be the same one; None: from none."""
    copied: tuple[int, int] = _NOTHING
    """Where they lie there."""
    cleared: tuple[int, int] = _NOTHING
    """Where rows lie in ``topic`` that are deleted before."""
    is_history: bool = False
    """Whether every record counts, as in a versioned store, and not only the last one of a key."""


def copy_of(
    application: str, store: str, partition: int, old: Outline, new: Outline, comparison: Comparison, log: ReadableLog
) -> Copy | None:
    """Returns the copy into a partition of a store's changelog; None if its rows stay as they are."""
    topic = new.changelog_of(store, application)
    if topic is None:
        return None
    former = next((before for before, now in comparison.store_names.items() if now == store), None)
    source = None if former is None else old.changelog_of(former, application)
    if source == topic and store not in comparison.converted:
        return None
    has_others = source != topic and old.changelog_of(store, application) is not None
    return Copy(
        store,
        topic,
        partition,
        source,
        _NOTHING if source is None else _range_of(log, (source, partition)),
        _range_of(log, (topic, partition)) if has_others else _NOTHING,
        new.store_named[store].kind == "versioned",
    )


def copied_pages(copy: Copy, log: ReadableLog, convert: Convert | None) -> Iterator[tuple[str, list[Output]]]:
    """Returns the records of a copy: deletions of what the changelog has, then rows of the former one."""
    now_ms = time.time_ns() // 1_000_000
    cleared = last_offsets(log, (copy.topic, copy.partition), *copy.cleared)
    if cleared:
        yield copy.topic, [(copy.partition, now_ms, key, None, ()) for key in cleared]
    if copy.source is None:
        return
    read = read_pages if copy.is_history else latest_rows
    for page in read(log, (copy.source, copy.partition), *copy.copied):
        yield (
            copy.topic,
            [
                (copy.partition, time_ms, key, value if convert is None or value is None else convert(value), headers)
                for _, time_ms, key, value, headers in page
            ],
        )


def converter(builder: StoreBuilder, config: StreamsConfig, topic: str) -> Convert:
    """Returns what rewrites values of a store as its migration says."""
    assert builder.migration is not None, "only a store with a migration is converted"
    default, convert = config.default_value_serde, builder.migration.convert
    place = StoreTopic(topic, builder.name)
    read = resolved(builder.migration.value_serde, default).deserializer(place, is_key=False)
    write = resolved(builder.value_serde, default).serializer(place, is_key=False)

    def rewrite(data: bytes) -> bytes | None:
        try:
            value = read(data)
            value = value if convert is None else convert(value)
            return None if value is None else write(value)
        except Exception as error:
            message = (
                f"store '{builder.name}': its migration cannot rewrite the value {describe_value(data)}: {error!r}; "
                "correct the migration"
            )
            raise ProcessorStateError(message) from error

    return rewrite


def _range_of(log: ReadableLog, target: TopicPartition) -> tuple[int, int]:
    return log.begin_offsets([target])[target], log.end_offsets([target])[target]

"""Start positions: where the inputs of an application were committed, or where a source says to start."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from datetime import timedelta

from headrace.batches.layout import Layout
from headrace.errors import ConfigError, OffsetOutOfRangeError, TopologyError
from headrace.topics.log import Offsets, ReadableLog, TopicPartition
from headrace.topology.offset_reset import AutoOffsetReset

logger = logging.getLogger(__name__)

_SETTING = "auto.offset.reset"
_PREFIXES = ("main.consumer.", "consumer.")
_MILLISECOND = timedelta(milliseconds=1)


def start_positions(layout: Layout, log: ReadableLog, committed: Mapping[TopicPartition, int], now_ms: int) -> Offsets:
    """Returns the next offset of every partition that tasks read from the log."""
    known = {topic for topic, _ in committed}
    targets = dict.fromkeys(target for place in layout.tasks for target in layout.log_inputs(place))
    begins = log.begin_offsets(targets)
    positions: Offsets = {}
    for target in targets:
        position = committed.get(target)
        if position is None and target[0] in known:
            # A partition that the topic did not have before: nothing in it was ever left out.
            positions[target] = begins[target]
        elif position is None:
            positions[target] = _reset(target, layout, log, begins[target], now_ms)
        else:
            positions[target] = _checked(target, position, layout, log, begins[target])
    return positions


def _checked(target: TopicPartition, position: int, layout: Layout, log: ReadableLog, begin: int) -> int:
    end = log.end_offsets([target])[target]
    if begin <= position <= end:
        return position
    topic, partition = target
    choice = layout.config.on_offset_out_of_range
    if choice == "fail":
        lost = (
            f"records {position} to {begin - 1} were removed before they were read"
            if position < begin
            else (f"the topic ends at {end}; it was perhaps deleted and made anew")
        )
        message = (
            f"partition {partition} of topic '{topic}' was read up to offset {position}, and {lost}; set "
            "on_offset_out_of_range to 'earliest' or 'latest' to go on from there, or reset the application"
        )
        raise OffsetOutOfRangeError(message, begin=begin, end=end)
    found = begin if choice == "earliest" else end
    logger.warning("topic '%s', partition %d: offset %d is gone; going on at %d", topic, partition, position, found)
    return found


def _reset(target: TopicPartition, layout: Layout, log: ReadableLog, begin: int, now_ms: int) -> int:
    topic, partition = target
    reset = _strategy(topic, layout) or AutoOffsetReset.earliest()
    if reset.strategy == "earliest":
        return begin
    end = log.end_offsets([target])[target]
    if reset.strategy == "latest":
        return end
    if reset.strategy == "none":
        message = (
            f"partition {partition} of topic '{topic}' has no committed position, and its offset reset is 'none'; "
            "commit one, or choose 'earliest' or 'latest'"
        )
        raise OffsetOutOfRangeError(message, begin=begin, end=end)
    assert reset.duration is not None, "by_duration has one"
    found = log.offsets_for_time({target: now_ms - reset.duration // _MILLISECOND})[target]
    return end if found is None else max(begin, found)


def _strategy(topic: str, layout: Layout) -> AutoOffsetReset | None:
    """Returns what the source says, or the configuration. Topics of our own are read from their beginning."""
    source = layout.topology.source_for(topic)
    if source is None:
        return None
    if source.offset_reset is not None:
        return source.offset_reset
    for prefix in _PREFIXES:
        given = layout.config.extras.get(prefix + _SETTING)
        if given is not None:
            try:
                return AutoOffsetReset.of(given)
            except TopologyError as error:
                message = f"extras: '{prefix}{_SETTING}': {error}"
                raise ConfigError(message) from error
    return None

"""The host of a task in a micro-batch: topics of the log, stores of a working copy, the clock of the plan."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

from headrace.batches.layout import Layout
from headrace.errors import TopicExistsError, UnknownTopicError
from headrace.state import Engine, StoreBuilder
from headrace.state.engines.overlay import OverlayEngine
from headrace.topics.log import TopicLog


class TaskHost:
    """Host of a task in a micro-batch; the clock is set before each batch."""

    def __init__(
        self, layout: Layout, log: TopicLog, engine: Callable[[str], Engine], global_stores: Mapping[str, Any]
    ) -> None:
        self._layout = layout
        self._log = log
        self._engine = engine
        self._found: dict[str, int] = {}
        self.clock_ms = 0
        self.global_stores = global_stores

    def now_ms(self) -> int:
        return self.clock_ms

    def topic_name(self, topic: str) -> str:
        return self._layout.topic_name(topic)

    def partitions_of(self, topic: str) -> int:
        known = self._layout.partitions.get(topic)
        if known is None:
            known = self._found.get(topic)
        if known is None:
            # A topic that an extractor names, or a handler writes to.
            known = self._found[topic] = ensure_topic(self._log, topic)
        return known

    def engine(self, task_id: str, builder: StoreBuilder) -> OverlayEngine:
        return OverlayEngine(self._engine(builder.name))


def ensure_topic(log: TopicLog, topic: str) -> int:
    """Creates a topic that does not exist, as a broker would; returns how many partitions it has."""
    try:
        return log.partitions_of(topic)
    except UnknownTopicError:
        with suppress(TopicExistsError):
            log.create_topic(topic)
        return log.describe_topic(topic).partitions

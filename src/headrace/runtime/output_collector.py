"""Output buffer of a task: records per topic until the host takes them."""

from __future__ import annotations

from collections.abc import Callable

from headrace.topics.log import Output


class Collector:
    """Buffers outputs per topic.

    A sink binds its topic's list once and appends to it; ``touched`` keeps the order in which topics got their first
    record, because that order decides which of two internal topics is read first.
    """

    __slots__ = ("_buffers", "touched")

    def __init__(self) -> None:
        self._buffers: dict[str, list[Output]] = {}
        self.touched: list[str] = []

    def buffer(self, topic: str) -> list[Output]:
        """Returns the list to append to; a sink that finds it empty appends the topic to ``touched`` first."""
        return self._buffers.setdefault(topic, [])

    def add(self, topic: str, output: Output) -> None:
        """Writes one record to a topic that was not known beforehand."""
        buffer = self.buffer(topic)
        if not buffer:
            self.touched.append(topic)
        buffer.append(output)

    def drain(self, is_wanted: Callable[[str, int], bool] | None = None) -> list[tuple[str, list[Output]]]:
        """Takes away what was written, topics in the order of their first record.

        ``is_wanted`` chooses among the topics, by their names and how many records there are.
        """
        drained = []
        taken = [topic for topic in self.touched if is_wanted is None or is_wanted(topic, len(self._buffers[topic]))]
        for topic in taken:
            buffer = self._buffers[topic]
            drained.append((topic, buffer.copy()))
            # Sinks hold on to the list, so it is emptied, not replaced.
            buffer.clear()
        # Sinks hold on to this one, too.
        self.touched[:] = [topic for topic in self.touched if topic not in taken]
        return drained

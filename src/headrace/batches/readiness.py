"""Readiness: which tasks of an application can take part in micro-batches while others are still being restored."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from headrace.batches.layout import Layout
from headrace.topology.levels import internal_edges


class Readiness:
    """Tasks that are restored. A task runs only if all tasks can run that get records from it within the batch.

    ``saved`` are the tasks that have committed anything: the others have nothing to restore.
    """

    def __init__(self, layout: Layout, saved: Collection[str], acceptable_lag: int) -> None:
        self._tasks = {
            part: [place.name for place in layout.tasks if place.id.subtopology == part] for part in layout.parts
        }
        self._acceptable_lag = acceptable_lag
        self._downstream_parts = _downstream_parts(layout)
        self.waiting: dict[str, int] = {
            place.name: -1 for place in layout.tasks if place.changelogs and place.name in saved
        }
        """Tasks that are not ready, and how many records of changelogs they lack; -1 if that is not known yet."""

    def note(self, lags: Mapping[str, int]) -> None:
        """Takes notice of what tasks lack."""
        for task, lag in lags.items():
            if task in self.waiting:
                self.waiting[task] = lag
                if lag <= self._acceptable_lag:
                    del self.waiting[task]

    @property
    def runnable(self) -> frozenset[str]:
        """Tasks that can take part now."""
        held = {part for part, tasks in self._tasks.items() if not self.waiting.keys().isdisjoint(tasks)}
        return frozenset(
            task
            for part, tasks in self._tasks.items()
            if self._downstream_parts[part].isdisjoint(held)
            for task in tasks
            if task not in self.waiting
        )


def _downstream_parts(layout: Layout) -> dict[int, set[int]]:
    """Returns for each sub-topology those that get records from it within a batch, at first or second hand."""
    direct: dict[int, set[int]] = {part: set() for part in layout.parts}
    for topic, writer, reader in internal_edges(layout.topology):
        if layout.topic_name(topic) in layout.edges:
            direct[writer].add(reader)
    found: dict[int, set[int]] = {}

    def behind(part: int) -> set[int]:
        if part not in found:
            found[part] = set(direct[part])
            for following in direct[part]:
                found[part] |= behind(following)
        return found[part]

    return {part: behind(part) for part in layout.parts}

"""The names of metrics, as Kafka Streams has them: a name, the group it belongs to, and tags that say of what."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

CLIENT = "stream-metrics"
THREAD = "stream-thread-metrics"
TASK = "stream-task-metrics"
NODE = "stream-processor-node-metrics"
TOPIC = "stream-topic-metrics"
STATE = "stream-state-metrics"
CACHE = "stream-record-cache-metrics"
BATCH = "stream-batch-metrics"
"""Our own: Kafka Streams has no micro-batches."""


@dataclass(frozen=True, order=True)
class MetricName:
    """Name of a metric, with its group and tags.

    >>> str(MetricName("process-total", TASK, (("task-id", "0_1"),)))
    'stream-task-metrics:process-total{task-id=0_1}'
    """

    name: str
    group: str
    tags: tuple[tuple[str, str], ...] = ()

    def __str__(self) -> str:
        tags = ",".join(f"{key}={value}" for key, value in self.tags)
        return f"{self.group}:{self.name}{{{tags}}}"

    @property
    def is_counter(self) -> bool:
        """Whether it only ever grows."""
        # What remains is a total in Kafka Streams' names only.
        return self.name.endswith("-total") and "-remaining-" not in self.name


# Any: numbers mostly; what an application is called and the state it is in are text.
class Metrics(Mapping[MetricName | str, Any]):
    """Metrics of one moment by their names. The plain name of one that concerns the whole application will do, too.

    >>> lag = MetricName("records-lag", CLIENT)
    >>> metrics = Metrics({lag: 5}, {"lag": 5})
    >>> metrics[lag], metrics["lag"], [str(name) for name in metrics]
    (5, 5, ['stream-metrics:records-lag{}'])
    """

    def __init__(self, values: Mapping[MetricName, Any], summary: Mapping[str, Any]) -> None:
        self._values = values
        self.summary: Mapping[str, Any] = summary
        """What concerns the whole application, by plain names."""

    def __getitem__(self, name: MetricName | str) -> Any:
        return self.summary[name] if isinstance(name, str) else self._values[name]

    def __iter__(self) -> Iterator[MetricName]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def find(self, name: str, group: str | None = None, **tags: str) -> dict[MetricName, Any]:
        """Returns the metrics of that name, in a group and with tags if they are given (``task_id="0_1"``)."""
        wanted = {(key.replace("_", "-"), value) for key, value in tags.items()}
        return {
            metric: value
            for metric, value in self._values.items()
            if metric.name == name and (group is None or metric.group == group) and wanted <= set(metric.tags)
        }

    def __repr__(self) -> str:
        return f"Metrics({len(self._values)} of {self.summary.get('application-id', '?')})"

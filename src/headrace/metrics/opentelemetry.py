"""Metrics for OpenTelemetry: instruments that are asked for, each time a reader of the user's collects."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from headrace.errors import MissingDependencyError
from headrace.metrics.names import MetricName, Metrics


# Any: OpenTelemetry's own types, which are optional.
class OpenTelemetryMetrics:
    """Offers the metrics of an application to a meter of OpenTelemetry.

    ``observe`` makes an instrument for each metric that is there and has none yet, named by group and name such as
    ``stream-task-metrics.process-total``. Call it again when there may be new ones, after a batch for instance: a meter
    takes no instruments while it is collected. Metrics that are text are left out.
    """

    def __init__(self, metrics: Callable[[], Metrics], meter: Any) -> None:
        try:
            from opentelemetry.metrics import Observation
        except ImportError as error:
            message = "metrics for OpenTelemetry need its API; run `pip install 'headrace[opentelemetry]'`"
            raise MissingDependencyError(message) from error
        self._observation = Observation
        self._metrics = metrics
        self._meter = meter
        self._known: set[str] = set()
        self.observe()

    def observe(self) -> None:
        """Makes instruments for metrics that have none."""
        for name in self._numbers():
            instrument = f"{name.group}.{name.name}"
            if instrument not in self._known:
                self._known.add(instrument)
                is_counter = name.is_counter
                make = self._meter.create_observable_counter if is_counter else self._meter.create_observable_gauge
                make(instrument, callbacks=[self._callback(name.group, name.name)])

    def _numbers(self) -> dict[MetricName, float]:
        found = self._metrics()
        return {
            name: found[name] for name in found if isinstance(name, MetricName) and isinstance(found[name], int | float)
        }

    def _callback(self, group: str, name: str) -> Callable[[Any], Iterable[Any]]:
        def observed(_options: Any) -> Iterable[Any]:
            return [
                self._observation(value, dict(metric.tags))
                for metric, value in self._numbers().items()
                if (metric.group, metric.name) == (group, name)
            ]

        return observed

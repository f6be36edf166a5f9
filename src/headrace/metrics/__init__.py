"""Metrics of an application: Kafka Streams' names, figures of micro-batches, exports to Prometheus and OpenTelemetry.

Workers count in plain numbers and report them once per micro-batch, so nothing here is paid per record.
"""

from headrace.metrics.names import MetricName, Metrics

__all__ = ["MetricName", "Metrics"]

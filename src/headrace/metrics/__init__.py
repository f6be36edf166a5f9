"""What an application counts and measures: Kafka Streams' names, what is kept of micro-batches, and Prometheus' text.

Workers count in plain numbers and report them once per micro-batch, so nothing here is paid per record.
"""

from headrace.metrics.names import MetricName, Metrics

__all__ = ["MetricName", "Metrics"]

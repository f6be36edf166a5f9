"""Metrics per node of a topology, for the console."""

from __future__ import annotations

from typing import Any

from headrace.metrics.names import NODE, TOPIC, MetricName, Metrics
from headrace.metrics.recording import rates_by
from headrace.topology.nodes import SinkNode, SourceNode
from headrace.topology.topology import Topology


def node_figures(topology: Topology, application: str, found: Metrics) -> dict[str, dict[str, Any]]:
    """Returns the metrics of each node, as the console reads them.

    Sources and sinks are known by their topics; other nodes count only at the recording level DEBUG.
    """
    values = {name: found[name] for name in found if isinstance(name, MetricName)}
    nodes: dict[str, dict[str, Any]] = {}
    totals, rates = (rates_by(values, f"process-{kind}", NODE, "processor-node-id") for kind in ("total", "rate"))
    nodes |= {node: {"rate": round(rates.get(node, 0), 1), "total": total} for node, total in totals.items()}
    for name, node in topology.nodes.items():
        if name in nodes or not isinstance(node, SourceNode | SinkNode):
            continue
        kind = "records-consumed" if isinstance(node, SourceNode) else "records-produced"
        totals, rates = (rates_by(values, f"{kind}-{each}", TOPIC, "topic-name") for each in ("total", "rate"))
        topics = [topic for topic in totals if _is_only_place(topology, application, node, topic)]
        if topics or found.summary.get("batches-total"):
            rate = sum(rates.get(topic, 0) for topic in topics)
            nodes[name] = {"rate": round(rate, 1), "total": sum(totals[topic] for topic in topics)}
    for what, name in (("errors", "skipped-records-total"), ("dropped", "dropped-records-total")):
        for node_name, total in rates_by(values, name, NODE, "processor-node-id").items():
            nodes.setdefault(node_name, {})[what] = total
    return nodes


def _is_only_place(topology: Topology, application: str, node: SourceNode | SinkNode, topic: str) -> bool:
    """Tells whether all records of a topic come in at a source, or leave at a sink and nowhere else."""
    if isinstance(node, SourceNode):
        own = [topology.full_topic_name(each, application) for each in node.topics]
        return topic in own or (not node.topics and node.reads(topic))
    if node.topic is None or topology.full_topic_name(node.topic, application) != topic:
        return False
    writers = [each for each in topology.nodes.values() if isinstance(each, SinkNode) and each.topic == node.topic]
    return len(writers) == 1

"""A topology as the console draws it."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from headrace.http.errors import explained
from headrace.topics.log import TopicLog
from headrace.topology.queryable_stores import topics_of_others
from headrace.topology.topology import Topology


# Any: what JSON holds.
def topology_json(topology: Topology, application: str, log: Callable[[], TopicLog]) -> dict[str, Any]:
    """Returns the topology, each of its sub-topologies with the number of its tasks, if the log knows.

    A source or sink of one topic that is in the log has its name there: ``log_topic``. Records between two levels are
    in no topic.
    """
    found: dict[str, Any] = json.loads(topology.describe().to_json(indent=None))
    counts = _partition_counts(log)
    tasks = _tasks(topology, application, counts)

    def with_topic(node: dict[str, Any]) -> dict[str, Any]:
        topics = node.get("topics") or ([node["topic"]] if node.get("topic") else [])
        names = [topology.full_topic_name(topic, application) for topic in topics]
        return {**node, "log_topic": names[0]} if len(names) == 1 and names[0] in counts else node

    parts = [
        {**part, "tasks": tasks.get(part["id"]), "nodes": [with_topic(node) for node in part["nodes"]]}
        for part in found["subtopologies"]
    ]
    return {**found, "subtopologies": parts}


def _partition_counts(log: Callable[[], TopicLog]) -> Mapping[str, int]:
    try:
        return log().partition_counts()
    except Exception as error:
        if explained(error) is None:
            raise
        return {}


def _tasks(topology: Topology, application: str, counts: Mapping[str, int]) -> Mapping[int, int]:
    try:
        others = topics_of_others(topology, application, counts)
        return topology.task_counts({topic: counts[topic] for topic in others})
    except Exception as error:
        if explained(error) is None:
            raise
        return {}

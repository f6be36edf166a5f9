"""A topology as the console draws it."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from headrace.query.http.errors import explained
from headrace.topics.log import TopicLog
from headrace.topology.queryable import topics_of_others
from headrace.topology.topology import Topology


# Any: what JSON holds.
def topology_json(topology: Topology, application: str, log: Callable[[], TopicLog]) -> dict[str, Any]:
    """Returns the topology, each of its sub-topologies with the number of its tasks, if the log knows."""
    found: dict[str, Any] = json.loads(topology.describe().to_json(indent=None))
    tasks = _tasks(topology, application, log)
    parts = [{**part, "tasks": tasks.get(part["id"])} for part in found["subtopologies"]]
    return {**found, "subtopologies": parts}


def _tasks(topology: Topology, application: str, log: Callable[[], TopicLog]) -> Mapping[int, int]:
    try:
        counts = log().partition_counts()
        others = topics_of_others(topology, application, counts)
        return topology.task_counts({topic: counts[topic] for topic in others})
    except Exception as error:
        if explained(error) is None:
            raise
        return {}

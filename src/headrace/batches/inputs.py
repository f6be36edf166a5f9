"""The topics of others that an application reads: how many partitions they have, and whether they are the same ones."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from headrace.errors import IncompatibleTopologyError
from headrace.topics.log import TopicLog
from headrace.topology.queryable import topics_of_others
from headrace.topology.topology import Topology


def input_partitions(topology: Topology, application_id: str, log: TopicLog) -> dict[str, int]:
    """Returns the topics of others that sources read, and how many partitions they have."""
    sources, counts = topology.source_nodes, log.partition_counts()
    read = [topic for topic in counts if any(source.reads(topic) for source in sources)]
    return {topic: counts[topic] for topic in topics_of_others(topology, application_id, read)}


def input_ids(topology: Topology, application_id: str, log: TopicLog) -> dict[str, str]:
    """Returns the ids of the topics of others that are read, global tables included."""
    return ids_of(topology, input_partitions(topology, application_id, log), log)


def ids_of(topology: Topology, inputs: Iterable[str], log: TopicLog) -> dict[str, str]:
    """Returns the ids of inputs, and of the topics of global tables."""
    tables = {store.topic for store in topology.global_stores.values()}
    return {topic: log.topic_id(topic) for topic in {*inputs, *tables}}


def check_inputs(application: str, before: Mapping[str, str], now: Mapping[str, str]) -> None:
    """Complains about topics that were deleted and made anew: positions in them mean other records than before."""
    exchanged = sorted(topic for topic, found in now.items() if before.get(topic, found) != found)
    if exchanged:
        names = ", ".join(f"'{topic}'" for topic in exchanged)
        message = (
            f"application '{application}': {names} {'was' if len(exchanged) == 1 else 'were'} deleted and made anew "
            "since the application has read there, so its positions and its state belong to records that are gone; "
            f"start over with `headrace reset {application}`, or bring the former topic back"
        )
        raise IncompatibleTopologyError(message)

"""The topics of others that an application reads: whether they are there, their partitions, and their identity."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager

from headrace.batches.layout import Layout
from headrace.errors import (
    IncompatibleTopologyError,
    MissingInternalTopicsError,
    MissingSourceTopicError,
    UnknownTopicError,
)
from headrace.topics.log import ReadableLog
from headrace.topology.queryable_stores import topics_of_others
from headrace.topology.topology import Topology


def input_partitions(topology: Topology, application_id: str, log: ReadableLog) -> dict[str, int]:
    """Returns the topics of others that sources read, and how many partitions they have."""
    sources, counts = topology.source_nodes, log.partition_counts()
    read = [topic for topic in counts if any(source.reads(topic) for source in sources)]
    return {topic: counts[topic] for topic in topics_of_others(topology, application_id, read)}


def input_ids(topology: Topology, application_id: str, log: ReadableLog) -> dict[str, str]:
    """Returns the ids of the topics of others that are read, global tables included."""
    return ids_of(topology, input_partitions(topology, application_id, log), log)


def ids_of(topology: Topology, inputs: Iterable[str], log: ReadableLog) -> dict[str, str]:
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


def named_inputs(topology: Topology) -> set[str]:
    """Returns the topics of others that are read by their names, those of global tables included."""
    read = {topic for part in topology.subtopologies() for topic in part.source_topics}
    return {topic for topic in read if not topology.is_internal(topic)}


def check_deleted(application: str, before: Collection[str], now: Collection[str]) -> None:
    """Complains about inputs that were there before, and are gone."""
    gone = sorted(topic for topic in before if topic not in now)
    if gone:
        raise _deleted(application, gone)


@contextmanager
def naming_deleted(layout: Layout) -> Iterator[None]:
    """Raises the right error for a topic that the layout has and the log has no more: it was deleted.

    The log itself takes an unknown name for a mistake in writing, and suggests a topic of any application.
    """
    try:
        yield
    except UnknownTopicError as error:
        topic, topology, application = error.topic, layout.topology, layout.config.application_id
        if topic and not topics_of_others(topology, application, [topic]):
            message = (
                f"application '{application}': its internal topic '{topic}' was deleted while it ran; bring it back, "
                f"or start over with `headrace reset {application}`"
            )
            raise MissingInternalTopicsError(message, topics=[topic]) from None
        if topology.source_for(topic) is None and topology.global_store_for(topic) is None:
            raise
        raise _deleted(application, [topic]) from None


def _deleted(application: str, topics: Collection[str]) -> MissingSourceTopicError:
    names = ", ".join(f"'{topic}'" for topic in topics)
    it, was = ("it", "was") if len(topics) == 1 else ("them", "were")
    message = (
        f"application '{application}': {names}, which it reads, {was} deleted, with what it had not read yet; bring "
        f"{it} back, or make {it} anew and start over with `headrace reset {application}`"
    )
    return MissingSourceTopicError(message)

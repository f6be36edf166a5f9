"""Reset of an application: the deletion of its saved state, in an order that a crash cannot hurt.

The journal and the changelogs must never disagree. So the first step writes into the description of the application
that a reset has begun, and the last one removes that. Whatever is found with such a description, by a start or by
another reset, is reset again from the beginning; every step can be repeated.
"""

from __future__ import annotations

import logging
import re
import shutil
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from headrace.app.description import Description
from headrace.app.directories import application_directory, check_default_directory, unusable
from headrace.app.fingerprint import Fingerprint
from headrace.app.lock import locked
from headrace.config import StreamsConfig
from headrace.errors import StateDirectoryError, UnknownTopicError
from headrace.topics.journal import DurableLog
from headrace.topics.log import TopicLog
from headrace.topology.graph import Graph
from headrace.topology.nodes import SinkNode, SourceNode
from headrace.views.membership import is_membership_topic, membership_topic

logger = logging.getLogger(__name__)

# What tasks keep: their own stores, the copies of global tables, and the checkpoint of an earlier version.
_WORKING_COPY = re.compile(r"-?\d+_\d+|global|views|checkpoint|application\.json")


def reset_application(
    config: StreamsConfig,
    log: DurableLog,
    internal_topics: Iterable[str] = (),
    *,
    topology: Graph | None = None,
    for_good: bool = False,
) -> None:
    """Deletes what an application has saved, so that its next start reads its input from the beginning.

    Its journal, its internal topics, its working copies and its views go; the topics that it reads and writes stay: the
    ``topology``, where it is known, names them. ``internal_topics`` are deleted besides those that the log knows of.
    Nobody may be running it. With ``for_good`` there is no next start: on Kafka, too, its topics are deleted then, not
    only emptied.
    """
    application = config.application_id
    check_default_directory(config)
    with locked(application_directory(config), application):
        try:
            found = Description.read(log, application)
        except StateDirectoryError as error:
            logger.warning("reset goes on without the names of internal topics: %s", error)
            found = None
        found = found or Description(application, Fingerprint({}))
        views = topics_of_views(application, log)
        views = [topic for topic in views if topology is None or not _is_named_by(topology, topic)]
        topics = dict.fromkeys([*found.internal_topics, *internal_topics, *views])
        resetting = Description(application, found.topology, tuple(topics)).resetting()
        if for_good:
            resetting.write(log)
            for topic in topics:
                with suppress(UnknownTopicError):
                    log.delete_topic(topic)
        finish_reset(replace(resetting, internal_topics=()) if for_good else resetting, config, log)
        if for_good:
            log.forget_application(application)


def topics_of_views(application_id: str, log: TopicLog) -> list[str]:
    """Returns the topic in which views of an application have announced themselves, if there is one."""
    topic = membership_topic(application_id)
    return [topic] if topic in log.topics() and is_membership_topic(topic, log) else []


def _is_named_by(topology: Graph, topic: str) -> bool:
    nodes = topology.nodes.values()
    return any(
        topic in node.topics if isinstance(node, SourceNode) else isinstance(node, SinkNode) and topic == node.topic
        for node in nodes
    )


def finish_reset(description: Description, config: StreamsConfig, log: DurableLog) -> None:
    """Resets an application whose directory is locked by the caller; see the top for the order."""
    directory = application_directory(config)
    description.resetting().write(log)
    _delete(path for path in _entries(directory) if _WORKING_COPY.fullmatch(path.name))
    # The description goes with the journal.
    log.reset_application(config.application_id, description.internal_topics)


def _entries(directory: Path) -> list[Path]:
    try:
        return sorted(directory.iterdir())
    except FileNotFoundError:
        return []
    except OSError as error:
        raise unusable(directory, error, "read") from error


def _delete(paths: Iterable[Path]) -> None:
    for path in paths:
        try:
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path)
            else:
                path.unlink(missing_ok=True)
        except FileNotFoundError:
            continue
        except OSError as error:
            raise unusable(path, error, "removed") from error

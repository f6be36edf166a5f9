"""The topics of a log as statements see them: first as a proposal, then for good."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress

from headrace.errors import TopicExistsError, UnknownTopicError
from headrace.sql.catalog.topic_directory import NewTopic, TopicDirectory
from headrace.topics.configs import new_topic
from headrace.topics.log import TopicLog


class LogTopics:
    """The topics that a log has; see ``TopicDirectory``."""

    def __init__(self, log: TopicLog) -> None:
        self._log = log

    def partitions(self, topic: str) -> int | None:
        try:
            return self._log.describe_topic(topic).partitions
        except UnknownTopicError:
            return None

    def create(self, topic: str, wanted: NewTopic) -> None:
        # Another server may be faster with the same statement.
        with suppress(TopicExistsError):
            self._log.create_topic(
                topic, partitions=wanted.partitions, replicas=wanted.replicas, configs=wanted.configs
            )

    def delete(self, topic: str) -> None:
        with suppress(UnknownTopicError):
            self._log.delete_topic(topic)

    def ids(self, topics: Iterable[str]) -> dict[str, str]:
        """Returns what each of the topics is known by that are there, also if another one gets its name."""
        found: dict[str, str] = {}
        for topic in topics:
            with suppress(UnknownTopicError):
                found[topic] = self._log.topic_id(topic)
        return found

    def delete_known(self, ids: Mapping[str, str]) -> None:
        """Deletes topics that are still the ones with these ids."""
        for topic, known in self.ids(ids).items():
            if known == ids[topic]:
                self.delete(topic)


class ProposedTopics:
    """Topics as they would be after statements that are only tried out; remembers what they asked and wanted."""

    def __init__(self, topics: TopicDirectory) -> None:
        self._topics = topics
        self.seen: dict[str, int] = {}
        """The partitions of every topic that was asked for and is there."""
        self.created: dict[str, NewTopic] = {}
        """Topics that are to be made."""
        self.deleted: list[str] = []

    def partitions(self, topic: str) -> int | None:
        if topic in self.created:
            return self.created[topic].partitions
        found = None if topic in self.deleted else self._topics.partitions(topic)
        if found is not None:
            self.seen[topic] = found
        return found

    def create(self, topic: str, wanted: NewTopic) -> None:
        # Raises what the log would, while the statement can still be refused.
        new_topic(topic, wanted.partitions, wanted.configs)
        self.created[topic] = wanted
        self.seen[topic] = wanted.partitions

    def delete(self, topic: str) -> None:
        self.created.pop(topic, None)
        self.deleted.append(topic)


class RecordedTopics:
    """The topics as they were when a statement was accepted: whoever carries it out later must come to the same."""

    def __init__(self, seen: dict[str, int]) -> None:
        self._seen = dict(seen)

    def partitions(self, topic: str) -> int | None:
        return self._seen.get(topic)

    def create(self, topic: str, wanted: NewTopic) -> None:
        self._seen[topic] = wanted.partitions

    def delete(self, topic: str) -> None:
        """Whoever has accepted the statement deletes the topic."""

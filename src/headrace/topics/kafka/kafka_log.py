"""``KafkaLog``: the topics of a Kafka cluster as a topic log."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import closing
from datetime import timedelta
from types import TracebackType
from typing import Any, Self

from headrace.config import StreamsConfig
from headrace.errors import LogError
from headrace.topics.configs import check_growth
from headrace.topics.consumer_group import GroupMember, GroupOffset
from headrace.topics.journal import ApplicationCut
from headrace.topics.kafka.administration import Administration
from headrace.topics.kafka.clients import Clients, close_clients, open_clients
from headrace.topics.kafka.consistent_cut import cut_application
from headrace.topics.kafka.consumer_groups import commit_offsets, read_members, read_offsets
from headrace.topics.kafka.descriptions import read_description, write_description
from headrace.topics.kafka.history import History
from headrace.topics.kafka.history_reader import read_history
from headrace.topics.kafka.journal import KafkaJournal
from headrace.topics.kafka.plain_append import Appender
from headrace.topics.kafka.progress_topics import application_of, is_progress, progress_topics
from headrace.topics.kafka.reading import read_range, sample_bytes
from headrace.topics.kafka.resetting import list_groups, reset_application
from headrace.topics.kafka.settings import ClientSettings
from headrace.topics.kafka.task_transaction import KafkaTaskJournal
from headrace.topics.kafka.time_lookup import latest_time, offset_after
from headrace.topics.kafka.transactional_append import append_in_transaction
from headrace.topics.kafka.transactional_producers import fence
from headrace.topics.log import Committed, Offsets, Output, Raw, Topic, TopicPartition, Written

_POLL_FIRST_S = 0.002
_POLL_LAST_S = 0.02
_SIZE_KNOWN_FOR_S = 10.0


class KafkaLog:
    """The topics of a Kafka cluster, for any number of processes and threads at once; see ``TopicLog``.

    ``consumer``, ``producer`` and ``admin`` are settings of librdkafka, in its names or Java's. Clients are shared by
    the handles of a process. Without ``exactly_once`` tasks write outside of transactions: that is cheaper, and a task
    that is run again is written again. Brokers that are away are waited for up to ``task_timeout``. What differs from
    the embedded log:

    - A task's outputs can be read once the task has committed them, not when the batch is: every task has a transaction
      of its own, as in Kafka Streams. Records that are read are committed ones; without ``exactly_once`` the consumer's
      ``isolation.level`` may say otherwise.
    - The end of a transaction takes an offset, and so do records that were aborted. ``Written`` and ``Committed`` name
      the first and the last offset of what was written; records of others may lie between.
    - Time 0 is written as 1: the client takes 0 for the current time.
    """

    def __init__(
        self,
        bootstrap_servers: str,
        *,
        consumer: Mapping[str, Any] | None = None,
        producer: Mapping[str, Any] | None = None,
        admin: Mapping[str, Any] | None = None,
        replication_factor: int = -1,
        exactly_once: bool = True,
        task_timeout: timedelta = timedelta(minutes=5),
    ) -> None:
        self._open(
            ClientSettings(
                bootstrap_servers,
                dict(consumer or {}),
                dict(producer or {}),
                dict(admin or {}),
                replication_factor,
                exactly_once,
                task_timeout.total_seconds(),
            )
        )

    @classmethod
    def of(cls, config: StreamsConfig) -> KafkaLog:
        """Opens the log that an application's configuration names."""
        return _reopen(ClientSettings.of(config))

    def _open(self, settings: ClientSettings) -> None:
        self._settings = settings
        self._handle: Clients | None = open_clients(settings)
        self._administration_of = Administration(self._handle)
        self._appender = Appender(self._handle, self._administration_of.topic)
        self._sizes: dict[TopicPartition, tuple[float, int]] = {}

    @property
    def bootstrap_servers(self) -> str:
        return self._settings.bootstrap_servers

    def create_topic(
        self,
        name: str,
        *,
        partitions: int = 1,
        replicas: int | None = None,
        configs: Mapping[str, object] | None = None,
    ) -> Topic:
        """Makes a topic and returns once brokers know it; without ``replicas`` it has as many as the settings say."""
        return self._administration.create(name, partitions, configs, replicas)

    def topics(self) -> list[str]:
        """Returns the names of all topics in their order, without Kafka's own and those that hold our progress."""
        return list(self.partition_counts())

    def partition_counts(self) -> dict[str, int]:
        found = self._administration.partition_counts()
        return {topic: partitions for topic, partitions in found.items() if not is_progress(topic)}

    def partitions_of(self, topic: str) -> int:
        return self._administration.topic(topic).partitions

    def describe_topic(self, name: str) -> Topic:
        return self._administration.describe(name)

    def topic_id(self, name: str) -> str:
        return self._administration.fresh_topic_id(name)

    def delete_topic(self, name: str) -> None:
        self._administration.delete(name)

    def grow_topic(self, name: str, partitions: int) -> None:
        found = self._administration.describe(name)
        check_growth(found, partitions)
        if found.partitions < partitions:
            self._administration.grow(name, partitions)

    def append(self, topic: str, records: Iterable[Output]) -> Written:
        """Writes records outside of any transaction; if it fails, some of them may have been written."""
        self._check_open()
        return self._appender.append(topic, records)

    def append_in_transaction(self, topic: str, records: Iterable[Sequence[Output]], transactional_id: str) -> Written:
        """Writes records in one transaction: readers see all of them, or none if it fails."""
        return append_in_transaction(self._clients, self._administration.topic, topic, records, transactional_id)

    def fence(self, topic: str, transactional_ids: Sequence[str]) -> None:
        """Ends what ``append_in_transaction`` has open under these ids; it cannot commit any more."""
        fence(self._clients, topic, transactional_ids)

    def read(
        self,
        topic: str,
        partition: int,
        start: int,
        stop: int | None = None,
        *,
        max_records: int = 1 << 40,
        max_bytes: int = 64 << 20,
    ) -> list[Raw]:
        target = (topic, partition)
        return read_range(self._clients, self._administration, target, start, stop, max_records, max_bytes)

    def begin_offsets(self, partitions: Iterable[TopicPartition]) -> Offsets:
        return self._administration.begin_offsets(partitions)

    def end_offsets(self, partitions: Iterable[TopicPartition], *, stable: bool = True) -> Offsets:
        return self._administration.end_offsets(partitions, stable=stable)

    def offsets_for_time(self, times_ms: Mapping[TopicPartition, int]) -> dict[TopicPartition, int | None]:
        return self._administration.offsets_for_time(times_ms)

    def latest_time(self, topic: str, partition: int, start: int, stop: int) -> int | None:
        return latest_time(self._clients, self._administration, (topic, partition), start, stop)

    def offset_after(self, topic: str, partition: int, start: int, stop: int, time_ms: int) -> int | None:
        return offset_after(self._clients, self._administration, (topic, partition), start, stop, time_ms)

    def record_bytes(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        """Returns the average size of the last hundred records, refreshed every few seconds."""
        now, sizes = time.monotonic(), {}
        for target in partitions:
            looked, size = self._sizes.get(target, (-_SIZE_KNOWN_FOR_S, 0))
            if size == 0 or now - looked > _SIZE_KNOWN_FOR_S:
                size = sample_bytes(self._clients, self._administration, target)
                self._sizes[target] = (now, size)
            sizes[target] = size
        return sizes

    def delete_records(self, before: Mapping[TopicPartition, int]) -> None:
        self._administration.delete_records(before)

    def wait_for_data(self, positions: Mapping[TopicPartition, int], timeout: timedelta) -> bool:
        deadline = time.monotonic() + timeout.total_seconds()
        pause = _POLL_FIRST_S
        while True:
            ends = self.end_offsets(positions)
            if any(ends[target] > position for target, position in positions.items()):
                return True
            left = deadline - time.monotonic()
            if left <= 0:
                return False
            time.sleep(min(pause, left))
            pause = min(pause * 2, _POLL_LAST_S)

    def application_description(self, application: str) -> bytes | None:
        return read_description(self._clients, self._administration, application)

    def describe_application(self, application: str, description: bytes) -> None:
        self._check_open()
        write_description(self._administration, self._appender, application, description)

    def cut_application(self, application: str, starts: Mapping[TopicPartition, int | None]) -> ApplicationCut | None:
        """Returns an application as a batch has left it; while it runs, as the next batch leaves it."""
        return cut_application(self._clients, self._administration, application, starts)

    def open_journal(self, application: str, tasks: Sequence[str]) -> KafkaJournal:
        """Opens the journal of an application; drivers and tasks that had it before can commit nothing more."""
        return KafkaJournal(self._clients, self._administration, application, tasks)

    def task_journal(
        self, application: str, incarnation: int, task: str, changelogs: Sequence[TopicPartition]
    ) -> KafkaTaskJournal:
        return KafkaTaskJournal(self._clients, self._administration, application, incarnation, task, changelogs)

    def applications(self) -> list[str]:
        """Returns the ids of applications with a journal, and all consumer groups: those of Kafka Streams, too."""
        found = map(application_of, self._administration.names())
        return sorted({*(name for name in found if name is not None), *list_groups(self._clients)})

    def group_offsets(self, application: str) -> dict[TopicPartition, GroupOffset]:
        """Returns what the application's consumer group has committed, by Headrace or by Kafka Streams."""
        return read_offsets(self._clients, application)

    def commit_group_offsets(self, application: str, offsets: Mapping[TopicPartition, GroupOffset]) -> None:
        """Commits offsets of the application's consumer group, which must have no members."""
        commit_offsets(self._clients, application, offsets)

    def group_members(self, application: str) -> list[GroupMember]:
        """Returns the members of the application's consumer group; Headrace never joins it."""
        return read_members(self._clients, application)

    def last_batch(self, application: str) -> Committed | None:
        """Returns what the application has committed last."""
        batch = self._history(application).batch
        return batch.committed() if batch.batch_id >= 0 else None

    def positions(self, application: str) -> Offsets:
        """Returns up to where the last batch has consumed that all tasks have committed: nothing of it is missing."""
        return self._history(application).batch.offsets()

    def _history(self, application: str) -> History:
        return read_history(self._clients, self._administration, application)

    def begin_at(self, application: str, positions: Mapping[TopicPartition, int]) -> None:
        """Lets an application that has committed no batch begin at these positions."""
        with closing(self.open_journal(application, ())) as journal:
            journal.begin_at(positions)

    def reset_application(self, application: str, internal_topics: Iterable[str] = ()) -> None:
        """Forgets batches, positions and task records, the consumer group, and what internal topics hold.

        Other topics stay as they are. Internal topics lose their records and are kept: a process that was believed dead
        may still cut off records, by offsets, and would cut off those of a topic made anew.
        """
        reset_application(self._clients, self._administration, self._appender, application, internal_topics)

    def forget_application(self, application: str) -> None:
        """Deletes the topics that hold its progress."""
        for topic in progress_topics(application, self._administration.names()):
            self._administration.delete(topic)

    def close(self) -> None:
        if self._handle is not None:
            handle, self._handle = self._handle, None
            close_clients(handle)

    @property
    def _clients(self) -> Clients:
        return self._check_open()

    @property
    def _administration(self) -> Administration:
        self._check_open()
        return self._administration_of

    def _check_open(self) -> Clients:
        if self._handle is None:
            servers = self.bootstrap_servers
            message = f"the log of Kafka at '{servers}' is closed; open it again: KafkaLog('{servers}')"
            raise LogError(message)
        return self._handle

    def __reduce__(self) -> tuple[Callable[..., KafkaLog], tuple[ClientSettings]]:
        return _reopen, (self._settings,)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _reopen(settings: ClientSettings) -> KafkaLog:
    return KafkaLog(
        settings.bootstrap_servers,
        consumer=settings.consumer,
        producer=settings.producer,
        admin=settings.admin,
        replication_factor=settings.replication_factor,
        exactly_once=settings.exactly_once,
        task_timeout=timedelta(seconds=settings.task_timeout_s),
    )

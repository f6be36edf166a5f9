"""Topics and offsets, as the brokers know them."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Future
from contextlib import suppress
from typing import Any

from confluent_kafka import IsolationLevel, KafkaError, KafkaException, TopicCollection
from confluent_kafka import TopicPartition as KafkaTopicPartition
from confluent_kafka.admin import (  # type: ignore[attr-defined]  # the client's package does not list them
    AdminClient,
    AlterConfigOpType,
    ClusterMetadata,
    ConfigEntry,
    ConfigResource,
    ConfigSource,
    NewPartitions,
    NewTopic,
    OffsetSpec,
    ResourceType,
)

from headrace.errors import RetriableError, TopicError, TopicExistsError, UnknownTopicError
from headrace.topics.configs import new_topic
from headrace.topics.kafka.client_errors import ABSENT, UNKNOWN, error_of, explain, unknown_topic
from headrace.topics.kafka.clients import Clients
from headrace.topics.log import Offsets, Topic, TopicPartition

logger = logging.getLogger(__name__)

FIRST_ANSWER_S = 6.0
"""How long a cluster may take that was perhaps never there."""
_FIRST_PIECE_S = 0.5
ANSWER_S = 30.0
"""Time limit of one request; after it the client is replaced and the request repeated."""
COMMITTED_S = 5.0
"""How long is waited until records can be read that were committed."""
_VISIBLE_S = 15.0
_STEP_S = 0.005
_ABSENT_STEP_S = 0.1
_KNOWN_FOR_S = 5.0
_MOVING = frozenset(
    {
        KafkaError.LEADER_NOT_AVAILABLE,
        KafkaError.NOT_LEADER_FOR_PARTITION,
        KafkaError.REPLICA_NOT_AVAILABLE,
        KafkaError.UNKNOWN_LEADER_EPOCH,
    }
)
"""Said of partitions that are new, or whose leader has changed: asked again, it is known."""
_LATEST, _EARLIEST = OffsetSpec.latest(), OffsetSpec.earliest()  # type: ignore[no-untyped-call]
_GREATEST = OffsetSpec.max_timestamp()  # type: ignore[no-untyped-call]


Question = Callable[[AdminClient, float], Future[Any]]
"""Asks a client something that may take so many seconds. Any: its futures do not say what they bring."""


class Administration:
    """Creates, describes and deletes topics, and asks for offsets. What it knows of a topic may be seconds old."""

    def __init__(self, clients: Clients) -> None:
        self._clients = clients
        self._known: dict[str, tuple[float, Topic]] = {}
        self._ids: dict[str, str] = {}

    def names(self) -> list[str]:
        return list(self.partition_counts())

    def partition_counts(self) -> dict[str, int]:
        """Returns all topics but Kafka's own, for offsets and transactions, with their partitions: one question."""
        with self._clients.translating_errors("listing topics"):
            found = self._list_topics().topics
        return {name: len(found[name].partitions) for name in sorted(found) if not name.startswith("__")}

    def _list_topics(self) -> ClusterMetadata:
        """Waits for an answer in short steps: a client that is refused retries without telling."""
        deadline, piece = time.monotonic() + self._patience_s, _FIRST_PIECE_S
        while time.monotonic() + piece < deadline:
            try:
                return self._clients.admin.list_topics(timeout=piece)
            except KafkaException as exception:
                if error_of(exception).code() not in ABSENT or self._clients.is_refused():
                    raise
            piece = min(piece * 2, ANSWER_S)
        return self._clients.admin.list_topics(timeout=max(deadline - time.monotonic(), 0))

    # Any: the client's futures do not say what they bring.
    def _ask(self, question: Question) -> Any:
        """Asks until there is an answer, for so long as a cluster may be away."""
        deadline = time.monotonic() + self._patience_s
        while True:
            try:
                return ask(self._clients, question, deadline - time.monotonic())
            except KafkaException as exception:
                if error_of(exception).code() not in ABSENT or time.monotonic() > deadline:
                    raise
            # It may look for its brokers in vain: a new one finds them.
            self._clients.renew()
            time.sleep(_ABSENT_STEP_S)

    def create(
        self, name: str, partitions: int, configs: Mapping[str, object] | None, replicas: int | None = None
    ) -> Topic:
        topic = new_topic(name, partitions, configs)
        new = NewTopic(
            name,
            num_partitions=partitions,
            replication_factor=self._clients.settings.replication_factor if replicas is None else replicas,
            config=dict(topic.configs),
        )
        try:
            ask(self._clients, lambda admin, seconds: admin.create_topics([new], request_timeout=seconds)[name])
        except KafkaException as exception:
            if error_of(exception).code() != KafkaError.TOPIC_ALREADY_EXISTS:
                raise explain(error_of(exception), f"creating topic '{name}'", self._clients.servers) from exception
            message = (
                f"topic '{name}' is there already, with {self.topic(name).partitions} partitions; use it, delete it "
                "first, or choose another name"
            )
            raise TopicExistsError(message) from None
        self._clients.forget_topic(name)
        self._wait_until(lambda: self._count_usable(name) >= partitions, f"creating topic '{name}'")
        self._remember(topic)
        return topic

    def grow(self, name: str, partitions: int) -> None:
        """Gives a topic more partitions."""
        with self._clients.translating_errors(f"growing topic '{name}'"):
            new = NewPartitions(name, partitions)
            ask(self._clients, lambda admin, seconds: admin.create_partitions([new], request_timeout=seconds)[name])
        self._wait_until(lambda: self._count_usable(name) >= partitions, f"growing topic '{name}'")
        self._known.pop(name, None)

    def delete(self, name: str) -> None:
        self.describe(name)
        self._known.pop(name, None)
        with self._clients.translating_errors(f"deleting topic '{name}'"):
            ask(self._clients, lambda admin, seconds: admin.delete_topics([name], request_timeout=seconds)[name])
        self._wait_until(lambda: self._leaders(name) is None, f"deleting topic '{name}'")
        self._clients.forget_topic(name)

    def topic(self, name: str, max_age_s: float = _KNOWN_FOR_S) -> Topic:
        """Returns a topic as it was known a few seconds ago at the latest, or so long ago as the caller allows."""
        known = self._known.get(name)
        if known is not None and time.monotonic() - known[0] < max_age_s:
            return known[1]
        return self.describe(name)

    def describe(self, name: str) -> Topic:
        leaders = self._leaders(name)
        if leaders is None:
            self._known.pop(name, None)
            raise unknown_topic(name, self.names())
        resource = ConfigResource(ResourceType.TOPIC, name)
        with self._clients.translating_errors(f"describing topic '{name}'"):
            entries = self._ask(
                lambda admin, seconds: admin.describe_configs([resource], request_timeout=seconds)[resource]
            )
        own = ConfigSource.DYNAMIC_TOPIC_CONFIG.value
        configs = {key: entry.value for key, entry in sorted(entries.items()) if entry.source == own}
        return self._remember(Topic(name, len(leaders), configs))

    def fresh_topic_id(self, name: str) -> str:
        """Returns the id as brokers say it now: one question, if settings are not asked for as well."""
        before = self._ids.get(name)
        if name not in self._known or self._leaders(name) is None or self._ids[name] != before:
            self.describe(name)
        return self._ids[name]

    def check(self, targets: Iterable[TopicPartition]) -> None:
        """Complains about topics and partitions that are not there."""
        for name, partition in targets:
            topic = self.topic(name)
            if partition >= topic.partitions:
                # Perhaps it has got more since.
                topic = self.describe(name)
            if not 0 <= partition < topic.partitions:
                message = f"topic '{name}' has partitions 0 to {topic.partitions - 1}; there is no {partition}"
                raise TopicError(message)

    def begin_offsets(self, targets: Iterable[TopicPartition]) -> Offsets:
        return {target: offset for target, (offset, _) in self._offsets(dict.fromkeys(targets, _EARLIEST)).items()}

    def end_offsets(self, targets: Iterable[TopicPartition], *, stable: bool) -> Offsets:
        """Returns where partitions end. What this process knows to be committed is waited for: see ``expect``."""
        specs, deadline = dict.fromkeys(targets, _LATEST), time.monotonic() + COMMITTED_S
        while True:
            ends = {target: offset for target, (offset, _) in self._offsets(specs, stable=stable).items()}
            if not stable or not self._clients.committed_ends or not (hidden := self._hidden(ends)):
                return ends
            if time.monotonic() > deadline:
                logger.warning("committed records of %s wait behind a transaction that is still open", sorted(hidden))
                self._forget_expected(hidden)
                return ends
            time.sleep(_STEP_S)

    def expect(self, written: Mapping[TopicPartition, tuple[int, int]]) -> None:
        """Notes up to where partitions are committed.

        Brokers end a transaction some time after they say so. Later questions in this process wait until it has ended.
        """
        self._clients.committed_ends.update({target: end for target, (_, end) in written.items()})

    def _hidden(self, ends: Offsets) -> set[TopicPartition]:
        expected = self._clients.committed_ends
        hidden = {target for target, end in ends.items() if expected.get(target, 0) > end}
        self._forget_expected(ends.keys() - hidden)
        return hidden

    def _forget_expected(self, targets: Iterable[TopicPartition]) -> None:
        for target in targets:
            self._clients.committed_ends.pop(target, None)

    def offsets_for_time(self, times_ms: Mapping[TopicPartition, int]) -> dict[TopicPartition, int | None]:
        # Times before zero are orders to the broker, not times.
        specs = {target: OffsetSpec.for_timestamp(max(0, time_ms)) for target, time_ms in times_ms.items()}
        return {target: None if offset < 0 else offset for target, (offset, _) in self._offsets(specs).items()}

    def latest_record(self, target: TopicPartition) -> tuple[int, int]:
        """Returns offset and time of the record with the largest timestamp; the offset is -1 if there is none."""
        return self._offsets({target: _GREATEST})[target]

    def _offsets(
        self, specs: Mapping[TopicPartition, OffsetSpec], *, stable: bool = True
    ) -> dict[TopicPartition, tuple[int, int]]:
        if not specs:
            return {}
        self.check(specs)
        deadline, pause_s = time.monotonic() + self._patience_s, _STEP_S
        while True:
            try:
                return self._ask_offsets(specs, stable=stable)
            except KafkaException as exception:
                error = error_of(exception)
                if error.code() in UNKNOWN:
                    # Deleted since we last looked, or not known to all brokers yet.
                    for topic, _ in specs:
                        self.describe(topic)
                elif error.code() in ABSENT or error.code() == KafkaError.FENCED_LEADER_EPOCH:
                    # A client that knows a former leader does not ask who is the leader now.
                    self._clients.renew()
                    pause_s = _ABSENT_STEP_S
                elif error.code() not in _MOVING:
                    raise explain(error, "asking for offsets", self._clients.servers) from exception
                if time.monotonic() > deadline:
                    raise explain(error, "asking for offsets", self._clients.servers) from exception
            time.sleep(pause_s)

    def _ask_offsets(
        self, specs: Mapping[TopicPartition, OffsetSpec], *, stable: bool
    ) -> dict[TopicPartition, tuple[int, int]]:
        places = {target: KafkaTopicPartition(*target) for target in specs}
        # The client must live until the answers are there.
        admin = self._clients.admin
        futures = admin.list_offsets(
            {place: specs[target] for target, place in places.items()},
            isolation_level=IsolationLevel.READ_COMMITTED if stable else IsolationLevel.READ_UNCOMMITTED,
            request_timeout=ANSWER_S,
        )
        answers = {target: _wait(futures[place]) for target, place in places.items()}
        return {target: (answer.offset, answer.timestamp) for target, answer in answers.items()}

    def delete_records(self, before: Mapping[TopicPartition, int]) -> None:
        if not before:
            return
        begins, ends = self.begin_offsets(before), self.end_offsets(before, stable=False)
        places = [
            KafkaTopicPartition(*target, min(offset, ends[target]))
            for target, offset in before.items()
            if offset > begins[target] and ends[target] > begins[target]
        ]
        if places:
            with self._clients.translating_errors("deleting records"):
                # The client must live until the answers are there.
                admin = self._clients.admin
                for future in admin.delete_records(places, request_timeout=ANSWER_S).values():
                    _wait(future)

    def truncate(self, topics: Iterable[str]) -> None:
        """Deletes all records of topics that are there. They stay what they are, with offsets that go on."""
        found = []
        for name in topics:
            with suppress(UnknownTopicError):
                found.append(self.describe(name))
        for topic in found:
            if topic.is_compacted and "delete" not in topic.configs["cleanup.policy"]:
                self._allow_deletion(topic.name)
        targets = [(topic.name, partition) for topic in found for partition in range(topic.partitions)]
        self.delete_records(self.end_offsets(targets, stable=False))

    def _allow_deletion(self, name: str) -> None:
        """Lets records of a topic be deleted that is only compacted: brokers refuse that."""
        wanted = {"cleanup.policy": "compact,delete", "retention.ms": "-1", "retention.bytes": "-1"}
        entries = [
            ConfigEntry(key, value, incremental_operation=AlterConfigOpType.SET) for key, value in wanted.items()
        ]
        resource = ConfigResource(ResourceType.TOPIC, name, incremental_configs=entries)
        with self._clients.translating_errors(f"changing settings of topic '{name}'"):
            ask(
                self._clients,
                lambda admin, seconds: admin.incremental_alter_configs([resource], request_timeout=seconds)[resource],
            )
        self._known.pop(name, None)

    def _count_usable(self, name: str) -> int:
        """Returns how many partitions of a topic can be used: those that are new wait for their leaders."""
        return sum(self._leaders(name) or ())

    def _leaders(self, name: str) -> list[bool] | None:
        """Returns of each partition of a topic whether it has a leader; None if the topic is not there."""
        with self._clients.translating_errors(f"describing topic '{name}'"):
            try:
                found = self._ask(
                    lambda admin, seconds: admin.describe_topics(TopicCollection([name]), request_timeout=seconds)[name]
                )
            except KafkaException as exception:
                if error_of(exception).code() in UNKNOWN:
                    return None
                raise
        self._ids[name] = str(found.topic_id)
        return [each.leader is not None for each in found.partitions]

    def topic_id(self, name: str) -> str:
        """Returns the id of a topic; it differs when the topic is created again under the same name."""
        self.topic(name)
        return self._ids[name]

    @property
    def _patience_s(self) -> float:
        return self._clients.patience_s if self._clients.has_answered else FIRST_ANSWER_S

    def _remember(self, topic: Topic) -> Topic:
        self._known[topic.name] = (time.monotonic(), topic)
        return topic

    def _wait_until(self, condition: Callable[[], bool], doing: str) -> None:
        """Waits until brokers have heard of what the controller has done."""
        deadline = time.monotonic() + _VISIBLE_S
        while not condition():
            if time.monotonic() > deadline:
                message = (
                    f"Kafka at '{self._clients.servers}' took longer than {_VISIBLE_S:.0f} s for {doing}; look again"
                )
                raise RetriableError(message)
            time.sleep(_STEP_S)


# Any: the client's futures do not say what they bring.
def ask(clients: Clients, question: Question, seconds: float = ANSWER_S) -> Any:
    """Asks once. The client lives until the answer is there, even if it is replaced meanwhile."""
    admin = clients.admin
    return _wait(question(admin, max(min(seconds, ANSWER_S), _STEP_S)))


# Any: the client's futures do not say what they bring.
def _wait(future: Future[Any]) -> Any:
    try:
        return future.result(ANSWER_S + 5)
    except TimeoutError as error:
        # The client has not even kept its own time limit.
        raise KafkaException(KafkaError(KafkaError._TIMED_OUT)) from error

"""Topics and offsets, as the brokers know them."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Future
from typing import Any

from confluent_kafka import IsolationLevel, KafkaError, KafkaException, TopicCollection
from confluent_kafka import TopicPartition as Place
from confluent_kafka.admin import (  # type: ignore[attr-defined]  # the client's package does not list them
    ClusterMetadata,
    ConfigResource,
    ConfigSource,
    NewPartitions,
    NewTopic,
    OffsetSpec,
    ResourceType,
)

from headrace.errors import RetriableError, TopicError, TopicExistsError
from headrace.topics.configs import new_topic
from headrace.topics.kafka.clients import Clients
from headrace.topics.kafka.explaining import ABSENT, UNKNOWN, error_of, explain, unknown_topic
from headrace.topics.log import Offsets, Topic, TopicPartition

FIRST_ANSWER_S = 6.0
"""How long a cluster may take that was perhaps never there."""
_FIRST_PIECE_S = 0.5
ANSWER_S = 60.0
"""How long one may take that has answered before: its brokers may be restarted."""
_VISIBLE_S = 15.0
_STEP_S = 0.005
_KNOWN_FOR_S = 5.0
_MOVING = frozenset(
    {
        KafkaError.FENCED_LEADER_EPOCH,
        KafkaError.LEADER_NOT_AVAILABLE,
        KafkaError.NOT_LEADER_FOR_PARTITION,
        KafkaError.REPLICA_NOT_AVAILABLE,
        KafkaError.UNKNOWN_LEADER_EPOCH,
    }
)
"""Said of partitions that are new, or whose leader has changed: asked again, it is known."""
_LATEST, _EARLIEST = OffsetSpec.latest(), OffsetSpec.earliest()  # type: ignore[no-untyped-call]
_GREATEST = OffsetSpec.max_timestamp()  # type: ignore[no-untyped-call]


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
        with self._clients.telling("listing topics"):
            found = self._list_topics().topics
        return {name: len(found[name].partitions) for name in sorted(found) if not name.startswith("__")}

    def _list_topics(self) -> ClusterMetadata:
        """Waits for the first answer in pieces: a client that is refused tries on, and does not tell who waits."""
        deadline, piece = time.monotonic() + self._patience_s, _FIRST_PIECE_S
        while not self._clients.has_answered and time.monotonic() + piece < deadline:
            try:
                return self._clients.admin.list_topics(timeout=piece)
            except KafkaException as exception:
                if error_of(exception).code() not in ABSENT or self._clients.is_refused():
                    raise
            piece *= 2
        return self._clients.admin.list_topics(timeout=max(deadline - time.monotonic(), 0))

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
            _wait(self._clients.admin.create_topics([new], request_timeout=ANSWER_S)[name])
        except KafkaException as exception:
            if error_of(exception).code() != KafkaError.TOPIC_ALREADY_EXISTS:
                raise explain(error_of(exception), f"creating topic '{name}'", self._clients.servers) from exception
            message = (
                f"topic '{name}' is there already, with {self.topic(name).partitions} partitions; use it, delete it "
                "first, or choose another name"
            )
            raise TopicExistsError(message) from None
        self._clients.forget_topic(name)
        self._until(lambda: self._partitions(name) == partitions, f"creating topic '{name}'")
        self._remember(topic)
        return topic

    def grow(self, name: str, partitions: int) -> None:
        """Gives a topic more partitions."""
        with self._clients.telling(f"growing topic '{name}'"):
            _wait(
                self._clients.admin.create_partitions([NewPartitions(name, partitions)], request_timeout=ANSWER_S)[name]
            )
        self._until(lambda: (self._partitions(name) or 0) >= partitions, f"growing topic '{name}'")
        self._known.pop(name, None)

    def delete(self, name: str) -> None:
        self.describe(name)
        self._known.pop(name, None)
        with self._clients.telling(f"deleting topic '{name}'"):
            _wait(self._clients.admin.delete_topics([name], request_timeout=ANSWER_S)[name])
        self._until(lambda: self._partitions(name) is None, f"deleting topic '{name}'")
        self._clients.forget_topic(name)

    def topic(self, name: str) -> Topic:
        """Returns a topic as it was known a few seconds ago at the latest."""
        known = self._known.get(name)
        if known is not None and time.monotonic() - known[0] < _KNOWN_FOR_S:
            return known[1]
        return self.describe(name)

    def describe(self, name: str) -> Topic:
        partitions = self._partitions(name)
        if partitions is None:
            self._known.pop(name, None)
            raise unknown_topic(name, self.names())
        resource = ConfigResource(ResourceType.TOPIC, name)
        with self._clients.telling(f"describing topic '{name}'"):
            entries = _wait(self._clients.admin.describe_configs([resource], request_timeout=ANSWER_S)[resource])
        own = ConfigSource.DYNAMIC_TOPIC_CONFIG.value
        configs = {key: entry.value for key, entry in sorted(entries.items()) if entry.source == own}
        return self._remember(Topic(name, partitions, configs))

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
        found = self._offsets(dict.fromkeys(targets, _LATEST), stable=stable)
        return {target: offset for target, (offset, _) in found.items()}

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
        deadline = time.monotonic() + ANSWER_S
        while True:
            try:
                return self._ask_offsets(specs, stable=stable)
            except KafkaException as exception:
                error = error_of(exception)
                if error.code() in UNKNOWN:
                    # Deleted since we last looked, or not known to all brokers yet.
                    for topic, _ in specs:
                        self.describe(topic)
                elif error.code() in ABSENT:
                    self._clients.renew()
                elif error.code() not in _MOVING:
                    raise explain(error, "asking for offsets", self._clients.servers) from exception
                if time.monotonic() > deadline:
                    raise explain(error, "asking for offsets", self._clients.servers) from exception
            time.sleep(_STEP_S)

    def _ask_offsets(
        self, specs: Mapping[TopicPartition, OffsetSpec], *, stable: bool
    ) -> dict[TopicPartition, tuple[int, int]]:
        places = {target: Place(*target) for target in specs}
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
        begins, ends = self.begin_offsets(before), self.end_offsets(before, stable=False)
        places = [
            Place(*target, min(offset, ends[target]))
            for target, offset in before.items()
            if offset > begins[target] and ends[target] > begins[target]
        ]
        if places:
            with self._clients.telling("deleting records"):
                for future in self._clients.admin.delete_records(places, request_timeout=ANSWER_S).values():
                    _wait(future)

    def _partitions(self, name: str) -> int | None:
        """Returns how many partitions a topic has once all of them can be used; None if it is not there."""
        with self._clients.telling(f"describing topic '{name}'"):
            try:
                found = _wait(
                    self._clients.admin.describe_topics(TopicCollection([name]), request_timeout=self._patience_s)[name]
                )
            except KafkaException as exception:
                if error_of(exception).code() in UNKNOWN:
                    return None
                raise
        self._ids[name] = str(found.topic_id)
        return sum(each.leader is not None for each in found.partitions)

    def topic_id(self, name: str) -> str:
        """Returns what a topic is known by that was made anew under the same name."""
        self.topic(name)
        return self._ids[name]

    @property
    def _patience_s(self) -> float:
        return ANSWER_S if self._clients.has_answered else FIRST_ANSWER_S

    def _remember(self, topic: Topic) -> Topic:
        self._known[topic.name] = (time.monotonic(), topic)
        return topic

    def _until(self, condition: Callable[[], bool], doing: str) -> None:
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
def _wait(future: Future[Any]) -> Any:
    try:
        return future.result(ANSWER_S + 5)
    except TimeoutError as error:
        # The client has not even kept its own time limit.
        raise KafkaException(KafkaError(KafkaError._TIMED_OUT)) from error

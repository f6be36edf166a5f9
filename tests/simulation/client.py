"""Clients of the broker in memory, in place of those of ``confluent_kafka``.

A request is a step of its process. It may be lost, arrive late, or stay without an answer; then the client says that
the time is over, as librdkafka does when its own retries have come to nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from types import SimpleNamespace
from typing import Any, NamedTuple, TypeVar

from confluent_kafka import IsolationLevel, KafkaError, KafkaException
from confluent_kafka import TopicPartition as KafkaTopicPartition
from confluent_kafka.admin import ConfigSource  # type: ignore[attr-defined]  # the package does not list it

from tests.simulation.broker import ABORTED, COMMITTED, Broker, Entry, Message, Partition, RefusedError
from tests.simulation.scheduler import Process
from tests.simulation.threads import Waiters, World

T = TypeVar("T")

_FENCED = frozenset({KafkaError.PRODUCER_FENCED, KafkaError.INVALID_PRODUCER_EPOCH})
_RETRY_S = 0.02


def failure(
    code: int, why: str = "", *, fatal: bool = False, retriable: bool = False, abortable: bool = False
) -> KafkaException:
    return KafkaException(KafkaError(code, why or None, fatal, retriable, abortable))


class _Client:
    """What all clients have in common: a process, a broker, and requests."""

    def __init__(self, settings: Mapping[str, Any], logger: object = None) -> None:
        current = World.scheduler.current
        assert current is not None, "clients are made by actors"
        self._process: Process = current.process
        self._scheduler = World.scheduler
        self._broker: Broker = World.broker
        self._settings = settings

    def _ask(self, question: Callable[[], T], seconds: float, what: str) -> T:
        """A request that changes nothing."""
        scheduler, broker = self._scheduler, self._broker
        scheduler.step(what)
        if broker.away_until > scheduler.now:
            left = broker.away_until - scheduler.now
            scheduler.sleep(min(left, seconds))
            if left > seconds:
                raise failure(KafkaError._TIMED_OUT, f"{what} timed out", retriable=True)
        elif scheduler.faulty and scheduler.rng.random() < scheduler.rates.lost:
            scheduler.sleep(min(seconds, 0.5))
            raise failure(KafkaError._TIMED_OUT, f"{what} timed out", retriable=True)
        return self._answer(question)

    def _order(self, effect: Callable[[], T], seconds: float, what: str) -> T:
        """A request that changes something: it may be lost, come late, or stay without an answer."""
        scheduler, broker = self._scheduler, self._broker

        def late() -> None:
            # Refused: then it is as if it had never come.
            if broker.away_until <= scheduler.now:
                scheduler.note(self._process, f"late: {what}")
                with suppress(RefusedError):
                    effect()

        scheduler.step(what, late)
        if broker.away_until > scheduler.now:
            left = broker.away_until - scheduler.now
            scheduler.sleep(min(left, seconds))
            if left > seconds:
                raise failure(KafkaError._TIMED_OUT, f"{what} timed out", retriable=True)
        if scheduler.faulty and self._process.may_fail:
            rates, chance = scheduler.rates, scheduler.rng.random()
            if chance < rates.lost:
                if scheduler.rng.random() < 0.5:
                    scheduler.later(scheduler.rng.random() ** 2 * 3 * min(seconds, 20.0), late)
                scheduler.note(self._process, f"lost: {what}")
                scheduler.sleep(scheduler.rng.random() * min(seconds, 10.0))
                raise failure(KafkaError._TIMED_OUT, f"{what} timed out", retriable=True)
            if chance < rates.lost + rates.unanswered:
                self._answer(effect)
                scheduler.note(self._process, f"unanswered: {what}")
                scheduler.sleep(scheduler.rng.random() * min(seconds, 10.0))
                raise failure(KafkaError._TIMED_OUT, f"{what} timed out", retriable=True)
            if chance < rates.lost + rates.unanswered + rates.delayed:
                scheduler.sleep(scheduler.rng.random() ** 2 * min(seconds, 5.0))
        done = self._answer(effect)
        scheduler.step(f"{what}: answer")
        return done

    def _answer(self, question: Callable[[], T]) -> T:
        try:
            return question()
        except RefusedError as error:
            if error.code in _FENCED:
                raise failure(KafkaError._FENCED, str(error), fatal=True) from error
            raise failure(error.code, str(error), abortable=error.code == KafkaError.INVALID_TXN_STATE) from error

    def poll(self, seconds: float = 0.0) -> Any:
        if seconds:
            self._scheduler.sleep(seconds)
        return 0

    def list_topics(self, topic: str | None = None, timeout: float = -1) -> Any:
        def look() -> Any:
            found = {
                each.name: SimpleNamespace(partitions=dict.fromkeys(range(len(each.partitions))))
                for each in self._broker.topics.values()
                if topic is None or each.name == topic
            }
            return SimpleNamespace(topics=found)

        return self._ask(look, timeout if timeout >= 0 else 60.0, "list topics")


class Delivered:
    """A record as consumers and delivery reports show it, or an error."""

    __slots__ = ("_entry", "_error", "_offset", "_target")

    def __init__(
        self, target: tuple[str, int], offset: int, entry: Entry | None = None, error: KafkaError | None = None
    ) -> None:
        self._target, self._offset, self._entry, self._error = target, offset, entry, error

    def error(self) -> KafkaError | None:
        return self._error

    def topic(self) -> str:
        return self._target[0]

    def partition(self) -> int:
        return self._target[1]

    def offset(self) -> int:
        return self._offset

    def timestamp(self) -> tuple[int, int]:
        assert self._entry is not None, "an error has no time"
        return 1, self._entry.timestamp_ms

    def key(self) -> bytes | None:
        return None if self._entry is None else self._entry.key

    def value(self) -> bytes | None:
        return None if self._entry is None else self._entry.value

    def headers(self) -> Sequence[tuple[str, bytes | None]]:
        return () if self._entry is None else self._entry.headers

    def __len__(self) -> int:
        return len(self.value() or b"")


Tell = Callable[[KafkaError | None, Delivered], None]


class Producer(_Client):
    """A producer: idempotent, or transactional if it has a transactional id."""

    def __init__(self, settings: Mapping[str, Any], logger: object = None) -> None:
        super().__init__(settings, logger)
        self._name: str | None = settings.get("transactional.id")
        self._timeout_s = float(settings.get("transaction.timeout.ms", 60_000)) / 1000
        self._message_s = float(settings.get("message.timeout.ms", 300_000)) / 1000
        self._epoch = -1
        self._state = "new"
        self._buffer: list[tuple[tuple[str, int], Message, Tell | None]] = []
        self._added: set[tuple[str, int]] = set()
        self._outstanding = 0
        self._last_arrival: dict[tuple[str, int], float] = {}
        self._waiters = Waiters()

    def produce(
        self,
        topic: str,
        value: bytes | None = None,
        key: bytes | None = None,
        partition: int = -1,
        callback: Tell | None = None,
        on_delivery: Tell | None = None,
        timestamp: int = 0,
        headers: Sequence[tuple[str, bytes | None]] | None = None,
    ) -> None:
        target = (topic, partition)
        message = (timestamp or self._broker.now_ms, key, value, tuple(headers or ()))
        if self._name is None:
            self._send(target, message, callback or on_delivery)
            return
        self._require("produce", "open")
        self._buffer.append((target, message, callback or on_delivery))

    # Outside of transactions: requests and answers travel by themselves.

    def _send(self, target: tuple[str, int], message: Message, tell: Tell | None) -> None:
        scheduler, rng, rates = self._scheduler, self._scheduler.rng, self._scheduler.rates
        self._outstanding += 1
        over = [False]

        def report(error: KafkaError | None, offset: int) -> None:
            if over[0] or self._process.is_dead:
                return
            over[0] = True
            self._outstanding -= 1
            if tell is not None:
                tell(error, Delivered(target, offset))
            self._waiters.wake()

        def arrive() -> None:
            if self._process.is_dead and rng.random() < 0.5:
                return
            if self._broker.away_until > scheduler.now:
                scheduler.later(self._broker.away_until - scheduler.now + rng.random() * 0.01, arrive)
                return
            try:
                offset = self._broker.append(target, [message])
            except RefusedError as error:
                code = error.code
                scheduler.later(0.001, lambda: report(KafkaError(code), -1))
                return
            answer_s = rng.random() * 0.003
            if scheduler.chance(rates.unanswered):
                answer_s = rng.random() * 2 * min(self._message_s, 20.0)
            scheduler.later(answer_s, lambda: report(None, offset))

        travel_s = rng.random() * 0.003
        if scheduler.chance(rates.lost):
            travel_s = rng.random() * 3 * min(self._message_s, 20.0)
        elif scheduler.chance(rates.delayed):
            travel_s = rng.random() ** 2 * 5.0
        at = max(scheduler.now + travel_s, self._last_arrival.get(target, 0.0))
        self._last_arrival[target] = at
        scheduler.later(at - scheduler.now, arrive)
        scheduler.later(self._message_s, lambda: report(KafkaError(KafkaError._MSG_TIMED_OUT), -1))

    def flush(self, timeout: float = -1) -> int:
        deadline = self._scheduler.now + (timeout if timeout >= 0 else 1e9)
        if self._name is None:
            self._waiters.wait_for(lambda: self._outstanding == 0, deadline - self._scheduler.now)
            return self._outstanding
        self._send_all(deadline)
        return 0

    # Transactions.

    def init_transactions(self, timeout: float = -1) -> None:
        name, deadline = self._name, self._scheduler.now + timeout
        assert name is not None, "only transactional producers are initialized"
        while True:
            left = max(deadline - self._scheduler.now, 0.001)
            found = self._order(lambda: self._broker.init_producer(name, self._timeout_s), left, f"init {name}")
            if found is not None:
                break
            if self._scheduler.now > deadline:
                raise failure(KafkaError._TIMED_OUT, "init_transactions timed out", retriable=True)
            self._scheduler.sleep(_RETRY_S)
        self._epoch = found[1]
        self._state = "ready"

    def begin_transaction(self) -> None:
        self._require("begin_transaction", "ready")
        self._state = "open"
        self._added = set()

    def commit_transaction(self, timeout: float = -1) -> None:
        self._require("commit_transaction", "open")
        self._send_all(self._scheduler.now + timeout)
        self._require("commit_transaction", "open")
        self._state = "committing"
        self._end(COMMITTED, timeout)

    def abort_transaction(self, timeout: float = -1) -> None:
        self._require("abort_transaction", "open", "broken")
        self._buffer.clear()
        self._state = "aborting"
        self._end(ABORTED, timeout)

    def _end(self, outcome: str, timeout: float) -> None:
        name, epoch = self._name, self._epoch
        assert name is not None, "only transactional producers get here"
        if self._added:
            try:
                self._order(lambda: self._broker.end(name, epoch, outcome), timeout, f"end {name}: {outcome}")
            except KafkaException as exception:
                if exception.args[0].code() == KafkaError._FENCED:
                    self._state = "fatal"
                raise
        self._state = "ready"

    def _require(self, doing: str, *states: str) -> None:
        if self._state == "fatal":
            raise failure(KafkaError._FENCED, "fenced", fatal=True)
        if self._state not in states:
            raise failure(KafkaError._STATE, f"{doing} in state {self._state}", abortable=self._state == "broken")

    def _send_all(self, deadline: float) -> None:
        """Sends what waits: partition by partition, in any order, in one request or several."""
        self._require("flush", "open")
        buffer, self._buffer = self._buffer, []
        waiting: dict[tuple[str, int], list[tuple[Message, Tell | None]]] = {}
        for target, message, tell in buffer:
            waiting.setdefault(target, []).append((message, tell))
        targets = list(waiting)
        self._scheduler.rng.shuffle(targets)
        for target in targets:
            try:
                self._send_part(target, waiting[target], deadline)
            except KafkaException as exception:
                error = exception.args[0]
                self._state = "fatal" if error.code() == KafkaError._FENCED else "broken"
                for each in targets[targets.index(target) :]:
                    for _, tell in waiting[each]:
                        if tell is not None:
                            tell(error, Delivered(each, -1))
                return

    def _send_part(self, target: tuple[str, int], messages: list[tuple[Message, Tell | None]], deadline: float) -> None:
        name, epoch, scheduler = self._name, self._epoch, self._scheduler
        assert name is not None, "only transactional producers get here"
        while target not in self._added:
            left = max(deadline - scheduler.now, 0.001)
            if self._order(lambda: self._broker.add_partitions(name, epoch, [target]), left, f"add {target}"):
                self._added.add(target)
            elif scheduler.now > deadline:
                raise failure(KafkaError._TIMED_OUT, "timed out", retriable=True)
            else:
                scheduler.sleep(_RETRY_S)
        while messages:
            count = len(messages) if scheduler.rng.random() < 0.8 else scheduler.rng.randint(1, len(messages))
            sent, messages = messages[:count], messages[count:]
            left, data = max(deadline - scheduler.now, 0.001), [message for message, _ in sent]
            first = self._order(
                lambda data=data: self._broker.produce(name, epoch, target, data),  # type: ignore[misc]
                left,
                f"produce {count} to {target}",
            )
            for offset, (_, tell) in enumerate(sent, first):
                if tell is not None:
                    tell(None, Delivered(target, offset))


class Consumer(_Client):
    """A consumer of one partition, of committed records."""

    def __init__(self, settings: Mapping[str, Any], logger: object = None) -> None:
        super().__init__(settings, logger)
        self._target = ("", 0)
        self._position = 0
        self._told_at = -1

    def assign(self, places: Sequence[KafkaTopicPartition]) -> None:
        (place,) = places
        self._target, self._position = (place.topic, place.partition), place.offset
        self._told_at = -1

    def seek(self, place: KafkaTopicPartition) -> None:
        self._position, self._told_at = place.offset, -1

    def consume(self, count: int = 1, timeout: float = -1) -> list[Delivered]:
        try:
            return self._ask(lambda: self._fetch(count), 0.1, f"fetch {self._target} from {self._position}")
        except KafkaException as exception:
            error = exception.args[0]
            if error.code() == KafkaError._TIMED_OUT:
                return []
            return [Delivered(self._target, self._position, error=error)]

    def poll(self, timeout: float = -1) -> Delivered | None:
        self._scheduler.sleep(min(timeout, 0.005))
        found = self.consume(1)
        return found[0] if found else None

    def _fetch(self, count: int) -> list[Delivered]:
        partition, target, rng = self._broker.partition(self._target), self._target, self._scheduler.rng
        if not partition.begin <= self._position <= partition.end:
            return [Delivered(target, self._position, error=KafkaError(KafkaError._AUTO_OFFSET_RESET))]
        end = partition.shown(self._scheduler.now)
        entries = partition.committed(self._position, end)[:count]
        if len(entries) > 1 and rng.random() < 0.1:
            entries = entries[: rng.randint(1, len(entries) - 1)]
            end = 0
        found = [Delivered(target, entry.offset, entry) for entry in entries]
        if entries:
            self._position = entries[-1].offset + 1
        if len(entries) < count and end >= self._position and end != self._told_at:
            self._position = self._told_at = end
            found.append(Delivered(target, end, error=KafkaError(KafkaError._PARTITION_EOF)))
        return found

    def close(self) -> None:
        """Nothing is kept."""


class Done:
    """An answer that is there, in place of a future: those are slow to make."""

    __slots__ = ("_error", "_result")

    def __init__(self, result: Any = None, error: KafkaException | None = None) -> None:
        self._result, self._error = result, error

    def result(self, _seconds: float | None = None) -> Any:
        if self._error is not None:
            raise self._error
        return self._result


class _Place(NamedTuple):
    """Where a record is in its partition."""

    offset: int
    timestamp: int


class AdminClient(_Client):
    """The client for administration; its futures are done when a call returns."""

    def _future(self, question: Callable[[], Any], seconds: float, what: str, *, order: bool = False) -> Done:
        try:
            return Done((self._order if order else self._ask)(question, seconds, what))
        except KafkaException as exception:
            return Done(error=exception)

    def create_topics(self, new: Sequence[Any], request_timeout: float = 30.0) -> dict[str, Done]:
        return {
            each.topic: self._future(
                lambda each=each: self._broker.create(each.topic, each.num_partitions, each.config),  # type: ignore[misc]
                request_timeout,
                f"create {each.topic}",
                order=True,
            )
            for each in new
        }

    def create_partitions(self, new: Sequence[Any], request_timeout: float = 30.0) -> dict[str, Done]:
        return {
            each.topic: self._future(
                lambda each=each: self._broker.grow(each.topic, each.new_total_count),  # type: ignore[misc]
                request_timeout,
                f"grow {each.topic}",
                order=True,
            )
            for each in new
        }

    def delete_topics(self, names: Sequence[str], request_timeout: float = 30.0) -> dict[str, Done]:
        return {
            name: self._future(
                lambda name=name: self._broker.delete(name),  # type: ignore[misc]
                request_timeout,
                f"delete {name}",
                order=True,
            )
            for name in names
        }

    def describe_topics(self, names: Any, request_timeout: float = 30.0) -> dict[str, Done]:
        def look(name: str) -> Any:
            topic = self._broker.topic(name)
            partitions = [SimpleNamespace(leader=1) for _ in topic.partitions]
            return SimpleNamespace(topic_id=topic.id, partitions=partitions)

        return {
            name: self._future(lambda name=name: look(name), request_timeout, f"describe {name}")  # type: ignore[misc]
            for name in names.topic_names
        }

    def describe_configs(self, resources: Sequence[Any], request_timeout: float = 30.0) -> dict[Any, Done]:
        own = ConfigSource.DYNAMIC_TOPIC_CONFIG.value

        def look(name: str) -> Any:
            configs = self._broker.topic(name).configs
            return {key: SimpleNamespace(value=value, source=own) for key, value in configs.items()}

        return {
            each: self._future(
                lambda each=each: look(each.name),  # type: ignore[misc]
                request_timeout,
                f"describe settings of {each.name}",
            )
            for each in resources
        }

    def incremental_alter_configs(self, resources: Sequence[Any], request_timeout: float = 30.0) -> dict[Any, Done]:
        def alter(resource: Any) -> None:
            for entry in resource.incremental_configs:
                self._broker.topic(resource.name).configs[entry.name] = entry.value

        return {
            each: self._future(
                lambda each=each: alter(each),  # type: ignore[misc]
                request_timeout,
                f"alter {each.name}",
                order=True,
            )
            for each in resources
        }

    def list_offsets(
        self, specs: Mapping[KafkaTopicPartition, Any], isolation_level: Any = None, request_timeout: float = 30.0
    ) -> dict[KafkaTopicPartition, Done]:
        committed = isolation_level is IsolationLevel.READ_COMMITTED
        what = f"offsets of {', '.join(sorted({place.topic for place in specs}))}" if self._scheduler.is_traced else ""

        def look() -> dict[KafkaTopicPartition, Done]:
            found: dict[KafkaTopicPartition, Done] = {}
            for place, spec in specs.items():
                try:
                    partition = self._broker.partition((place.topic, place.partition))
                    found[place] = Done(self._offset(partition, spec._value, committed=committed))
                except RefusedError as error:
                    found[place] = Done(error=failure(error.code, str(error)))
            return found

        try:
            return self._ask(look, request_timeout, what)
        except KafkaException as exception:
            return {place: Done(error=exception) for place in specs}

    def _offset(self, partition: Partition, wanted: int, *, committed: bool) -> _Place:
        if wanted == -1:
            return _Place(partition.shown(self._scheduler.now) if committed else partition.end, -1)
        if wanted == -2:
            return _Place(partition.begin, -1)
        entries = [entry for entry in partition.entries if not entry.is_marker]
        if wanted == -3:
            found = max(entries, key=lambda entry: entry.timestamp_ms, default=None)
        else:
            found = next((entry for entry in entries if entry.timestamp_ms >= wanted), None)
        return _Place(-1, -1) if found is None else _Place(found.offset, found.timestamp_ms)

    def delete_records(
        self, places: Sequence[KafkaTopicPartition], request_timeout: float = 30.0
    ) -> dict[KafkaTopicPartition, Done]:
        return {
            place: self._future(
                lambda place=place: self._broker.delete_records(  # type: ignore[misc]
                    (place.topic, place.partition), place.offset
                ),
                request_timeout,
                f"delete records of {place.topic}-{place.partition} before {place.offset}",
                order=True,
            )
            for place in places
        }

    def alter_consumer_group_offsets(self, groups: Sequence[Any], request_timeout: float = 30.0) -> dict[str, Done]:
        def alter(group: Any) -> None:
            known = self._broker.groups.setdefault(group.group_id, {})
            known.update({(place.topic, place.partition): place.offset for place in group.topic_partitions})

        return {
            group.group_id: self._future(
                lambda group=group: alter(group),  # type: ignore[misc]
                request_timeout,
                f"offsets of group {group.group_id}",
                order=True,
            )
            for group in groups
        }

    def delete_consumer_groups(self, names: Iterable[str], request_timeout: float = 30.0) -> dict[str, Done]:
        def delete(name: str) -> None:
            if self._broker.groups.pop(name, None) is None:
                raise RefusedError(KafkaError.GROUP_ID_NOT_FOUND)

        return {
            name: self._future(
                lambda name=name: delete(name),  # type: ignore[misc]
                request_timeout,
                f"delete group {name}",
                order=True,
            )
            for name in names
        }

"""Reset of an application on Kafka: announced in its history, so that no driver runs it before the end."""

from __future__ import annotations

import time
from collections.abc import Iterable

import msgspec
from confluent_kafka import KafkaError, KafkaException

from headrace.errors import BatchError
from headrace.topics.kafka.administration import Administration
from headrace.topics.kafka.client_errors import error_of, explain
from headrace.topics.kafka.clients import Clients
from headrace.topics.kafka.consumer_groups import ask_patiently
from headrace.topics.kafka.history import RESET, RESET_DONE, Opener, entry_key
from headrace.topics.kafka.history_reader import read_history
from headrace.topics.kafka.plain_append import Appender
from headrace.topics.kafka.progress_topics import batches_topic, ensure_topics, progress_topics
from headrace.topics.kafka.transactional_producers import end_open_transactions


def reset_application(
    clients: Clients,
    administration: Administration,
    appender: Appender,
    application: str,
    internal_topics: Iterable[str] = (),
) -> None:
    """Forgets everything. It can be done again if it was interrupted."""
    batches = batches_topic(application)
    _delete_group(clients, application)
    internal_topics = list(internal_topics)
    if batches not in administration.names():
        if not internal_topics:
            return
        # It has not run yet, but it may begin at this moment: then it must find that it is being reset.
        ensure_topics(administration, application, ())
    tasks = read_history(clients, administration, application).known_tasks
    begun = _append(appender, batches, RESET, tasks=sorted(tasks))
    # A driver may have come in between.
    tasks |= read_history(clients, administration, application).known_tasks
    if clients.settings.exactly_once:
        # After this nothing more comes from tasks of a driver that does not know yet.
        end_open_transactions(clients, application, sorted(tasks))
    own = [topic for topic in progress_topics(application, administration.names()) if topic != batches]
    administration.truncate([*own, *internal_topics])
    # A driver that did not know yet may have committed offsets once more.
    _delete_group(clients, application)
    _append(appender, batches, entry_key(RESET_DONE, begun))
    # Not what has come since: another reset may have been announced, and drivers have to find it.
    administration.delete_records({(batches, 0): begun})


def _append(appender: Appender, topic: str, key: bytes, tasks: Iterable[str] = ()) -> int:
    value = msgspec.msgpack.encode(Opener.this(list(tasks)))
    return appender.append(topic, [(0, time.time_ns() // 1_000_000, key, value, ())])[0][0]


def _delete_group(clients: Clients, application: str) -> None:
    try:
        ask_patiently(
            clients,
            lambda admin, seconds: admin.delete_consumer_groups([application], request_timeout=seconds)[application],
        )
    except KafkaException as exception:
        error = error_of(exception)
        if error.code() == KafkaError.NON_EMPTY_GROUP:
            message = f"consumer group '{application}' has members: stop the consumers of that name, and try again"
            raise BatchError(message) from exception
        if error.code() != KafkaError.GROUP_ID_NOT_FOUND:
            raise explain(error, f"resetting '{application}'", clients.servers) from exception


def list_groups(clients: Clients) -> list[str]:
    """Returns the names of all consumer groups."""
    with clients.translating_errors("listing consumer groups"):
        found = ask_patiently(clients, lambda admin, seconds: admin.list_consumer_groups(request_timeout=seconds))
    return sorted(group.group_id for group in found.valid)

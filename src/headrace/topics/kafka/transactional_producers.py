"""Transactional producers: one that is initialized fences all others of its id, and ends what they left."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor

from confluent_kafka import Producer

from headrace.topics.kafka.clients import Clients
from headrace.topics.kafka.progress_topics import task_place

_AT_ONCE = 16


def init_producer(clients: Clients, application: str, task: str) -> Producer:
    """Returns the producer of a task. Whatever another one of the task has open is over by then."""
    return fencing_producer(clients, f"{application}-{task}", task_place(application, task)[0])


def fencing_producer(
    clients: Clients, transactional_id: str, topic: str, settings: Mapping[str, object] | None = None
) -> Producer:
    """Returns a producer that will write to a topic. Whatever another one of its id has open is over by then."""
    producer = clients.new_producer(transactional_id, settings)
    # Asked before it has found a broker, it would look for one again only half a second later.
    producer.list_topics(topic, clients.patience_s)
    producer.init_transactions(clients.patience_s)
    return producer


def end_open_transactions(clients: Clients, application: str, tasks: Sequence[str]) -> None:
    """Makes a producer for each task and lets it go: another one of that name is fenced, and what it has open aborted.

    A task's own producer would do that, too; but one that has nothing to do may have none for long, and readers would
    wait.
    """

    def end(task: str) -> None:
        with clients.translating_errors(f"ending what task {task} of application '{application}' has left open"):
            init_producer(clients, application, task)

    _for_each(tasks, end)


def fence(clients: Clients, topic: str, transactional_ids: Sequence[str]) -> None:
    """Ends what producers of these ids are writing to a topic, and keeps them from committing."""

    def end(transactional_id: str) -> None:
        with clients.translating_errors(f"fencing the producer '{transactional_id}', which writes to topic '{topic}'"):
            fencing_producer(clients, transactional_id, topic)

    _for_each(transactional_ids, end)


def _for_each(names: Sequence[str], end: Callable[[str], None]) -> None:
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        for done in [pool.submit(end, name) for name in names]:
            done.result()

"""Transactional producers of tasks: one that is initialized fences all others of its task, and ends what they left."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

from confluent_kafka import Producer

from headrace.topics.kafka.clients import Clients
from headrace.topics.kafka.progress_topics import task_place

_AT_ONCE = 16


def init_producer(clients: Clients, application: str, task: str) -> Producer:
    """Returns the producer of a task. Whatever another one of the task has open is over by then."""
    producer = clients.new_producer(f"{application}-{task}")
    # Asked before it has found a broker, it would look for one again only half a second later.
    producer.list_topics(task_place(application, task)[0], clients.patience_s)
    producer.init_transactions(clients.patience_s)
    return producer


def end_open_transactions(clients: Clients, application: str, tasks: Sequence[str]) -> None:
    """Makes a producer for each task and lets it go: another one of that name is fenced, and what it has open aborted.

    A task's own producer would do that, too; but one that has nothing to do may have none for long, and readers would
    wait.
    """

    def end(task: str) -> None:
        with clients.telling(f"ending what task {task} of application '{application}' has left open"):
            init_producer(clients, application, task)

    with ThreadPoolExecutor(_AT_ONCE) as pool:
        for done in [pool.submit(end, task) for task in tasks]:
            done.result()

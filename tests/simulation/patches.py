"""Stand-ins for the clock, threads, files and Kafka's client in the modules of the engine, in this process."""

from __future__ import annotations

import random
import sys
import threading
import time
from collections.abc import Iterable
from functools import cache
from types import ModuleType, SimpleNamespace

from headrace.batches import live_task, loop, planner, restore, working_copy
from headrace.topics.embedded import embedded_log, environment, staging
from headrace.topics.kafka import (
    acknowledged_append,
    administration,
    clients,
    history,
    history_reader,
    journal_maintenance,
    kafka_log,
    progress_topics,
    task_transaction,
    transactional_producers,
)
from headrace.topics.kafka import plain_append as kafka_append
from headrace.topics.kafka.administration import Administration
from tests.simulation import client, disk, threads
from tests.simulation.threads import World

_PACKAGES = ("headrace.batches.", "headrace.topics.kafka.", "headrace.topics.embedded.")


def _modules() -> list[ModuleType]:
    return [module for name, module in sys.modules.items() if name.startswith(_PACKAGES)]


def _token_hex(_bytes: int) -> str:
    return World.scheduler.token()


@cache
def install() -> None:
    """Puts the simulated world in place of the real one, in this process, for good."""
    for module in _modules():
        if getattr(module, "time", None) is time:
            module.time = threads.Clock  # type: ignore[attr-defined]
        if getattr(module, "threading", None) is threading and module.__name__.startswith(_PACKAGES[:2]):
            module.threading = threads.Threading  # type: ignore[attr-defined]
    _replace(acknowledged_append, threading=threads.NoThreading, Future=threads.Future)
    # Its locks are held for no step.
    _replace(clients, threading=threading, Producer=client.Producer, Consumer=client.Consumer)
    _replace(clients, AdminClient=client.AdminClient)
    _replace(history_reader, KnownHistory=lambda: history.KnownHistory(lock=threads.Lock()))  # type: ignore[arg-type]
    _replace(history, socket=SimpleNamespace(gethostname=lambda: "host"), os=SimpleNamespace(getpid=_process))
    _replace(progress_topics, ThreadPoolExecutor=threads.ThreadPoolExecutor)
    _replace(transactional_producers, ThreadPoolExecutor=threads.ThreadPoolExecutor)
    _replace(working_copy, os=disk.Os, shutil=disk.Shutil, open_store=disk.open_store, token_hex=_token_hex)
    # Folders are there when something is in them.
    _replace(working_copy, make_directories=lambda _path: None)
    _replace(live_task, token_hex=_token_hex)
    _replace(staging, token_hex=_token_hex)
    seeded = SimpleNamespace(randrange=lambda below: World.scheduler.rng.randrange(below))
    for module in (kafka_append, embedded_log):
        assert module.random is random
        _replace(module, random=seeded)
    Administration.truncate = _truncate  # type: ignore[method-assign]
    # What happens every few seconds happens within a history.
    _replace(working_copy, _LASTING=working_copy._LASTING._replace(seconds=0.3))
    _replace(planner, _PURGE_EVERY=0.7)
    # Who waits for input looks less often: looking is most of what there is to do.
    _replace(kafka_log, _POLL_FIRST_S=0.04, _POLL_LAST_S=0.1)
    _replace(embedded_log, _POLL_FIRST=0.04, _POLL_LAST=0.1)
    _replace(administration, _STEP_S=0.02)
    _replace(task_transaction, _STEP_S=0.02)
    loop.wait_for_input.__defaults__ = (0.4,)
    # Transactions take no steps, so nobody comes while the map is changed.
    _replace(environment, threading=SimpleNamespace(Condition=threads.Condition, Lock=threading.Lock))
    _replace(journal_maintenance, GROUP_EVERY_S=0.5, CUT_EVERY_S=0.7)
    _replace(restore, _AT_ONCE=4)
    _replace(staging, INLINE_BYTES=300)


_own_truncate = Administration.truncate


def _truncate(self: Administration, topics: Iterable[str]) -> None:
    _own_truncate(self, topics)
    World.truncated()


def _process() -> str:
    current = World.scheduler.current
    return current.process.name if current is not None else "-"


def _replace(module: ModuleType, **names: object) -> None:
    for name, value in names.items():
        assert hasattr(module, name), f"{module.__name__} has no {name} any more"
        setattr(module, name, value)

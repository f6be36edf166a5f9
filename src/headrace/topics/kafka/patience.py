"""Asking a group's coordinator, which may have to be found first, as after the start of a broker."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

from confluent_kafka import KafkaError, KafkaException

from headrace.topics.kafka.explaining import error_of

_PAUSE_S = 0.05
_NOT_READY = frozenset(
    {KafkaError.COORDINATOR_LOAD_IN_PROGRESS, KafkaError.COORDINATOR_NOT_AVAILABLE, KafkaError.NOT_COORDINATOR}
)

T = TypeVar("T")


def patiently(ask: Callable[[], T], seconds: float) -> T:
    """Asks again and again for so long as the coordinator is not ready."""
    deadline = time.monotonic() + seconds
    while True:
        try:
            return ask()
        except KafkaException as exception:
            if error_of(exception).code() not in _NOT_READY or time.monotonic() > deadline:
                raise
            time.sleep(_PAUSE_S)

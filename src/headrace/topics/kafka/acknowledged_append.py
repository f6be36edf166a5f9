"""Acknowledged appends of drivers: one producer for all journals of a process, and a thread that hears its reports.

A new producer takes half a second until it may write exactly once, so journals share one. One thread gets the reports
for all of them: of several threads that poll a producer, one could take the reports of another.
"""

from __future__ import annotations

import threading
import time
from concurrent.futures import Future

from confluent_kafka import KafkaError, KafkaException, Message, Producer

from headrace.topics.kafka.producing import produce_all

_POLL_S = 0.5


class AcknowledgedProducer:
    """An idempotent producer whose records are waited for one by one."""

    def __init__(self, producer: Producer) -> None:
        self._producer = producer
        self._closed = threading.Event()
        self.users = 0
        """How many appends may still wait for a report, which they get also after it is closed."""
        threading.Thread(target=self._run, name="headrace-acknowledgements", daemon=True).start()

    def append(self, topic: str, key: bytes, value: bytes, seconds: float) -> int:
        """Writes a record to the only partition of a topic; returns its offset once it is acknowledged."""
        told: Future[int] = Future()

        def tell(error: KafkaError | None, message: Message) -> None:
            if error is not None:
                told.set_exception(KafkaException(error))
            else:
                told.set_result(message.offset() or 0)

        # The producer may know a topic of the same name that was deleted: it is given time to learn of the new one.
        produce_all(self._producer, topic, 0, [(0, time.time_ns() // 1_000_000, key, value, ())], tell)
        try:
            return told.result(seconds)
        except TimeoutError as error:
            raise KafkaException(KafkaError(KafkaError._TIMED_OUT)) from error

    def close(self) -> None:
        """Ends it when its last user has gone; nobody may begin to use it now."""
        self._closed.set()

    def _run(self) -> None:
        while self.users or not self._closed.is_set():
            self._producer.poll(_POLL_S)

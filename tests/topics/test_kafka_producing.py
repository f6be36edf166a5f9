"""Waiting for what was given to Kafka's client."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("confluent_kafka")

from confluent_kafka import KafkaError, KafkaException

from headrace.topics.kafka.producing import Delivery, flush


class BrokenOff:
    """A producer whose client breaks off without a result, once."""

    def __init__(self, delivery: Delivery, error: KafkaError | None) -> None:
        self._delivery = delivery
        self._error = error
        self._asked = 0

    def flush(self, patience_s: float) -> int:
        self._asked += 1
        if self._asked == 1:
            message = "returned NULL without setting an exception"
            raise SystemError(message)
        self._delivery.error = self._error
        return 0


@pytest.mark.parametrize("code", [None, KafkaError._FENCED])
def test_client_that_breaks_off_is_asked_again(code: int | None) -> None:
    delivery = Delivery()
    # Any: only its flush is called.
    producer: Any = BrokenOff(delivery, None if code is None else KafkaError(code))
    if code is None:
        flush(producer, delivery, 1.0)
        return
    with pytest.raises(KafkaException) as caught:
        flush(producer, delivery, 1.0)
    assert caught.value.args[0].code() == code

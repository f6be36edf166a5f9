"""Descriptions of applications on Kafka: the last record of a topic of their own."""

from __future__ import annotations

import time

from headrace.errors import OffsetOutOfRangeError
from headrace.topics.kafka.administration import Administration
from headrace.topics.kafka.clients import Clients
from headrace.topics.kafka.plain_append import Appender
from headrace.topics.kafka.progress_topics import description_topic, ensure_place
from headrace.topics.kafka.reading import read_all

_KEY = b"application"


def read_description(clients: Clients, administration: Administration, application: str) -> bytes | None:
    """Returns the last description; None if there is none."""
    place = (description_topic(application), 0)
    if place[0] not in administration.names():
        return None
    while True:
        begin = administration.begin_offsets([place])[place]
        end = administration.end_offsets([place], stable=True)[place]
        try:
            found = read_all(clients, administration, place, begin, end)
        except OffsetOutOfRangeError:
            # A new one was written meanwhile, and those before it were deleted.
            continue
        return found[-1][3] if found else None


def write_description(administration: Administration, appender: Appender, application: str, description: bytes) -> None:
    """Writes a description, and forgets those before it."""
    place = (description_topic(application), 0)
    ensure_place(administration, place)
    written = appender.append(place[0], [(0, time.time_ns() // 1_000_000, _KEY, description, ())])
    administration.delete_records({place: written[0][0]})

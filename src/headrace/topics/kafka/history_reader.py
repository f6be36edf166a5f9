"""Reading the history of an application, each record once in a process."""

from __future__ import annotations

from headrace.errors import OffsetOutOfRangeError, UnknownTopicError
from headrace.topics.kafka.administration import Administration
from headrace.topics.kafka.clients import Clients
from headrace.topics.kafka.history import History, KnownHistory
from headrace.topics.kafka.progress_topics import batches_topic
from headrace.topics.kafka.reading import read_range
from headrace.topics.log import TopicPartition

_RECORDS = 10_000
_BYTES = 16 << 20


def read_history(clients: Clients, administration: Administration, application: str) -> History:
    """Returns the history of an application as it is now; a process reads each record once."""
    reading = clients.histories.setdefault(application, KnownHistory())
    with reading.lock:
        target = (batches_topic(application), 0)
        while True:
            try:
                _read_on(reading, clients, administration, target)
            except UnknownTopicError:
                reading.topic_id, reading.position, reading.history = "", 0, History()
            except OffsetOutOfRangeError:
                # Cut off in the meantime: what is needed lies behind.
                continue
            return reading.history


def _read_on(reading: KnownHistory, clients: Clients, administration: Administration, target: TopicPartition) -> None:
    end = administration.end_offsets([target], stable=True)[target]
    topic_id = administration.topic_id(target[0])
    if topic_id != reading.topic_id or end < reading.position:
        reading.topic_id, reading.position, reading.history = topic_id, 0, History()
    if end == reading.position:
        return
    begin = administration.begin_offsets([target])[target]
    if begin > reading.position:
        # Cut off. What it was cut off for lies there now, perhaps behind the end as it was before. It says everything:
        # what was read before may be a reset whose end was cut off.
        reading.position, reading.history = begin, History()
        end = administration.end_offsets([target], stable=True)[target]
    while reading.position < end:
        found = read_range(clients, administration, target, reading.position, end, _RECORDS, _BYTES, keep=False)
        for offset, _, key, value, _ in found:
            reading.history = reading.history.with_record(offset, key or b"", value or b"")
        reading.position = found[-1][0] + 1 if found else end

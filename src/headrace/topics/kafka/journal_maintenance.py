"""Upkeep of a journal beside the batches: consumer-group offsets for tools, and deletion of obsolete records.

Positions are those of the last batch record. The offsets of the consumer group follow them about once a second, for lag
monitors and the like; nothing here reads them. They are written with the client for administration: a consumer that
stands for the group would look for its coordinator all the time.
"""

from __future__ import annotations

import logging
import threading
import time

from confluent_kafka import ConsumerGroupTopicPartitions
from confluent_kafka import TopicPartition as KafkaTopicPartition

from headrace.errors import StreamsError
from headrace.topics.kafka.administration import Administration, ask
from headrace.topics.kafka.clients import Clients
from headrace.topics.kafka.history import Batch
from headrace.topics.kafka.progress_topics import batches_topic, task_place
from headrace.topics.log import Offsets

logger = logging.getLogger(__name__)

GROUP_EVERY_S = 1.0
CUT_EVERY_S = 30.0
_CLOSING_S = 5.0


class Upkeep:
    """A thread that does it. While no batch is committed it waits."""

    def __init__(self, clients: Clients, administration: Administration, application: str) -> None:
        self._clients = clients
        self._administration = administration
        self._application = application
        self._changed = threading.Condition()
        self._last: tuple[Batch, int] | None = None
        self._closed = False
        self._group: Offsets = {}
        self._cut_at = time.monotonic() + CUT_EVERY_S
        self._thread = threading.Thread(target=self._run, name="headrace-journal", daemon=True)
        self._thread.start()

    def note(self, batch: Batch, offset: int) -> None:
        """Takes the last batch that was recorded, and where."""
        with self._changed:
            self._last = (batch, offset)
            self._changed.notify()

    def close(self) -> None:
        with self._changed:
            self._closed = True
            self._changed.notify()
        self._thread.join(_CLOSING_S)

    def _run(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._last is not None or self._closed)
                last, self._last = self._last, None
            if last is not None:
                self._maintain(*last)
            with self._changed:
                if self._closed and self._last is None:
                    return
                self._changed.wait_for(lambda: self._closed, GROUP_EVERY_S)

    def _maintain(self, batch: Batch, offset: int) -> None:
        try:
            self.commit_group(batch.offsets())
            if time.monotonic() >= self._cut_at:
                self._cut_at = time.monotonic() + CUT_EVERY_S
                self.cut(batch, offset)
        except StreamsError as error:
            # The next batch brings the next chance, and nothing depends on it.
            logger.debug("upkeep of application '%s' is put off: %s", self._application, error)

    def commit_group(self, positions: Offsets) -> None:
        """Commits offsets of the consumer group that have changed."""
        changed = {target: at for target, at in positions.items() if self._group.get(target) != at}
        if not changed:
            return
        places = [KafkaTopicPartition(*target, at) for target, at in changed.items()]
        with self._clients.translating_errors(f"committing offsets of consumer group '{self._application}'"):
            group = [ConsumerGroupTopicPartitions(self._application, places)]
            ask(
                self._clients,
                lambda admin, seconds: admin.alter_consumer_group_offsets(group, request_timeout=seconds)[
                    self._application
                ],
            )
        self._group = positions

    def cut(self, batch: Batch, offset: int) -> None:
        """Deletes edges and task records that lie before those of the last batch, and batches before that.

        All tasks have committed it, so nobody asks for its edges any more. A driver that was deposed may cut as well:
        what it names was there before, and topics are never made anew.
        """
        before = {task_place(self._application, task): at for task, _, _, at in batch.tasks if at > 0}
        self._administration.delete_records({**before, (batches_topic(self._application), 0): offset})

"""Cut through a running application on Kafka: where every partition ended when a batch was committed.

Tasks commit apart, so the ends of partitions at one moment belong to no batch. But a task begins a batch only after the
one before was committed. So what is seen after batch *n* was the last one belongs to *n* or to *n + 1*; and the record
of *n + 1* names, by offsets, all that was written in it. If none was begun, everything belongs to *n*.
"""

from __future__ import annotations

import time
from collections.abc import Mapping

from headrace.errors import BatchError, OffsetOutOfRangeError
from headrace.topics.journal import ApplicationCut, TaskRecord
from headrace.topics.kafka.administration import Administration
from headrace.topics.kafka.clients import Clients
from headrace.topics.kafka.history import BATCH, Batch, History
from headrace.topics.kafka.history_reader import read_history
from headrace.topics.kafka.progress_topics import batches_topic
from headrace.topics.kafka.reading import read_all
from headrace.topics.kafka.task_transaction import KafkaTaskJournal
from headrace.topics.log import Offsets, Raw, TopicPartition

_STEP_S = 0.01


def cut_application(
    clients: Clients, administration: Administration, application: str, starts: Mapping[TopicPartition, int | None]
) -> ApplicationCut | None:
    """Returns an application as a batch has left it, with what lies between ``starts`` and its ends."""
    cutting = _Cutting(clients, administration, application, starts)
    while True:
        history = read_history(clients, administration, application)
        history.check_not_resetting(application)
        if history.batch.batch_id < 0:
            return None
        try:
            found = cutting.try_after(history)
        except OffsetOutOfRangeError:
            # The journal was cut off meanwhile.
            found = None
        if found is not None:
            return found
        cutting.check_time()


class _Cutting:
    def __init__(
        self,
        clients: Clients,
        administration: Administration,
        application: str,
        starts: Mapping[TopicPartition, int | None],
    ) -> None:
        self._clients = clients
        self._administration = administration
        self._application = application
        self._starts = starts
        self._deadline = time.monotonic() + clients.patience_s

    def try_after(self, before: History) -> ApplicationCut | None:
        """Returns the application after the last batch, if no other was begun, or else after the next one.

        None says that it cannot be told by that batch, because a task has repeated a commit that was there already.
        """
        # With what is not committed yet: what is there belongs at most to the next batch.
        seen = self._administration.end_offsets(self._starts, stable=False)
        batch = self._next_batch(before)
        if batch is None:
            return None
        if batch.batch_id > before.batch.batch_id and not _names_all_writes(before.batch, batch):
            return None
        ends = dict(seen)
        if batch.batch_id > before.batch.batch_id:
            ends.update({target: end for target, (_, end) in batch.committed().written.items() if target in ends})
        self._wait_until_visible(ends)
        records: dict[str, TaskRecord] = {}
        for task, stamp, _, _ in batch.tasks:
            journal = KafkaTaskJournal(self._clients, self._administration, self._application, -1, task, [])
            record = journal.read_record(stamp)
            if record is None:
                return None
            records[task] = record
        positions = batch.offsets()
        begins = self._administration.begin_offsets(self._starts)
        tails = {}
        for target, start in self._starts.items():
            at = positions.get(target, 0) if start is None else start
            tails[target] = self._read(target, max(at, begins[target]), ends[target])
        return ApplicationCut(batch.batch_id, positions, records, ends, tails)

    def _next_batch(self, before: History) -> Batch | None:
        """Returns the batch after the last one, once it is committed; or the last one, if none has been begun."""
        place = (batches_topic(self._application), 0)
        history, position = before, before.batch_offset + 1
        while True:
            end = self._administration.end_offsets([place], stable=True)[place]
            for offset, _, key, value, _ in self._read(place, position, end):
                position = offset + 1
                after = history.with_record(offset, key or b"", value or b"")
                if after.is_reset and not history.is_reset:
                    return None
                # What a driver has written that was deposed changes nothing.
                counts, history = after is not history, after
                if counts and (key or b"").startswith(BATCH):
                    return history.batch
            if not history.plan_data:
                return before.batch
            self.check_time()
            time.sleep(_STEP_S)

    def _wait_until_visible(self, ends: Offsets) -> None:
        while True:
            stable = self._administration.end_offsets(ends, stable=True)
            if all(stable[target] >= end for target, end in ends.items()):
                return
            self.check_time()
            time.sleep(_STEP_S)

    def _read(self, target: TopicPartition, start: int, stop: int) -> list[Raw]:
        return read_all(self._clients, self._administration, target, start, stop)

    def check_time(self) -> None:
        """Complains about an application that neither goes on nor is at rest."""
        if time.monotonic() > self._deadline:
            message = (
                f"application '{self._application}': a batch was begun and is not finished, so it cannot be told where "
                "the last one ended; start the application, or wait until it goes on"
            )
            raise BatchError(message)


def _names_all_writes(before: Batch, batch: Batch) -> bool:
    """Returns whether a batch names everything that it has written: not if a task found its commit there already."""
    known = {task: stamp for task, stamp, _, _ in before.tasks}
    return all(at >= 0 for task, stamp, _, at in batch.tasks if known.get(task) != stamp)

"""Spark jobs of one shape, back to back: a stage per level, a shuffle between two of them.

Everything that can be is made once: the wrapped functions, the RDDs of the first stage. A new job needs new RDDs only
behind its shuffles, because Spark skips stages whose shuffle files exist. What passes between stages are bytes, which
neither side pickles; each slot sends one record to each slot of the next stage, also if it has nothing to say, so that
a stage behind a shuffle can be zipped with an RDD that says where its slots should run, and knows when something is
missing: if the JVM cannot fetch what an executor has sent, because that is gone, it ends the worker's input as if that
were all, and drops the result later. By then a stage has done its work, and others have seen it.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from struct import Struct
from typing import Any, NamedTuple, TypeAlias
from uuid import uuid4

from pyspark import SparkContext
from pyspark.core.rdd import _wrap_function
from pyspark.serializers import NoOpSerializer
from pyspark.util import _load_from_socket

_HEADER = Struct(">HIQ")
_SENDER = Struct(">H")
"""The slot that sends a record, at its beginning; what else comes is empty."""
_LONG = Struct("!q")
"""A slot as Spark's PairwiseRDD reads it."""
_DESCRIPTION = "spark.job.description"
_GROUP = "spark.jobGroup.id"


class Sent(NamedTuple):
    """Bytes on their way to a slot of a later stage. The stage behind the last one is the driver."""

    stage: int
    slot: int
    data: bytes


StageFunction = Callable[[int, list[bytes]], Iterable[Sent]]
"""Called with the slot's number and the data sent to it, ordered by the sender's stage and slot."""
Locations: TypeAlias = tuple[tuple[str, ...], ...]
"""What each slot prefers."""


class StagedJob:
    """A job that is run again and again: ``functions`` are its stages, each with so many ``slots``.

    Functions go to the workers pickled, once per stage and job, so what is large in them should be bytes already.
    """

    def __init__(self, context: SparkContext, functions: Sequence[StageFunction], slots: int) -> None:
        self._context = context
        self._slots = slots
        self._depth = len(functions)
        # Any, here and below: what py4j returns.
        jvm: Any = context._jvm
        self._jvm = jvm
        # By name py4j looks for a class in all that it imports, each time.
        self._python_rdd: Any = jvm.PythonRDD
        self._pairwise_rdd: Any = jvm.PairwiseRDD
        self._as_scala: Any = jvm.scala.jdk.javaapi.CollectionConverters.asScala
        self._wrapped: list[Any] = [
            _wrap_function(context, _Stage(function, stage, slots, self._depth), NoOpSerializer(), NoOpSerializer())
            for stage, function in enumerate(functions)
        ]
        self._partitioner: Any = jvm.PythonPartitioner(slots, id(self))
        self._serializer: Any = jvm.org.apache.spark.serializer.JavaSerializer(context._jsc.sc().conf())
        self._cleaner: Any = context._jsc.sc().cleaner().get()
        self._group = f"headrace-{uuid4().hex}"
        self._said: dict[str, str] = {}
        self._thread = 0
        self._locations: Locations | None = None
        self._first: Any = None
        self._located: Any = None
        self._locate(((),) * slots)

    def run(
        self,
        properties: Mapping[str, str],
        description: str,
        locations: Sequence[Sequence[str]] | None = None,
    ) -> list[bytes]:
        """Runs a job, and returns what its stages have sent to the driver, by slot.

        ``properties`` are local properties of the job, which tasks read from their TaskContext. ``description`` is for
        Spark's UI. ``locations`` are what each slot prefers: executors, as ``executor_location()`` names them on a
        worker, and hosts, which come next. Blocks; raises what Spark raises.
        """
        self._set({**properties, _DESCRIPTION: description, _GROUP: self._group})
        if locations is not None:
            self._locate(tuple(map(tuple, locations)))
        last, shuffled = self._first, []
        for wrapped in self._wrapped[1:]:
            pairs = self._pairwise_rdd(last.rdd()).asJavaPairRDD().partitionBy(self._partitioner)
            # Spark would choose Kryo, which is made anew in each task and has hundreds of classes to learn.
            pairs.rdd().setSerializer(self._serializer)
            shuffled.append(pairs)
            arrived = self._python_rdd.valueOfPair(pairs)
            if self._located is not None:
                arrived = self._located.zip(arrived)
            last = self._stage_tasks(arrived.rdd(), wrapped)
        try:
            records = self._collect_rows(last)
        finally:
            # Else their files stay until the JVM happens to collect what has made them.
            for pairs in shuffled:
                self._cleaner.doCleanupShuffle(pairs.rdd().dependencies().head().shuffleId(), False)  # noqa: FBT003
        return [sent.data for sent in _read_sent(records, self._slots)]

    def _stage_tasks(self, source: Any, wrapped: Any) -> Any:
        """Returns a stage that reads from an RDD, as an RDD of Java's."""
        return self._python_rdd(source, wrapped, False, False).asJavaRDD()  # noqa: FBT003 - Java has no keywords

    def _collect_rows(self, rdd: Any) -> list[bytes]:
        """Runs a job.

        Not by ``collect``: for each job that reads the byte code of Spark's largest classes three times, to find out
        what its functions refer to, 10 ms in all. And the records come by a socket of their own, as pyspark does it:
        what py4j returns comes in packets that wait for each other, 40 ms for a record of some kilobytes.
        """
        found = self._as_scala(rdd.collectAsync().get().iterator())
        served = self._python_rdd.serveIterator(found, "results of a micro-batch")
        with _load_from_socket(served, NoOpSerializer()) as stream:
            return list(stream)

    def cancel(self) -> None:
        """Ends a job that is running; from any thread."""
        self._context.cancelJobGroup(self._group)

    def _set(self, properties: Mapping[str, str]) -> None:
        if self._thread != threading.get_ident():
            # Spark keeps them by thread.
            self._thread, self._said = threading.get_ident(), {}
        for name, value in properties.items():
            if self._said.get(name) != value:
                self._context.setLocalProperty(name, value)
                self._said[name] = value

    def _locate(self, locations: Locations) -> None:
        if locations == self._locations:
            return
        self._first = self._stage_tasks(self._source(1, locations), self._wrapped[0])
        self._located = self._source(self._slots, locations).toJavaRDD() if any(locations) and self._depth > 1 else None
        self._locations = locations

    def _source(self, records: int, locations: Locations) -> Any:
        """Returns an RDD of so many empty records in each slot, which prefers executors or hosts."""
        jvm = self._jvm
        data, preferred = jvm.java.util.ArrayList(), jvm.java.util.HashMap()
        for slot, preferences in enumerate(locations):
            for _ in range(records):
                data.add(b"")
            preferred[slot] = jvm.PythonUtils.toSeq(list(preferences))
        tag = jvm.scala.reflect.ClassTag.apply(jvm.java.lang.Class.forName("[B"))
        return jvm.org.apache.spark.rdd.ParallelCollectionRDD(
            self._context._jsc.sc(),
            jvm.PythonUtils.toSeq(data),
            self._slots,
            jvm.PythonUtils.toScalaMap(preferred),
            tag,
        )


class _Stage:
    """A stage on a worker: calls its function, and passes on data for later stages."""

    def __init__(self, function: StageFunction, stage: int, slots: int, depth: int) -> None:
        self._function = function
        self._stage = stage
        self._slots = slots
        self._depth = depth

    def __call__(self, slot: int, records: Iterable[bytes]) -> Iterator[bytes]:
        own: list[bytes] = []
        passing: dict[int, list[bytes]] = {}
        # To its end: a worker that leaves something unread is not used again.
        for sent in _read_sent(list(records), self._slots if self._stage else 0):
            if sent.stage == self._stage:
                own.append(sent.data)
            else:
                _pack(sent, passing)
        for sent in self._function(slot, own):
            if not self._stage < sent.stage <= self._depth or not 0 <= sent.slot < self._slots:
                message = f"stage {self._stage} sends to slot {sent.slot} of stage {sent.stage}"
                raise ValueError(message)
            _pack(sent, passing)
        sender = _SENDER.pack(slot)
        if self._stage + 1 == self._depth:
            yield b"".join([sender, *(part for to in sorted(passing) for part in passing[to])])
            return
        for to in range(self._slots):
            yield _LONG.pack(to)
            yield b"".join([sender, *passing.get(to, ())])


def _pack(sent: Sent, parts: dict[int, list[bytes]]) -> None:
    parts.setdefault(sent.slot, []).extend((_HEADER.pack(sent.stage, sent.slot, len(sent.data)), sent.data))


def _read_sent(records: Iterable[bytes], slots: int) -> list[Sent]:
    """Returns the data sent, by the sender's slot; raises if a slot is missing."""
    by_sender = {_SENDER.unpack_from(record)[0]: record for record in records if record}
    if len(by_sender) != slots:
        missing = sorted(set(range(slots)) - by_sender.keys())
        message = (
            f"of {slots} slots nothing has come from {missing}: an executor is gone, and Spark runs this part again"
        )
        raise ConnectionError(message)
    return [sent for sender in sorted(by_sender) for sent in _unpack_record(by_sender[sender])]


def _unpack_record(record: bytes) -> Iterator[Sent]:
    place = _SENDER.size
    while place < len(record):
        stage, slot, length = _HEADER.unpack_from(record, place)
        place += _HEADER.size
        yield Sent(stage, slot, record[place : place + length])
        place += length

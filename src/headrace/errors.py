"""Errors, by situation: every error of Headrace is a ``StreamsError`` and says what to do about it."""

from __future__ import annotations

import re
from collections.abc import Iterable
from difflib import get_close_matches
from typing import Any


class StreamsError(Exception):
    """Base of all errors of Headrace: catch it to catch them all.

    ``task_id`` is the task in which the error happened, or None when no task was involved.

    >>> issubclass(TopologyError, StreamsError) and issubclass(TopologyError, ValueError)
    True
    """

    task_id: str | None = None


class TopologyError(StreamsError, ValueError):
    """The topology cannot be built as written. The message names the node and the requirement; change that call.

    >>> print(TopologyError("processor 'split' is already added; give the second one another name"))
    processor 'split' is already added; give the second one another name
    """


class ConfigError(StreamsError, ValueError):
    """A setting is unknown or has a value it cannot have. Correct the setting that the message names."""


class WindowError(StreamsError, ValueError):
    """A window has bounds that no window can have, or two windows of different kinds were compared.

    Windows start at 0 or later and do not end before they start: check the timestamps of the record.
    """


class InvalidTimestampError(StreamsError, ValueError):
    """A record has a negative timestamp, or none, or one that is no int of milliseconds, and that is not accepted.

    Let the producer set timestamps, or choose another extractor: ``LogAndSkipOnInvalidTimestamp`` drops such records,
    ``UsePartitionTimeOnInvalidTimestamp`` and ``WallclockTimestampExtractor`` give them a time.
    """


class SerializationError(StreamsError, ValueError):
    """A key or value cannot be written by its serde, usually because it has another type than the serde's.

    Name the serde where the record is written (``Produced``, ``Grouped``, ``Materialized``, …) or convert the value.
    """


class DeserializationError(StreamsError, ValueError):
    """Bytes of a topic or store are not what the serde reads.

    Check that the serde named in ``Consumed`` is the one the producer used. To skip such records, set
    ``deserialization_exception_handler`` to ``LogAndContinueExceptionHandler()``.
    """


class ProcessingError(StreamsError):
    """A function or processor of the application raised; ``__cause__`` is its exception.

    Fix the function, or skip the records it fails on with ``processing_exception_handler``.

    >>> error = ProcessingError("node 'parse' failed", node="parse", topic="orders", partition=0, offset=41)
    >>> error.node, error.offset
    ('parse', 41)
    """

    def __init__(
        self,
        message: str,
        *,
        node: str | None = None,
        function: str | None = None,
        topic: str | None = None,
        partition: int = -1,
        offset: int = -1,
    ) -> None:
        super().__init__(message)
        self.node = node
        """Name of the node whose code raised."""
        self.function = function
        """The user's function with its file and line, when it is known."""
        self.topic = topic
        """Topic of the record that was being processed; None in a punctuation."""
        self.partition = partition
        """Its partition; -1 in a punctuation."""
        self.offset = offset
        """Its offset; -1 in a punctuation."""


class ProductionError(StreamsError):
    """A record could not be written to its topic; ``__cause__`` is the error of the serde or of the log.

    Name the serde of what is written, and check that the topic exists and takes the record;
    ``production_exception_handler`` decides what happens otherwise.
    """


class RetriableError(StreamsError):
    """A log could not do something now and may be able to do it later: a timeout, a leader that moves. Try again."""


class UncaughtHandlerError(StreamsError):
    """An exception handler itself raised, or answered with something that is not a ``Response``. Fix the handler."""


class UnsupportedOperationError(StreamsError, NotImplementedError):
    """The operation exists in Kafka Streams, but not here, or not for this store or host.

    The message names another way.
    """


class ProcessorStateError(StreamsError):
    """Saving or flushing the state of a task failed; ``__cause__`` says why.

    The application stops before it commits, so nothing is lost: fix the cause and start again.
    """


class LockError(StreamsError):
    """The state directory is in use by another process. Stop that one, or choose another ``state_dir``."""


class StateDirectoryError(StreamsError):
    """The state directory cannot be used: it cannot be written, is damaged, or belongs to another application.

    Do what the message says; the state that is there is left as it is.
    """


class IncompatibleTopologyError(StreamsError, ValueError):
    """The topology has changed in a way that the application's saved state does not fit any more.

    Functions and stateless operators may change; inputs, stores and their sub-topologies may not. Give what the message
    names its former name, go back to the former topology, or start over with ``headrace reset``.
    """


class ChangeRefusedError(StreamsError, ValueError):
    """A change of a stopped application, such as more partitions, is not possible as it was asked for.

    Nothing was changed. The message names what stands in the way, and what would be possible instead.
    """


class IllegalStateError(StreamsError, RuntimeError):
    """The call is not possible in the state that the application is in, such as a second ``start()``.

    The message names the state. An application that has stopped cannot be started again: make a new ``Streams``.
    """


class MissingDependencyError(StreamsError, ImportError):
    """An optional package is needed for this and is not installed. Install it as the message says."""


class InvalidStateStoreError(StreamsError):
    """A store cannot be used now: it is closed, or an iterator of it is. Get the store or the iterator again."""


class UnknownStateStoreError(InvalidStateStoreError):
    """There is no store of that name. Check the name given to ``Materialized`` or to the store's builder."""


class InvalidStateStorePartitionError(InvalidStateStoreError):
    """The store has no such partition, or it is not here. Ask for a partition that the store's metadata lists."""


class StateStoreMigratedError(InvalidStateStoreError):
    """The store has moved to another instance. Find out where it is now and ask there."""


class StateStoreNotAvailableError(InvalidStateStoreError):
    """The store is closed for good on this instance. Find out where it is now and ask there."""


class StreamsNotStartedError(InvalidStateStoreError):
    """Stores can be queried once the application runs. Call ``start()`` first."""


class StreamsRebalancingError(InvalidStateStoreError):
    """The application is starting or recovering. Ask again when its state is RUNNING."""


class StreamsStoppedError(InvalidStateStoreError):
    """The application has stopped, and its stores are closed. Start a new one."""


class MissingSourceTopicError(StreamsError):
    """A topic that the topology reads does not exist. Create it before the application starts."""


class MissingInternalTopicsError(StreamsError):
    """Internal topics of the application are gone, while its state is not.

    Someone deleted them: reset the application to start over. ``topics`` names them.

    >>> MissingInternalTopicsError("repartition topics are missing", topics=["app-by-user-repartition"]).topics
    ('app-by-user-repartition',)
    """

    def __init__(self, message: str, *, topics: Iterable[str] = ()) -> None:
        super().__init__(message)
        self.topics = tuple(topics)


class InternalTopicsAlreadySetupError(StreamsError):
    """Internal topics were to be created, but all of them exist already. Nothing is to be done."""


class MisconfiguredInternalTopicError(StreamsError):
    """An internal topic exists with another partition count or cleanup policy. Reset the application, or repair it."""


class TaskAssignmentError(StreamsError):
    """Tasks cannot be given to workers, for example because the partition counts of a topic are not known yet."""


class TaskCorruptedError(StreamsError):
    """The state of tasks does not fit their input any more; it is wiped and rebuilt. ``tasks`` names them.

    >>> TaskCorruptedError("checkpoint is ahead of the log", tasks=["0_1"]).tasks
    ('0_1',)
    """

    def __init__(self, message: str, *, tasks: Iterable[str] = ()) -> None:
        super().__init__(message)
        self.tasks = tuple(tasks)


class TaskMigratedError(StreamsError):
    """Another instance has taken over this task. It goes on there; nothing is to be done here."""


class TaskIdFormatError(StreamsError, ValueError):
    """A task id is not of the form ``<subtopology>_<partition>``, such as ``0_3``."""


class LogError(StreamsError):
    """The topic log cannot be opened, read or written: a full or broken disk, a directory that is something else.

    What was acknowledged before is still there, and nothing of the failed write is. Do what the message says, then go
    on with the same log.
    """


class TopicError(StreamsError, ValueError):
    """A topic cannot be created or used in this way: its name, a setting, a partition, a record without a key."""


class UnknownTopicError(TopicError, LookupError):
    """There is no topic of that name in the log. Create it, or correct the name. ``topic`` is the name.

    >>> UnknownTopicError("there is no topic 'orders' in the log", topic="orders").topic
    'orders'
    """

    def __init__(self, message: str, *, topic: str = "") -> None:
        super().__init__(message)
        self.topic = topic


class TopicExistsError(TopicError):
    """A topic of that name is there already. Use it, delete it first, or choose another name."""


class OffsetOutOfRangeError(StreamsError, LookupError):
    """The log does not have this offset any more, or not yet; ``begin`` and ``end`` are what it has.

    Records were removed by retention or by hand before they were read, or the topic was deleted and made anew. Start
    from ``begin``, knowing what is missing, or reset the application.
    """

    def __init__(self, message: str, *, begin: int = -1, end: int = -1) -> None:
        super().__init__(message)
        self.begin = begin
        self.end = end


class BatchError(StreamsError):
    """A micro-batch cannot be committed: it is not the next one, or its receipts are not those of this batch.

    Open the journal again, and go on from where the log is; `Streams` does so when it is started again.
    """


class FencedError(StreamsError):
    """Another instance of the application has taken over; what this one was about to commit was not committed.

    Only one instance of an application runs at a time. Stop the other one first if this one is to run; nothing is lost,
    and nothing is there twice.
    """


class JavaNotFoundError(StreamsError, RuntimeError):
    """Spark needs a Java runtime, and none that is new enough was found; the message lists what was.

    Install a JDK 17 or newer and set JAVA_HOME to it, or ``pip install 'headrace[java]'``, which brings one.
    """


class SparkStartError(StreamsError, RuntimeError):
    """Spark's Java process ended before it was ready, or its master cannot be used.

    The message has what Java said: correct the ``spark.*`` setting, the Java option or the memory that it names.
    """


class UnknownTopologyError(StreamsError):
    """There is no topology of that name in this application. Check the name."""


def missing_package(error: ImportError, what: str, extra: str) -> ImportError:
    """Returns the error that says how to get what could not be imported; one about a module of ours stays as it is.

    >>> print(missing_package(ModuleNotFoundError(name="starlette"), "serving", "http"))
    serving needs the package 'starlette', which is not installed; run `pip install 'headrace[http]'`
    """
    package = (error.name or "").partition(".")[0]
    if package == "headrace":
        return error
    message = f"{what} needs the package '{package}', which is not installed; run `pip install 'headrace[{extra}]'`"
    return MissingDependencyError(message)


def did_you_mean(name: str, candidates: Iterable[str], *, cutoff: float = 0.6) -> str:
    """Returns ``"; did you mean 'x'?"`` for the candidate that looks most like ``name``, or an empty string.

    How alike they must be is the ``cutoff``, from 0 to 1.

    >>> did_you_mean("aplication_id", ["application_id", "state_dir"])
    "; did you mean 'application_id'?"
    >>> did_you_mean("zebra", ["application_id", "state_dir"])
    ''
    """
    matches = get_close_matches(name, list(candidates), n=1, cutoff=cutoff)
    return f"; did you mean '{matches[0]}'?" if matches else ""


_SERDE_SAID = re.compile(r"(cannot be (?:read|written)[^:]*): .*", re.DOTALL)


def without_quotes(error: BaseException) -> str:
    """Returns the message of an error for a log: what its causes say may quote a record, so their types stand for them.

    >>> cause = ValueError("alice has no number")
    >>> error = ProcessingError(f"node 'parse' failed: {cause!r}; raised in parse")
    >>> error.__cause__ = cause
    >>> without_quotes(error)
    "node 'parse' failed: ValueError; raised in parse"
    """
    text, cause = str(error), error.__cause__
    while cause is not None:
        for said in (repr(cause), str(cause)):
            text = text.replace(said, type(cause).__name__) if said else text
        if isinstance(cause, SerializationError | DeserializationError):
            # What it says may have been shortened on its way.
            text = _SERDE_SAID.sub(rf"\1: {type(cause).__name__}", text)
        cause = cause.__cause__
    return text


def describe_value(value: Any, limit: int = 60) -> str:
    """Returns a value's type and a short form of it, for messages.

    >>> describe_value(5)
    'int 5'
    >>> describe_value("x" * 100, limit=10)
    "str 'xxxxxx..."
    >>> describe_value(None)
    'None'
    """
    if value is None:
        return "None"
    try:
        text = repr(value)
    except Exception as error:
        # The message is about another failure: a broken repr must not hide it.
        text = f"<repr failed: {error!r}>"
    if len(text) > limit:
        text = text[: limit - 3] + "..."
    return f"{type(value).__name__} {text}"

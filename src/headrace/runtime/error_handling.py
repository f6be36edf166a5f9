"""Failures of one task: calls the exception handler, counts, writes to the dead-letter queue, then skips or raises."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from headrace.arguments.signatures import describe_function, raised_in, users
from headrace.errors import DeserializationError, ProcessingError, ProductionError, StreamsError
from headrace.handlers import ErrorContext, FailedOutput, Origin, Response, Result, decide
from headrace.record import Headers as UserHeaders
from headrace.record import Record
from headrace.runtime.task_state import TaskState
from headrace.topics.log import Headers, Raw
from headrace.topology.nodes import SinkNode


class ErrorHandling:
    """The failures of one task. Each method returns if the record is to be skipped, and raises otherwise."""

    def __init__(self, state: TaskState) -> None:
        self._state = state

    def deserialization_failed(self, node: str, origin: tuple[str, int], raw: Raw, error: Exception) -> None:
        """An input record is not what its serde reads."""
        config = self._state.config
        offset, timestamp_ms, key, value, headers = raw
        context = ErrorContext(
            topic=origin[0],
            partition=origin[1],
            offset=offset,
            headers=UserHeaders(headers),
            key=key,
            value=value,
            node=node,
            task_id=self._state.task_id,
            timestamp_ms=timestamp_ms,
            dead_letter_topic=config.errors_dead_letter_queue_topic_name,
        )
        response = decide(config.deserialization_exception_handler, context, error=error)
        if not self._resumes(response, node):
            message = (
                f"source '{node}': the record at {origin[0]}-{origin[1]} offset {offset} cannot be read: {error}; "
                "check the serdes of this source, or let deserialization_exception_handler skip such records"
            )
            raise DeserializationError(message) from error

    def processing_failed(
        self,
        node: str,
        error: Exception,
        key: Any,
        value: Any,
        timestamp_ms: int,
        headers: Headers,
        functions: Iterable[Any] = (),
    ) -> None:
        """Code at a node raised for a record; ``functions`` are those of the user that the node calls."""
        record = Record(key, value, max(timestamp_ms, 0), UserHeaders(headers))
        response = decide(
            self._state.config.processing_exception_handler,
            self._context(node, timestamp_ms, headers),
            record,
            error=error,
        )
        if not self._resumes(response, node):
            raise self._processing_error(node, error, functions) from error

    def hook_failed(self, node: str, hook: str, error: Exception, function: Any) -> ProcessingError:
        """Returns the error for a hook of the configuration that raised: no handler is asked about those."""
        return self._processing_error(node, error, (function,), f"{hook} failed at node '{node}'")

    def punctuation_failed(self, node: str, error: Exception, now_ms: int) -> None:
        """A punctuation of a node raised."""
        context = self._context(node, now_ms, ())
        response = decide(self._state.config.processing_exception_handler, context, None, error=error)
        if not self._resumes(response, node):
            function = raised_in(error)
            message = (
                f"task {self._state.task_id}: a punctuation of processor '{node}' failed at {now_ms}: "
                f"{_text(error, function)}"
            )
            raise ProcessingError(message, node=node, function=function) from error

    def serialization_failed(
        self,
        sink: SinkNode,
        topic: str,
        origin: str,
        error: Exception,
        key: Any,
        value: Any,
        timestamp_ms: int,
        headers: Headers,
    ) -> None:
        """An output record cannot be written by its serde."""
        output = FailedOutput(topic, key, value, timestamp_ms, UserHeaders(headers), origin=Origin(origin))
        response = decide(
            self._state.config.production_exception_handler,
            self._context(sink.name, timestamp_ms, headers),
            output,
            error=error,
        )
        if not self._resumes(response, sink.name):
            record = "a record of a punctuation" if self._state.origin is None else self._record()
            message = (
                f"sink '{sink.name}': the {origin} of {record} cannot be written to the topic '{topic}': "
                f"{_advice(error, sink, topic, origin)}"
            )
            raise ProductionError(message) from error

    def guard(self, what: str, node: str, action: Callable[[], None]) -> None:
        """Runs the init or close of a processor and says whose it was if it raises."""
        try:
            action()
        except Exception as error:
            text = _text(error, raised_in(error))
            message = f"task {self._state.task_id}: failed to {what} processor '{node}': {text}"
            raise StreamsError(message) from error

    def _record(self) -> str:
        topic, partition = self._state.origin or (None, -1)
        return f"the record at {topic}-{partition} offset {self._state.offset}"

    def _context(self, node: str, timestamp_ms: int, headers: Headers) -> ErrorContext:
        state = self._state
        topic, partition = state.origin or (None, -1)
        _, _, key, value, raw_headers = state.raw_at_hand
        return ErrorContext(
            topic=topic,
            partition=partition,
            offset=state.offset,
            headers=UserHeaders(raw_headers or headers),
            key=key,
            value=value,
            node=node,
            task_id=state.task_id,
            timestamp_ms=timestamp_ms,
            dead_letter_topic=state.config.errors_dead_letter_queue_topic_name,
        )

    def _processing_error(
        self, node: str, error: Exception, functions: Iterable[Any], what: str | None = None
    ) -> ProcessingError:
        state = self._state
        topic, partition = state.origin or (None, -1)
        place = "in a punctuation" if topic is None else f"for {self._record()}"
        function = raised_in(error) or _names(error, functions)
        what = what or f"node '{node}' failed"
        return ProcessingError(
            f"task {state.task_id}: {what} {place}: {_text(error, function)}",
            node=node,
            function=function,
            topic=topic,
            partition=partition,
            offset=state.offset,
        )

    def _resumes(self, response: Response, node: str) -> bool:
        self._state.count_at("errors", node)
        resumes = response.result is Result.RESUME
        # What stops the task takes its outputs with it, but not the dead letters that tell why.
        collector = self._state.collector if resumes else self._state.last_dead_letters
        for dead in response.dead_letters:
            self._state.count_at("dead-letters", dead.topic)
            collector.add(dead.topic, (None, dead.timestamp_ms, dead.key, dead.value, tuple(dead.headers)))
        if resumes:
            self._state.drop()
        return resumes


def _names(error: Exception, functions: Iterable[Any]) -> str | None:
    """Returns the functions that may have raised what no line of Python of the user's raised: written in C, mostly."""
    if isinstance(error, StreamsError):
        # Ours, about the record: the functions had no part in it.
        return None
    return " or ".join(describe_function(function) for function in users(functions)) or None


def _advice(error: Exception, sink: SinkNode, topic: str, origin: str) -> str:
    """Returns what a serde says of what it cannot write, and where the user names another: each once."""
    text = str(error).removeprefix(f"{origin} of topic '{topic}': ")
    option = (sink.serdes_from or "add_sink({}_serde=…)").format(origin)
    general = " in Produced, Grouped or Materialized"
    if text.endswith(("name another serde", general)):
        return f"{text.removesuffix(general)} in {option}"
    return text if "convert it" in text else f"{text}; convert it, or name another serde in {option}"


def _text(error: Exception, function: str | None) -> str:
    """Returns what was raised and where; an error of ours may have named the function already."""
    text = str(error) if isinstance(error, StreamsError) else repr(error)
    return text if function is None or function in text else f"{text}; raised in {function}"

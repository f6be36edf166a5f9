"""Exception handlers: their responses, the dead-letter queue, and late records.

A handler is any callable that returns a ``Response``:

- deserialization: ``(context, error)``; the raw key and value are in the context
- processing: ``(context, record, error)``; the record as the failing node got it
- production: ``(context, output, error)``; ``output.origin`` says whether writing the key, the value, or sending failed

Each must pickle, because tasks run in other processes: use a function of a module, or a frozen dataclass.
"""

from headrace.handlers.builtin import (
    DefaultProductionExceptionHandler,
    LogAndContinueExceptionHandler,
    LogAndContinueProcessingExceptionHandler,
    LogAndFailExceptionHandler,
    LogAndFailProcessingExceptionHandler,
)
from headrace.handlers.context import ErrorContext, FailedOutput, LateRecord, Origin
from headrace.handlers.dead_letters import DeadLetter, dead_letter, dead_letters
from headrace.handlers.response import (
    DeserializationExceptionHandler,
    ProcessingExceptionHandler,
    ProductionExceptionHandler,
    Response,
    Result,
    StreamsUncaughtExceptionHandler,
    StreamThreadExceptionResponse,
    decide,
)

__all__ = [
    "DeadLetter",
    "DefaultProductionExceptionHandler",
    "DeserializationExceptionHandler",
    "ErrorContext",
    "FailedOutput",
    "LateRecord",
    "LogAndContinueExceptionHandler",
    "LogAndContinueProcessingExceptionHandler",
    "LogAndFailExceptionHandler",
    "LogAndFailProcessingExceptionHandler",
    "Origin",
    "ProcessingExceptionHandler",
    "ProductionExceptionHandler",
    "Response",
    "Result",
    "StreamThreadExceptionResponse",
    "StreamsUncaughtExceptionHandler",
    "dead_letter",
    "dead_letters",
    "decide",
]

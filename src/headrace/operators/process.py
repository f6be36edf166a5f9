"""Operators that run a user's processor: the only ones that make a record object per record."""

from __future__ import annotations

from typing import Any

from headrace.operators.base import DECIDED, Edge, Node, operator
from headrace.processor import FixedKeyProcessor, Processor, ValueTransformerWithKey
from headrace.record import FixedKeyRecord, Record
from headrace.record import Headers as UserHeaders
from headrace.topics.log import Headers
from headrace.topology import operations as ops


@operator.register
def _user_processor(operation: ops.UserProcessor, node: Node) -> Edge:
    processor = operation.supplier()
    context = node.processor_context(fixed_key=operation.fixed_key)
    node.on_init(lambda: initialise(processor, context))
    node.on_close(processor.close)
    make: Any = FixedKeyRecord if operation.fixed_key else Record
    fail, run = node.fail, processor.process

    def process(key: Any, value: Any, timestamp_ms: int, headers: Headers) -> None:
        try:
            run(make(key, value, timestamp_ms, UserHeaders(headers)))
        except DECIDED:
            raise
        except Exception as error:
            fail(error, key, value, timestamp_ms, headers)

    return process


def initialise(processor: Any, context: Any) -> None:
    """Calls ``init``; the context is there also if an ``init`` of the user's forgets to call ours."""
    if isinstance(processor, Processor | FixedKeyProcessor | ValueTransformerWithKey):
        processor.context = context
    processor.init(context)

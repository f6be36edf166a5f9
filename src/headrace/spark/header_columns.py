"""Headers of records in columns of data frames: arrays of structs of a text and bytes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from headrace.errors import SerializationError
from headrace.topics.log import Headers


# Any: what a row of Arrow has.
def headers_of(found: Sequence[dict[str, Any] | None] | None, topic: str) -> Headers:
    """Returns the headers of a record, of a row of such a column.

    >>> headers_of([{"key": "trace", "value": b"1"}], "orders"), headers_of(None, "orders")
    ((('trace', b'1'),), ())
    """
    if not found:
        return ()
    headers = []
    for each in found:
        if each is None or each["key"] is None:
            message = f"a record for topic '{topic}' has a header without a name; leave that header out"
            raise SerializationError(message)
        headers.append((each["key"], each["value"]))
    return tuple(headers)

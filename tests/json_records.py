"""Records of tests that are written to topics as JSON."""

import json
from collections.abc import Iterable
from typing import Any

from headrace.topics.log import Output


def json_outputs(records: Iterable[tuple[str | None, Any, int]], partition: int | None = None) -> list[Output]:
    """Returns records of key, JSON value and timestamp as a log takes them."""
    return [
        (
            partition,
            time_ms,
            None if key is None else key.encode(),
            None if value is None else json.dumps(value).encode(),
            (),
        )
        for key, value, time_ms in records
    ]

"""The memory of a task as bytes: what besides the rows of its stores decides later results."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from headrace.errors import ProcessorStateError

_FORMAT = 1


class _Packed(msgspec.Struct, array_like=True):
    format: int
    stream_time_ms: int
    # Any: a cell holds whatever plain value its operator keeps.
    cells: dict[str, Any]
    punctuations: dict[str, tuple[int, bool]]
    partition_times: list[tuple[str, int, int]]
    clocks: dict[str, dict[bytes, bytes]]
    samples: dict[str, list[tuple[int, int]]] = {}


def pack_memory(
    remembered: Mapping[str, Any],
    clocks: Mapping[str, Mapping[bytes, bytes]],
    samples: Mapping[str, Iterable[tuple[int, int]]] | None = None,
) -> bytes:
    """Returns what ``Task.remember`` gives, and the clocks of stores, as bytes.

    ``samples`` are ends of changelogs, each with the time that its store had seen then.

    >>> memory = {"stream_time_ms": 5, "cells": {}, "punctuations": {}, "partition_times": {("in", 0): 5}}
    >>> unpack_memory(pack_memory(memory, {"counts": {b"t": b"5"}}))["partition_times"]
    {('in', 0): 5}
    """
    return msgspec.msgpack.encode(
        _Packed(
            _FORMAT,
            remembered["stream_time_ms"],
            remembered["cells"],
            remembered["punctuations"],
            [(*origin, time_ms) for origin, time_ms in remembered["partition_times"].items()],
            {store: dict(rows) for store, rows in clocks.items()},
            {store: list(found) for store, found in (samples or {}).items()},
        )
    )


def unpack_memory(data: bytes) -> dict[str, Any]:
    """Returns what ``pack_memory`` has packed, for a new ``Task``; besides, ``clocks`` and ``samples``."""
    try:
        packed = msgspec.msgpack.decode(data, type=_Packed)
    except msgspec.ValidationError as error:
        message = f"the record of a task is of another version of Headrace: {error}; run that version, or reset"
        raise ProcessorStateError(message) from error
    return {
        "stream_time_ms": packed.stream_time_ms,
        "cells": packed.cells,
        "punctuations": packed.punctuations,
        "partition_times": {(topic, partition): time_ms for topic, partition, time_ms in packed.partition_times},
        "clocks": packed.clocks,
        "samples": packed.samples,
    }

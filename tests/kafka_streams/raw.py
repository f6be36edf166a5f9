"""Spelling of bytes and answers in the fixture.

Bytes that are printable ASCII are spelled as they are, all others as 0x and hexadecimal digits.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from headrace import VersionedRecord, Windowed


def show(data: bytes | None) -> str | None:
    if data is None:
        return None
    text = data.decode("latin-1")
    plain = all(0x20 <= byte < 0x7F for byte in data) and not text.startswith("0x")
    return text if plain else f"0x{data.hex()}"


def read(shown: str | None) -> bytes | None:
    if shown is None:
        return None
    return bytes.fromhex(shown[2:]) if shown.startswith("0x") else shown.encode("latin-1")


def plain(value: Any) -> Any:
    """Returns an answer of a store as the fixture spells it."""
    if isinstance(value, Windowed):
        return [plain(value.key), value.window.start_ms, value.window.end_ms]
    if isinstance(value, VersionedRecord):
        # Kafka's get() never says until when a version was valid; ours does.
        return [plain(value.value), value.timestamp_ms]
    if isinstance(value, tuple):
        return [plain(part) for part in value]
    if isinstance(value, Iterable) and not isinstance(value, str):
        return [plain(row) for row in value]
    return value

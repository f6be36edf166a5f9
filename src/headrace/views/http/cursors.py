"""Cursors of paged answers: the last row of a page, as an opaque text."""

from __future__ import annotations

import base64
import binascii
import json
from dataclasses import dataclass

from headrace.http.errors import bad_request

_LONGEST = 32_768


@dataclass(frozen=True)
class Cursor:
    """The last row that was given."""

    partition: int
    key: bytes
    """Its key, as it is written."""
    start_ms: int | None = None
    """Its window, if it has one."""
    end_ms: int | None = None
    given: int = 0
    """How many rows of the partition were given before, it included."""

    def pack(self) -> str:
        """Writes it.

        >>> Cursor.unpack(Cursor(1, b"alice").pack())
        Cursor(partition=1, key=b'alice', start_ms=None, end_ms=None, given=0)
        """
        fields = [self.partition, base64.b64encode(self.key).decode(), self.start_ms, self.end_ms, self.given]
        return base64.urlsafe_b64encode(json.dumps(fields, separators=(",", ":")).encode()).decode().rstrip("=")

    @classmethod
    def unpack(cls, text: str) -> Cursor:
        """Reads it; raises for what no page has given."""
        try:
            if len(text) > _LONGEST:
                raise ValueError
            found = json.loads(base64.urlsafe_b64decode(text.encode("ascii") + b"=" * (-len(text) % 4)))
            partition, key, start_ms, end_ms, given = found
            whole = [partition, given, *(each for each in (start_ms, end_ms) if each is not None)]
            if any(type(each) is not int for each in whole) or partition < -1 or given < 0:
                raise ValueError
            return cls(partition, base64.b64decode(key, validate=True), start_ms, end_ms, given)
        except (ValueError, TypeError, binascii.Error, RecursionError):
            message = f"cursor '{text[:40]}' does not come from a page of this store; begin again without one"
            raise bad_request(message, "bad-cursor") from None

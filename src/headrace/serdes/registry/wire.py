"""The first bytes of what is written with a registered schema: a zero, and the schema's number."""

from __future__ import annotations

import struct

_HEADER = struct.Struct(">bI")
SIZE = _HEADER.size


def header(schema_id: int) -> bytes:
    r"""Returns the bytes in front of what is written with a schema.

    >>> header(7)
    b'\x00\x00\x00\x00\x07'
    """
    return _HEADER.pack(0, schema_id)


def schema_id_of(data: bytes) -> int:
    """Returns the number of the schema with which bytes were written.

    >>> schema_id_of(header(7) + b"anything")
    7
    """
    if len(data) < SIZE or data[0] != 0:
        message = "it does not begin with a zero and the number of a registered schema"
        raise ValueError(message)
    number: int = _HEADER.unpack_from(data)[1]
    return number

"""Text and numbers as bytes, and bytes as text and numbers."""

from __future__ import annotations

import base64
import binascii
import struct

from headrace.sql.functions.definitions import overload, scalar
from headrace.sql.types.conversions import text_to_bytes

CATEGORY = "Conversion"
_ORDERS = {"BIG_ENDIAN": ">", "LITTLE_ENDIAN": "<"}


def bytes_of(text: str, encoding: str) -> bytes:
    """Returns the bytes that a text stands for in an encoding: hex, utf8, ascii or base64."""
    match encoding.lower():
        case "hex":
            return binascii.unhexlify(text)
        case "utf8":
            return text.encode()
        case "ascii":
            return text.encode("ascii", "replace")
        case "base64":
            return text_to_bytes(text)
    raise ValueError(_unknown(encoding))


def text_of(data: bytes, encoding: str) -> str:
    """Returns bytes as text in an encoding: hex, with capitals as figures, utf8, ascii or base64."""
    match encoding.lower():
        case "hex":
            return data.hex().upper()
        case "utf8":
            return data.decode(errors="replace")
        case "ascii":
            return data.decode("ascii", "replace")
        case "base64":
            return base64.b64encode(data).decode()
    raise ValueError(_unknown(encoding))


def _unknown(encoding: str) -> str:
    return f"Supported input encodings are: hex, utf8, ascii and base64, got '{encoding}'"


def encoded(text: str, source: str, target: str) -> str:
    """Returns a text of one encoding in another; hex may be read as 0xAB or X'AB', and is written in small letters."""
    source, target = source.lower(), target.lower()
    if source == target:
        message = f"ENCODE needs two encodings that differ, got '{source}' twice"
        raise ValueError(message)
    if source == "base64":
        # What is no figure of it is left out.
        data = base64.b64decode(text.replace("-", "+").replace("_", "/") + "=" * (-len(text) % 4))
    else:
        data = bytes_of(_figures(text) if source == "hex" else text, source)
    return data.hex() if target == "hex" else text_of(data, target)


def _figures(text: str) -> str:
    if text.startswith("0x"):
        return text[2:] if len(text) % 2 == 0 else "0" + text[2:]
    return text[2:-1] if text[:2] in ("x'", "X'") and text.endswith("'") else text


def _unpacked(data: bytes, size: int, form: str, order: str) -> int | float:
    if order not in _ORDERS:
        message = f"Byte order must be BIG_ENDIAN or LITTLE_ENDIAN, got '{order}'"
        raise ValueError(message)
    if len(data) != size:
        message = f"Number of bytes must be equal to {size}, but found {len(data)}"
        raise ValueError(message)
    number: int | float = struct.unpack(_ORDERS[order] + form, data)[0]
    return number


def integer_of(data: bytes, order: str = "BIG_ENDIAN") -> int:
    """Returns the INTEGER in 4 bytes."""
    return int(_unpacked(data, 4, "i", order))


def bigint_of(data: bytes, order: str = "BIG_ENDIAN") -> int:
    """Returns the BIGINT in 8 bytes."""
    return int(_unpacked(data, 8, "q", order))


def double_of(data: bytes, order: str = "BIG_ENDIAN") -> float:
    """Returns the DOUBLE in 8 bytes."""
    return float(_unpacked(data, 8, "d", order))


FUNCTIONS = (
    scalar(
        "encode",
        "Returns a text of one encoding in another: hex, utf8, ascii or base64.",
        "String",
        [("ENCODE('ab', 'utf8', 'hex')", "'6162'")],
        overload("(text STRING, inputEncoding STRING, outputEncoding STRING) STRING", encoded),
    ),
    scalar(
        "to_bytes",
        "Returns the bytes of a text in an encoding: hex, utf8, ascii or base64.",
        "String",
        [("LEN(TO_BYTES('6162', 'hex'))", "2")],
        overload("(text STRING, encoding STRING) BYTES", bytes_of),
    ),
    scalar(
        "from_bytes",
        "Returns bytes as a text in an encoding: hex, utf8, ascii or base64.",
        "String",
        [("FROM_BYTES(TO_BYTES('6162', 'hex'), 'utf8')", "'ab'")],
        overload("(data BYTES, encoding STRING) STRING", text_of),
    ),
    scalar(
        "int_from_bytes",
        "Returns the INTEGER in 4 bytes, in the order BIG_ENDIAN unless LITTLE_ENDIAN is given.",
        CATEGORY,
        [("INT_FROM_BYTES(TO_BYTES('00000102', 'hex'))", "258")],
        overload("(data BYTES) INT", integer_of),
        overload("(data BYTES, order STRING) INT", integer_of),
    ),
    scalar(
        "bigint_from_bytes",
        "Returns the BIGINT in 8 bytes, in the order BIG_ENDIAN unless LITTLE_ENDIAN is given.",
        CATEGORY,
        [("BIGINT_FROM_BYTES(TO_BYTES('0100000000000000', 'hex'), 'LITTLE_ENDIAN')", "CAST(1 AS BIGINT)")],
        overload("(data BYTES) BIGINT", bigint_of),
        overload("(data BYTES, order STRING) BIGINT", bigint_of),
    ),
    scalar(
        "double_from_bytes",
        "Returns the DOUBLE in 8 bytes, in the order BIG_ENDIAN unless LITTLE_ENDIAN is given.",
        CATEGORY,
        [("DOUBLE_FROM_BYTES(TO_BYTES('3ff0000000000000', 'hex'))", "1E0")],
        overload("(data BYTES) DOUBLE", double_of),
        overload("(data BYTES, order STRING) DOUBLE", double_of),
    ),
)

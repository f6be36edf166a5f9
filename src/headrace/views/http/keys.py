"""Keys in URLs, parsed by the key serde."""

from __future__ import annotations

import json
from typing import Any
from uuid import UUID

from headrace.errors import StreamsError
from headrace.http.errors import RequestError, bad_request
from headrace.serdes import Serde
from headrace.serdes.primitives import (
    BooleanSerde,
    BytesSerde,
    DoubleSerde,
    FloatSerde,
    IntegerSerde,
    LongSerde,
    ShortSerde,
    StringSerde,
    UuidSerde,
)


def read_key(text: str, serde: Serde[Any], what: str = "key") -> Any:
    """Returns the key that a text stands for: text as it is, a number, a UUID, and for all other serdes JSON.

    >>> from headrace.serdes import Serdes
    >>> read_key("7", Serdes.string()), read_key("7", Serdes.long()), read_key('{"id": 7}', Serdes.json())
    ('7', 7, {'id': 7})
    >>> read_key("seven", Serdes.long())
    Traceback (most recent call last):
    ...
    headrace.http.errors.RequestError: key 'seven' is not one of LongSerde(): invalid literal for int() with ...
    """
    try:
        key = _read(text, serde)
        # Also what can be parsed may be no key: a number of 64 bits where 32 are written, for instance.
        serde.serializer("", is_key=True)(key)
    except (ValueError, TypeError, OverflowError, StreamsError, RecursionError) as error:
        raise _bad_key(text, serde, what, error) from error
    return key


def _read(text: str, serde: Serde[Any]) -> Any:
    match serde:
        case StringSerde():
            return text
        case ShortSerde() | IntegerSerde() | LongSerde():
            return int(text)
        case FloatSerde() | DoubleSerde():
            return float(text)
        case BooleanSerde():
            return {"true": True, "false": False}[text.lower()] if text.lower() in ("true", "false") else text
        case UuidSerde():
            return UUID(text)
        case BytesSerde():
            return text.encode()
    data = text.encode()
    try:
        # Typed JSON is read into its type by its own serde.
        return serde.deserializer("", is_key=True)(data)
    except StreamsError:
        return json.loads(text)


def _bad_key(text: str, serde: Serde[Any], what: str, error: Exception) -> RequestError:
    shown = text if len(text) <= 60 else f"{text[:60]}…"
    return bad_request(f"{what} '{shown}' is not one of {serde!r}: {error}", "bad-key")

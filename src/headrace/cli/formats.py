"""Formats of keys and values on the command line: each is a serde with a spelling in text and in JSON."""

from __future__ import annotations

import binascii
import math
from base64 import b64decode, b64encode
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import click
from click.shell_completion import CompletionItem

from headrace.arguments.durations import MAX_LONG
from headrace.errors import describe_value, did_you_mean
from headrace.serdes import Serde, Serdes, SessionWindowedSerde, TimeWindowedSerde, TypedJsonSerde
from headrace.windows import SessionWindow, TimeWindow, Windowed

_read_json = Serdes.json().deserializer("", is_key=False)
_write_json = Serdes.json().serializer("", is_key=False)


@dataclass(frozen=True)
class Format:
    """A serde, and how its values are written by people (``parse``) and in JSON.

    >>> long = format_named("long")
    >>> long.text_to_bytes("5"), long.json_to_bytes(5), long.bytes_to_json(bytes(8))
    (b'\\x00\\x00\\x00\\x00\\x00\\x00\\x00\\x05', b'\\x00\\x00\\x00\\x00\\x00\\x00\\x00\\x05', 0)
    """

    name: str
    serde: Serde[Any]
    # Any: what the serde reads and writes.
    parse: Callable[[str], Any]
    from_json: Callable[[Any], Any]
    to_json: Callable[[Any], Any]

    def text_to_bytes(self, text: str, *, is_key: bool = False) -> bytes | None:
        """Writes typed text; raises a ValueError if it is not of this format."""
        value = self.parse(text)
        return None if value is None else self.serde.serializer("", is_key=is_key)(value)

    def json_to_bytes(self, value: Any, *, is_key: bool = False) -> bytes | None:
        """Writes a value of JSON; raises a ValueError for one that is not of this format."""
        return None if value is None else self.serde.serializer("", is_key=is_key)(self.from_json(value))

    def bytes_to_json(self, data: bytes | None, *, topic: str = "", is_key: bool = False) -> Any:
        """Reads bytes; raises a DeserializationError for those that are not of this format."""
        return None if data is None else self.to_json(self.serde.deserializer(topic, is_key=is_key)(data))

    def printer(self, topic: str, *, is_key: bool) -> Callable[[bytes], bytes]:
        """Returns the function that turns bytes into what is printed on a line."""
        read, to_json = self.serde.deserializer(topic, is_key=is_key), self.to_json
        if self.name == "json":
            # Checked by reading, printed as it is: unless somebody has written it over several lines.
            return lambda data: data if (read(data), b"\n" not in data)[1] else _write_json(read(data))

        def to_line(data: bytes) -> bytes:
            value = to_json(read(data))
            return value.encode() if isinstance(value, str) else _write_json(value)

        return to_line


def json_bytes(value: Any) -> bytes:
    """Writes one line of JSON."""
    return _write_json(value)


def parse_json(data: bytes) -> Any:
    """Reads one line of JSON; raises a ValueError."""
    return _read_json(data)


def _same(value: Any) -> Any:
    return value


def _of_type(*types: type) -> Callable[[Any], Any]:
    def check(value: Any) -> Any:
        # bool is an int to Python, but nobody means it.
        if not isinstance(value, types) or (isinstance(value, bool) and bool not in types):
            required = " or ".join(each.__name__ for each in types)
            message = f"it must be {required}, found {describe_value(value)}"
            raise ValueError(message)
        return value

    return check


def _number(value: Any) -> float:
    return float(value if isinstance(value, str) else _of_type(int, float)(value))


def _finite(value: float) -> float | str:
    # JSON has no NaN and no infinity.
    return value if math.isfinite(value) else str(value)


def _boolean(text: str) -> bool:
    found = {"true": True, "false": False}.get(text.strip().lower())
    if found is None:
        message = f"it must be true or false, found '{text}'"
        raise ValueError(message)
    return found


def _from_base64(text: Any) -> bytes:
    try:
        return b64decode(_of_type(str)(text), validate=True)
    except binascii.Error as error:
        message = f"it must be base64: {error}"
        raise ValueError(message) from None


def _to_base64(data: bytes) -> str:
    return b64encode(data).decode()


def _parsed_json(text: str) -> Any:
    return _read_json(text.encode())


_integer, _text = _of_type(int), _of_type(str)

_PLAIN = {
    each.name: each
    for each in (
        Format("string", Serdes.string(), _same, _text, _same),
        Format("json", Serdes.json(), _parsed_json, _same, _same),
        Format("long", Serdes.long(), int, _integer, _same),
        Format("integer", Serdes.integer(), int, _integer, _same),
        Format("short", Serdes.short(), int, _integer, _same),
        Format("double", Serdes.double(), float, _number, _finite),
        Format("float", Serdes.float(), float, _number, _finite),
        Format("boolean", Serdes.boolean(), _boolean, _of_type(bool), _same),
        Format("uuid", Serdes.uuid(), UUID, lambda text: UUID(_text(text)), str),
        Format("bytes", Serdes.bytes(), _from_base64, _from_base64, _to_base64),
    )
}
_TIME, _SESSION = "windowed-", "session-"
NAMES = tuple(_PLAIN)


def format_named(name: str, window_size_ms: int | None = None) -> Format:
    """Returns a format; ``windowed-`` and ``session-`` before a name make keys within windows of it.

    >>> key = format_named("windowed-string", 10)
    >>> key.bytes_to_json(key.json_to_bytes({"key": "a", "start_ms": 20, "end_ms": 30}))
    {'key': 'a', 'start_ms': 20, 'end_ms': 30}
    """
    for prefix in (_TIME, _SESSION):
        if name.startswith(prefix):
            inner = _PLAIN[name.removeprefix(prefix)]
            if prefix == _TIME:
                return windowed(inner, TimeWindowedSerde(inner.serde, window_size_ms or MAX_LONG), TimeWindow)
            return windowed(inner, SessionWindowedSerde(inner.serde), SessionWindow)
    return _PLAIN[name]


def windowed(inner: Format, serde: Serde[Any], window: type[TimeWindow | SessionWindow]) -> Format:
    """Returns the format of keys within windows: objects with ``key``, ``start_ms`` and ``end_ms``."""

    def from_json(value: Any) -> Windowed[Any]:
        if not isinstance(value, Mapping) or not {"key", "start_ms"} <= value.keys():
            message = f'it must be {{"key": …, "start_ms": …, "end_ms": …}}, found {value!r}'
            raise ValueError(message)
        start_ms = _integer(value["start_ms"])
        return Windowed(inner.from_json(value["key"]), window(start_ms, _integer(value.get("end_ms", MAX_LONG))))

    def to_json(value: Windowed[Any]) -> dict[str, Any]:
        bounds = {"start_ms": value.window.start_ms, "end_ms": value.window.end_ms}
        if bounds["end_ms"] == MAX_LONG:
            # The topic does not say it, and nobody has told the size.
            del bounds["end_ms"]
        return {"key": inner.to_json(value.key), **bounds}

    prefix = _SESSION if window is SessionWindow else _TIME
    return Format(prefix + inner.name, serde, lambda text: from_json(_parsed_json(text)), from_json, to_json)


def format_of(serde: Serde[Any]) -> Format | None:
    """Returns the format in which values of a serde are written, None for a serde of somebody's own.

    >>> format_of(Serdes.time_windowed(Serdes.string(), 10)).name
    'windowed-string'
    """
    if isinstance(serde, TimeWindowedSerde | SessionWindowedSerde):
        inner = None if serde.inner is None else format_of(serde.inner)
        kind = TimeWindow if isinstance(serde, TimeWindowedSerde) else SessionWindow
        return None if inner is None else windowed(inner, serde, kind)
    if isinstance(serde, TypedJsonSerde):
        return _PLAIN["json"]
    return next((each for each in _PLAIN.values() if each.serde == serde), None)


def likely_format(data: bytes) -> str:
    """Guesses which format somebody should try for these bytes.

    >>> likely_format(bytes(8)), likely_format(b'{"a": 1}'), likely_format(b"hello")
    ('long', 'json', 'string')
    """
    try:
        text = data.decode()
        if text.isprintable():
            try:
                _read_json(data)
            except ValueError:
                return "string"
            return "json"
    except UnicodeDecodeError:
        pass
    return {8: "long", 4: "integer"}.get(len(data), "bytes")


class FormatName(click.ParamType[str]):
    """The name of a format, for options."""

    name = "format"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        text = str(value)
        if text.removeprefix(_TIME).removeprefix(_SESSION) in _PLAIN:
            return text
        choices = ", ".join(NAMES)
        problem = f"there is no format '{text}'{did_you_mean(text, NAMES)}; formats are {choices}, and for keys within "
        self.fail(problem + "windows windowed-string, session-string and so on", param, ctx)

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        names = [prefix + name for prefix in ("", _TIME, _SESSION) for name in NAMES]
        return [CompletionItem(name) for name in names if name.startswith(incomplete)]

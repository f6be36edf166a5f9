"""Serdes of windowed keys, in the layout that Kafka Streams writes to topics: the key's bytes, then the window."""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any, TypeVar

from headrace.arguments.durations import MAX_LONG
from headrace.arguments.values import serde
from headrace.errors import ConfigError, WindowError, describe_value
from headrace.serdes.base import BaseSerde, Serde, bad_bytes, place, wrong_type
from headrace.windows.custom import Windows
from headrace.windows.window import SessionWindow, TimeWindow, Window, Windowed

T = TypeVar("T")
_START = struct.Struct(">q")
_START_AND_NUMBER = struct.Struct(">qI")
_FIRST = bytes(4)
_END_AND_START = struct.Struct(">qq")


class _WindowedSerde(BaseSerde[Windowed[T]]):
    inner: Serde[T] | None

    @property
    def identity(self) -> bool:
        """As the inner serde."""
        return self.inner is not None and self.inner.identity

    @property
    def immutable(self) -> bool:
        """As the inner serde."""
        return self.inner is not None and self.inner.immutable

    def base_key_serializer(self, topic: str) -> Callable[[Windowed[T]], bytes]:
        """Returns the function that writes a key without its window: the bytes that choose the partition.

        >>> from headrace.serdes import Serdes
        >>> Serdes.session_windowed(Serdes.string()).base_key_serializer("t")(Windowed("a", SessionWindow(0, 5)))
        b'a'
        """
        serialize_key = _known(self).serializer(topic, is_key=True)
        return lambda windowed: serialize_key(windowed.key)

    def parts_serializer(self, topic: str) -> Callable[[Windowed[T]], tuple[bytes, bytes]]:
        """Returns the function that writes a key once without its window and once with it.

        It may fail with any exception for what is no windowed key; the serializer says what is wrong then.
        """
        raise NotImplementedError

    def _plain_serializer(self, topic: str) -> Callable[[T], bytes]:
        inner = _known(self)
        fast: Callable[[T], bytes] | None = getattr(inner, "fast_serializer", _no_function)(is_key=True)
        return inner.serializer(topic, is_key=True) if fast is None else fast


@dataclass(frozen=True)
class TimeWindowedSerde(_WindowedSerde[T]):
    r"""Keys of time windows: the inner key, then the window's start.

    The window's end is not written, so the reader must know the size, or the windows. With ``changelog`` keys are as in
    the changelog topic of a window store, where a number follows: it tells apart values of one window if the store
    retains duplicates. It is not part of the key, and written as 0, the number in all other stores.

    >>> from headrace.serdes import Serdes
    >>> serde = TimeWindowedSerde(Serdes.string(), window_size_ms=10)
    >>> serde.serialize(Windowed("a", TimeWindow(20, 30)))
    b'a\x00\x00\x00\x00\x00\x00\x00\x14'
    >>> serde.deserialize(_)
    [a@20/30]
    >>> changelog = TimeWindowedSerde(Serdes.string(), window_size_ms=10, changelog=True)
    >>> changelog.deserialize(b"a" + (20).to_bytes(8, "big") + (0).to_bytes(4, "big"))
    [a@20/30]
    """

    inner: Serde[T] | None = None
    """Serde of the key without its window; None leaves it to the application's default."""
    window_size_ms: int = MAX_LONG
    """Length of a window; for sliding windows the time difference."""
    changelog: bool = field(default=False, kw_only=True)
    """Whether keys are those of a window store's changelog, where a number of four bytes follows the start."""
    windows: Windows | None = field(default=None, kw_only=True)
    """Windows of one's own, which know where a window ends; then the size is not used."""

    def __post_init__(self) -> None:
        serde(self.inner, "time_windowed serde: the serde of the plain key", error=ConfigError)
        if type(self.window_size_ms) is not int or self.window_size_ms <= 0:
            given: object = self.window_size_ms
            remedy = f"; write {given // timedelta(milliseconds=1)}" if isinstance(given, timedelta) else ""
            message = (
                "time_windowed serde: window_size_ms must be a whole number of milliseconds, at least 1, got "
                f"{describe_value(given)}{remedy}"
            )
            raise ConfigError(message)

    @property
    def identity(self) -> bool:
        """As the inner serde; but in a changelog, keys of different numbers are read as equal ones."""
        return not self.changelog and super().identity

    def resolve(self, default: Serde[Any]) -> TimeWindowedSerde[T]:
        """Returns this serde with ``default`` for the plain key, unless it has its own.

        >>> from headrace.serdes import Serdes
        >>> TimeWindowedSerde().resolve(Serdes.string()).inner
        StringSerde(encoding='utf-8')
        """
        return self if self.inner is not None else replace(self, inner=default)

    def serializer(self, topic: str, *, is_key: bool) -> Callable[[Windowed[T]], bytes]:
        where, pack, tail = place(topic, is_key=is_key), _START.pack, _FIRST if self.changelog else b""
        serialize_key = _known(self).serializer(topic, is_key=is_key)

        def serialize(windowed: Windowed[T]) -> bytes:
            if type(windowed) is not Windowed:
                raise wrong_type(where, "time_windowed", "Windowed", windowed)
            return serialize_key(windowed.key) + pack(windowed.window.start_ms) + tail

        return serialize

    def parts_serializer(self, topic: str) -> Callable[[Windowed[T]], tuple[bytes, bytes]]:
        pack, tail, serialize_key = _START.pack, _FIRST if self.changelog else b"", self._plain_serializer(topic)

        def serialize(windowed: Windowed[T]) -> tuple[bytes, bytes]:
            if type(windowed) is not Windowed:
                raise TypeError
            plain = serialize_key(windowed.key)
            return plain, plain + pack(windowed.window.start_ms) + tail

        return serialize

    def deserializer(self, topic: str, *, is_key: bool) -> Callable[[bytes], Windowed[T]]:
        where, layout = place(topic, is_key=is_key), _START_AND_NUMBER if self.changelog else _START
        unpack, length, window_at = layout.unpack, layout.size, self._window_at()
        deserialize_key = _known(self).deserializer(topic, is_key=is_key)

        def deserialize(data: bytes) -> Windowed[T]:
            try:
                window = window_at(unpack(data[-length:])[0])
            except (struct.error, TypeError, WindowError) as error:
                raise bad_bytes(where, "time_windowed", f"a key and {length} bytes of window start", data) from error
            return Windowed(deserialize_key(data[:-length]), window)

        return deserialize

    def _window_at(self) -> Callable[[int], Window]:
        if self.windows is not None:
            return self.windows.window_at
        size_ms = self.window_size_ms
        return lambda start_ms: TimeWindow(start_ms, min(start_ms + size_ms, MAX_LONG))


@dataclass(frozen=True)
class SessionWindowedSerde(_WindowedSerde[T]):
    """Keys of sessions: the inner key, then the session's end, then its start.

    >>> from headrace.serdes import Serdes
    >>> serde = SessionWindowedSerde(Serdes.string())
    >>> serde.deserialize(serde.serialize(Windowed("a", SessionWindow(20, 30))))
    [a@20/30]
    """

    inner: Serde[T] | None = None
    """Serde of the key without its session; None leaves it to the application's default."""

    def __post_init__(self) -> None:
        serde(self.inner, "session_windowed serde: the serde of the plain key", error=ConfigError)

    def resolve(self, default: Serde[Any]) -> SessionWindowedSerde[T]:
        """Returns this serde with ``default`` for the plain key, unless it has its own.

        >>> from headrace.serdes import Serdes
        >>> SessionWindowedSerde().resolve(Serdes.string()).inner
        StringSerde(encoding='utf-8')
        """
        return self if self.inner is not None else replace(self, inner=default)

    def serializer(self, topic: str, *, is_key: bool) -> Callable[[Windowed[T]], bytes]:
        where, pack = place(topic, is_key=is_key), _END_AND_START.pack
        serialize_key = _known(self).serializer(topic, is_key=is_key)

        def serialize(windowed: Windowed[T]) -> bytes:
            if type(windowed) is not Windowed:
                raise wrong_type(where, "session_windowed", "Windowed", windowed)
            window = windowed.window
            return serialize_key(windowed.key) + pack(window.end_ms, window.start_ms)

        return serialize

    def parts_serializer(self, topic: str) -> Callable[[Windowed[T]], tuple[bytes, bytes]]:
        pack, serialize_key = _END_AND_START.pack, self._plain_serializer(topic)

        def serialize(windowed: Windowed[T]) -> tuple[bytes, bytes]:
            if type(windowed) is not Windowed:
                raise TypeError
            plain, window = serialize_key(windowed.key), windowed.window
            return plain, plain + pack(window.end_ms, window.start_ms)

        return serialize

    def deserializer(self, topic: str, *, is_key: bool) -> Callable[[bytes], Windowed[T]]:
        where, unpack = place(topic, is_key=is_key), _END_AND_START.unpack
        deserialize_key = _known(self).deserializer(topic, is_key=is_key)

        def deserialize(data: bytes) -> Windowed[T]:
            try:
                end_ms, start_ms = unpack(data[-16:])
                window = SessionWindow(start_ms, end_ms)
            except (struct.error, TypeError, WindowError) as error:
                raise bad_bytes(where, "session_windowed", "a key and 16 bytes of session", data) from error
            return Windowed(deserialize_key(data[:-16]), window)

        return deserialize


def _no_function(*, is_key: bool) -> None:
    """Stands in for what a serde does not have."""


def _known(serde: _WindowedSerde[T]) -> Serde[T]:
    if serde.inner is None:
        message = f"{type(serde).__name__} has no serde for its plain keys; give it one, or call resolve(default) first"
        raise ConfigError(message)
    return serde.inner

"""Rows of a key-value store as objects, between the store and its engine."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from headrace.state.engines.changes import Changes
from headrace.state.engines.engine import Engine
from headrace.state.rows.codec import Codec

MISSING: Any = object()
CLEAN_BYTES = 16 * 1024 * 1024
"""How many bytes of rows a store remembers that it has read or written before."""


class RowBuffer:
    """Keeps rows that were written (``dirty``) and rows that are the same in the engine (``clean``).

    Keys are kept as objects where the key serde has ``identity``, else as bytes; rows as objects where the value serde
    is ``immutable``, else as bytes, so that a change of an object that was handed out never reaches the store. In both
    dicts None is a row that is not there. Both dicts stay the same objects as long as the buffer lives.
    """

    __slots__ = ("_clean_bytes", "clean", "dirty", "engine", "get", "keys", "put", "rows")

    get: Callable[[Any], Any]
    """Returns the row of a key, or None."""
    put: Callable[[Any, Any], None]
    """Sets the row of a key; None deletes it."""

    def __init__(self, engine: Engine, keys: Codec, rows: Codec, *, write_through: bool = False) -> None:
        self.engine = engine
        self.keys = keys
        self.rows = rows
        self.dirty: dict[Any, Any] = {}
        self.clean: dict[Any, Any] = {}
        self._clean_bytes = 0
        if write_through:
            self.get, self.put = self._write_through()
        elif keys.keep and rows.keep:
            self.get, self.put = self._objects()
        else:
            self.get, self.put = self._mixed()

    def _objects(self) -> tuple[Callable[[Any], Any], Callable[[Any, Any], None]]:
        dirty, clean, remember = self.dirty, self.clean, self._remember
        encode_key, decode, read = self.keys.encode, self.rows.decode, self.engine.get

        def get(key: Any) -> Any:
            row = dirty.get(key, MISSING)
            if row is not MISSING:
                return row
            row = clean.get(key, MISSING)
            if row is not MISSING:
                return row
            # The same as load, without the calls: each key of a batch comes here once.
            name = encode_key(key)
            data = read(name)
            if data is None:
                row = None
                remember(len(name))
            else:
                row = decode(data)
                remember(len(name) + len(data))
            clean[key] = row
            return row

        return get, dirty.__setitem__

    def _mixed(self) -> tuple[Callable[[Any], Any], Callable[[Any, Any], None]]:
        dirty, clean, load = self.dirty, self.clean, self.load
        encode_key, encode, decode = self.keys.encode, self.rows.encode, self.rows.decode
        keep_keys, keep_rows = self.keys.keep, self.rows.keep

        def get(key: Any) -> Any:
            name = key if keep_keys else encode_key(key)
            row = dirty.get(name, MISSING)
            if row is MISSING:
                row = clean.get(name, MISSING)
                if row is MISSING:
                    row = load(name)
            return row if keep_rows or row is None else decode(row)

        def put(key: Any, row: Any) -> None:
            dirty[key if keep_keys else encode_key(key)] = row if keep_rows or row is None else encode(row)

        return get, put

    def _write_through(self) -> tuple[Callable[[Any], Any], Callable[[Any, Any], None]]:
        engine, encode_key, encode, decode = self.engine, self.keys.encode, self.rows.encode, self.rows.decode

        def get(key: Any) -> Any:
            data = engine.get(encode_key(key))
            return None if data is None else decode(data)

        def put(key: Any, row: Any) -> None:
            if row is None:
                engine.delete(encode_key(key))
            else:
                engine.put(encode_key(key), encode(row))

        return get, put

    def load(self, name: Any) -> Any:
        """Reads a row from the engine and remembers it; ``name`` is the key as the dicts have it."""
        key = self.keys.encode(name) if self.keys.keep else name
        data = self.engine.get(key)
        row = data if data is None or not self.rows.keep else self.rows.decode(data)
        self._remember(len(key) + (0 if data is None else len(data)))
        self.clean[name] = row
        return row

    def _remember(self, size: int) -> None:
        self._clean_bytes += size
        if self._clean_bytes > CLEAN_BYTES:
            self.clean.clear()
            self._clean_bytes = size

    def flush(self) -> None:
        """Writes the dirty rows to the engine."""
        dirty = self.dirty
        if not dirty:
            return
        keys, rows = self.keys.encode_all(dirty) if self.keys.keep else dirty, dirty.values()
        written: dict[bytes, bytes | None]
        if not self.rows.keep:
            written = dict(zip(keys, rows, strict=True))
        elif None in rows:
            encode = self.rows.encode
            data = [None if row is None else encode(row) for row in rows]
            written = dict(zip(keys, data, strict=True))
        else:
            written = dict(zip(keys, self.rows.encode_all(rows), strict=True))
        self.engine.apply(Changes(rows=written))
        size = sum(map(len, written)) + sum(map(len, filter(None, written.values())))
        self._remember(size)
        self.clean.update(dirty)
        dirty.clear()

    def forget(self) -> None:
        """Drops everything that is buffered."""
        self.dirty.clear()
        self.clean.clear()
        self._clean_bytes = 0

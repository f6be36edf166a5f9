"""Format protocol: the columns that a format can hold, and the serdes of rows and keys."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar

from headrace.errors import DeserializationError, SerializationError, describe_value
from headrace.serdes.base import BaseSerde, Place, place
from headrace.sql.errors import SqlStatementError
from headrace.sql.types import SqlArray, SqlBaseType, SqlMap, SqlStruct, SqlType
from headrace.sql.types.schema import Column, Namespace

if TYPE_CHECKING:
    from headrace.serdes.registry.registry import Schema, SchemaRegistry

Row = Sequence[Any]
"""Values of the columns, in the order of the columns. Any: a column holds what its type says."""
ReadRow = Callable[[bytes], list[Any] | None]
"""Reads the columns from bytes; None if the bytes stand for no row at all."""
WriteRow = Callable[[Row], bytes | None]
"""Writes the columns; None if nothing is written, as for the null of a single column that is not wrapped."""

_IMMUTABLE = frozenset(SqlBaseType) - {SqlBaseType.ARRAY, SqlBaseType.MAP, SqlBaseType.STRUCT}
# 0.0 and -0.0 are equal and not written alike.
_EXACT = _IMMUTABLE - {SqlBaseType.DOUBLE}


@dataclass(frozen=True, slots=True)
class FormatOptions:
    """Options of a format that a statement may give beyond its name."""

    wrapped: bool = True
    """Whether a single column is a field of an object; several columns always are."""
    delimiter: str = ","
    """The character between the columns, or SPACE or TAB."""
    schema_full_name: str | None = None
    """Full name of the record or message in the registered schema."""
    nullable_representation: str | None = None
    """OPTIONAL or WRAPPER: how Protobuf tells null from 0; None: it does not."""
    schema_id: int | None = None
    """The schema with which rows are written, instead of one made of the columns."""
    registry: SchemaRegistry | None = None
    """Where the schemas are; formats without schemas do not ask for it."""


@dataclass(frozen=True)
class Format:
    """A format of rows, by name: a rule without any state, so that two of one class are equal."""

    name: ClassVar[str]
    wraps_singles: ClassVar[bool] = False
    """Whether WRAP_SINGLE_VALUE may be true."""
    unwraps_singles: ClassVar[bool] = False
    """Whether WRAP_SINGLE_VALUE may be false; single key columns are then not wrapped."""
    infers_schemas: ClassVar[bool] = False
    """Whether columns can be taken from a registered schema."""
    properties: ClassVar[tuple[str, ...]] = ()
    """Which of delimiter, fullSchemaName, schemaId and nullableRepresentation a statement may give."""

    def check(self, columns: tuple[Column, ...], options: FormatOptions | None = None) -> None:
        """Raises ``SqlStatementError`` if the format cannot hold these columns."""

    def check_properties(self, given: Sequence[str]) -> None:
        """Raises if a property is given that the format does not have.

        >>> from headrace.sql.formats import format_named
        >>> format_named("JSON").check_properties(["delimiter"])
        Traceback (most recent call last):
        ...
        headrace.sql.errors.SqlStatementError: JSON does not support the following configs: [delimiter]
        """
        strange = [name for name in given if name not in self.properties]
        if strange:
            message = f"{self.name} does not support the following configs: [{', '.join(strange)}]"
            raise SqlStatementError(message)

    def serde(self, columns: tuple[Column, ...], options: FormatOptions | None = None) -> BaseSerde[list[Any]]:
        """Returns the serde of rows: lists of the columns' values.

        A serializer may return None for the null of a column that is not wrapped, and a deserializer None for bytes
        that say null: both are how a topic says it. Rows that a serde has made or was given must not be changed: stores
        keep them.
        """
        return RowSerde(self, columns, options or FormatOptions())

    def key_serde(self, columns: tuple[Column, ...], options: FormatOptions | None = None) -> BaseSerde[Any]:
        """Returns the serde of keys: tuples of the key columns' values."""
        return KeySerde(self, columns, options or FormatOptions())

    def key_options(self, columns: tuple[Column, ...], options: FormatOptions) -> FormatOptions:
        """Returns the options with the wrapping that keys have: a single column is not wrapped if that is possible."""
        return replace(options, wrapped=not self.unwraps_singles)

    def reader(self, columns: tuple[Column, ...], options: FormatOptions, target: Target) -> ReadRow:
        """Returns the function that reads rows."""
        raise NotImplementedError

    def writer(self, columns: tuple[Column, ...], options: FormatOptions, target: Target) -> WriteRow:
        """Returns the function that writes rows."""
        raise NotImplementedError

    def fast_reader(self, columns: tuple[Column, ...], options: FormatOptions) -> ReadRow | None:
        """Returns the reader if the topic does not matter to it, else None; what it raises need not explain itself."""
        return None

    def fast_key_reader(
        self, columns: tuple[Column, ...], options: FormatOptions
    ) -> Callable[[bytes], tuple[Any, ...] | None] | None:
        """Returns a function that reads the same keys without explaining errors, or None."""
        read = self.fast_reader(columns, options)
        if read is None:
            return None

        def read_key(data: bytes) -> tuple[Any, ...] | None:
            row = read(data)
            return None if row is None else tuple(row)

        return read_key

    def fast_writer(self, columns: tuple[Column, ...], options: FormatOptions) -> WriteRow | None:
        """Returns the writer if the topic does not matter to it, else None; what it raises need not explain itself."""
        return None

    def infer(self, schema: Schema, options: FormatOptions, namespace: Namespace) -> tuple[Column, ...]:
        """Returns the columns that a registered schema describes."""
        message = f"{self.name} does not keep schemas in the registry"
        raise SqlStatementError(message)

    def names_in(self, schema: Schema, options: FormatOptions) -> tuple[str, ...]:
        """Returns the names of what a registered schema defines, if it can be several things; else nothing."""
        return ()

    def schema_of(self, columns: tuple[Column, ...], options: FormatOptions, namespace: Namespace) -> Schema | None:
        """Returns the schema that is registered for these columns; None if the format has none."""
        return None


@dataclass(frozen=True, slots=True)
class Target:
    """Topic and side, key or value, that a row is read from or written to."""

    topic: str
    is_key: bool
    """Whether it is the key of the record, as the registry's subjects tell them apart."""

    @property
    def place(self) -> Place:
        """What messages begin with."""
        return place(self.topic, is_key=self.is_key)


@dataclass(frozen=True)
class RowSerde(BaseSerde[list[Any]]):
    """The values of rows in a format."""

    format: Format
    columns: tuple[Column, ...]
    options: FormatOptions

    @property
    def immutable(self) -> bool:
        """Whether no column holds a list or a dict: rows themselves are never changed in place."""
        return all(column.type.base in _IMMUTABLE for column in self.columns)

    def serializer(self, topic: str, *, is_key: bool) -> Callable[[Row], bytes]:
        target = Target(topic, is_key)
        write, where = self.format.writer(self.columns, self.options, target), target.place

        def serialize(row: Row) -> bytes | None:
            try:
                return write(row)
            except SerializationError:
                raise
            except Exception as error:
                raise unwritable(where, self.format.name, row, error) from error

        return serialize  # type: ignore[return-value]  # None: see Format.serde

    def deserializer(self, topic: str, *, is_key: bool) -> Callable[[bytes], list[Any]]:
        target = Target(topic, is_key)
        read, where = self.format.reader(self.columns, self.options, target), target.place

        def deserialize(data: bytes) -> list[Any] | None:
            try:
                return read(data)
            except DeserializationError:
                raise
            except Exception as error:
                raise unreadable(where, self.format.name, data, error) from error

        return deserialize  # type: ignore[return-value]  # None: see Format.serde

    def fast_serializer(self, *, is_key: bool) -> Callable[[list[Any]], bytes] | None:
        return self.format.fast_writer(self.columns, self.options)  # type: ignore[return-value]  # None: see Format.serde

    def fast_deserializer(self, *, is_key: bool) -> Callable[[bytes], list[Any]] | None:
        return self.format.fast_reader(self.columns, self.options)  # type: ignore[return-value]  # None: see Format.serde


@dataclass(frozen=True)
class KeySerde(BaseSerde[Any]):
    """The keys of rows in a format: tuples of the key columns' values."""

    format: Format
    columns: tuple[Column, ...]
    options: FormatOptions

    @property
    def identity(self) -> bool:
        """Whether equal tuples have equal bytes, and the other way round."""
        exact = all(column.type.base in _EXACT for column in self.columns)
        # Between delimiters, null and the empty text look alike.
        return exact and (self.format.name != "DELIMITED" or len(self.columns) == 1)

    @property
    def immutable(self) -> bool:
        """Whether no column holds a list or a dict."""
        return all(column.type.base in _IMMUTABLE for column in self.columns)

    def serializer(self, topic: str, *, is_key: bool) -> Callable[[Row], bytes]:
        return self._rows().serializer(topic, is_key=is_key)

    def deserializer(self, topic: str, *, is_key: bool) -> Callable[[bytes], Any]:
        read = self._rows().deserializer(topic, is_key=is_key)

        def deserialize(data: bytes) -> Any:
            row = read(data)
            return None if row is None else tuple(row)

        return deserialize

    def fast_serializer(self, *, is_key: bool) -> Callable[[Any], bytes] | None:
        return self._rows().fast_serializer(is_key=is_key)

    def fast_deserializer(self, *, is_key: bool) -> Callable[[bytes], Any] | None:
        return self.format.fast_key_reader(self.columns, self.format.key_options(self.columns, self.options))

    def _rows(self) -> RowSerde:
        options = self.format.key_options(self.columns, self.options)
        return RowSerde(self.format, self.columns, options)


def unreadable(where: Place, format: str, data: bytes, error: Exception) -> DeserializationError:
    """Returns the error for bytes that are not a row of the format."""
    return DeserializationError(f"{where}: {format} cannot read {describe_value(data)}: {error}")


def unwritable(where: Place, format: str, row: Row, error: Exception) -> SerializationError:
    """Returns the error for a row that the format cannot write."""
    return SerializationError(f"{where}: {format} cannot write {describe_value(row)}: {error}")


def types_within(type: SqlType) -> Iterator[SqlType]:
    """Yields the type and all types inside it."""
    yield type
    if isinstance(type, SqlArray):
        yield from types_within(type.item)
    elif isinstance(type, SqlMap):
        yield from types_within(type.key)
        yield from types_within(type.value)
    elif isinstance(type, SqlStruct):
        for field in type.fields:
            yield from types_within(field.type)


def check_map_keys(columns: tuple[Column, ...], message: str) -> None:
    """Raises with the message if a map has keys that are no strings."""
    for column in columns:
        for type in types_within(column.type):
            if isinstance(type, SqlMap) and type.key.base is not SqlBaseType.STRING:
                raise SqlStatementError(message)


def column_list(columns: tuple[Column, ...]) -> str:
    """Returns the columns as messages show them.

    >>> from headrace.sql.types import INTEGER
    >>> column_list((Column("A", INTEGER, Namespace.KEY), Column("B", INTEGER)))
    '[`A` INTEGER KEY, `B` INTEGER]'
    """
    texts = (f"`{c.name}` {c.type}{' KEY' if c.namespace is Namespace.KEY else ''}" for c in columns)
    return f"[{', '.join(texts)}]"

"""Properties of the WITH clause: names, values, checks and defaults."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import timedelta

from headrace.errors import did_you_mean
from headrace.sql.catalog import Lifetime
from headrace.sql.catalog.topic_directory import NewTopic
from headrace.sql.errors import Position, SqlParseError, SqlStatementError
from headrace.sql.formats import FormatOptions, format_named
from headrace.sql.functions.java_time.patterns import pattern_of
from headrace.sql.syntax.nodes import Literal
from headrace.sql.syntax.statements import Properties
from headrace.sql.syntax.units import UNITS, duration

_TEXTS = {
    "KAFKA_TOPIC": "kafka_topic",
    "CLEANUP_POLICY": "cleanup_policy",
    "FORMAT": "format",
    "KEY_FORMAT": "key_format",
    "VALUE_FORMAT": "value_format",
    "KEY_DELIMITER": "key_delimiter",
    "VALUE_DELIMITER": "value_delimiter",
    "KEY_SCHEMA_FULL_NAME": "key_schema_full_name",
    "VALUE_SCHEMA_FULL_NAME": "value_schema_full_name",
    "VALUE_AVRO_SCHEMA_FULL_NAME": "value_schema_full_name",
    "KEY_PROTOBUF_NULLABLE_REPRESENTATION": "key_nullable_representation",
    "VALUE_PROTOBUF_NULLABLE_REPRESENTATION": "value_nullable_representation",
    "TIMESTAMP": "timestamp",
    "TIMESTAMP_FORMAT": "timestamp_format",
    "WINDOW_TYPE": "window_type",
    "SOURCE_CONNECTOR": "source_connector",
    "SOURCED_BY_CONNECTOR": "source_connector",
    "QUERY_ID": "query_id",
}
_NUMBERS = {
    "PARTITIONS": "partitions",
    "REPLICAS": "replicas",
    "RETENTION_MS": "retention_ms",
    "KEY_SCHEMA_ID": "key_schema_id",
    "VALUE_SCHEMA_ID": "value_schema_id",
}
_SIZES = ("PARTITIONS", "REPLICAS")
_EXPIRY = frozenset({"TTL", "TTL_CLOCK"})
_CLOCKS = ("STREAM_TIME", "WALL_CLOCK")
_SOURCE_ONLY = frozenset({"WINDOW_TYPE", "WINDOW_SIZE", "SOURCE_CONNECTOR", "SOURCED_BY_CONNECTOR"})
_DURATION = re.compile(r"\s*(\d+)\s+(\S+)\s*")
_REPRESENTATIONS = ("OPTIONAL", "WRAPPER")


@dataclass(frozen=True, slots=True)
class WithProperties:
    """The values of WITH; what was not given is None. FORMAT has become the formats of key and value."""

    kafka_topic: str | None = None
    partitions: int | None = None
    replicas: int | None = None
    retention_ms: int | None = None
    cleanup_policy: str | None = None
    format: str | None = None
    key_format: str | None = None
    value_format: str | None = None
    key_delimiter: str | None = None
    value_delimiter: str | None = None
    key_schema_id: int | None = None
    value_schema_id: int | None = None
    key_schema_full_name: str | None = None
    value_schema_full_name: str | None = None
    key_nullable_representation: str | None = None
    value_nullable_representation: str | None = None
    wrap_single_value: bool | None = None
    timestamp: str | None = None
    timestamp_format: str | None = None
    window_type: str | None = None
    window_size: timedelta | None = None
    source_connector: str | None = None
    query_id: str | None = None
    ttl: timedelta | None = None
    """How long rows of a table live."""
    ttl_clock: str | None = None
    """STREAM_TIME or WALL_CLOCK."""
    ttl_position: Position | None = None
    """Where TTL stands, for messages."""

    @property
    def lifetime(self) -> Lifetime | None:
        """The time to live, by stream time unless the statement says otherwise."""
        return None if self.ttl is None else Lifetime(self.ttl, (self.ttl_clock or "STREAM_TIME").lower())

    def refused_ttl(self, problem: str) -> SqlParseError:
        """Returns the error for a TTL where there can be none."""
        return SqlParseError(f"Configuration TTL is invalid: {problem}", position=self.ttl_position)

    def key_options(self, base: FormatOptions | None = None) -> FormatOptions:
        """Returns the options of the key's format, with those of ``base`` where nothing was given."""
        return self._options(
            base, self.key_delimiter, self.key_schema_full_name, self.key_schema_id, self.key_nullable_representation
        )

    def value_options(self, base: FormatOptions | None = None) -> FormatOptions:
        """Returns the options of the value's format, with those of ``base`` where nothing was given."""
        return self._options(
            base,
            self.value_delimiter,
            self.value_schema_full_name,
            self.value_schema_id,
            self.value_nullable_representation,
        )

    def new_topic(self, partitions: int) -> NewTopic:
        """Returns what a topic is to be like that is made for the statement."""
        configs = {"retention.ms": self.retention_ms, "cleanup.policy": self.cleanup_policy}
        given = {name: str(value).lower() for name, value in configs.items() if value is not None}
        return NewTopic(partitions, self.replicas, given)

    @staticmethod
    def _options(
        base: FormatOptions | None, delimiter: str | None, name: str | None, schema_id: int | None, nullable: str | None
    ) -> FormatOptions:
        options = base or FormatOptions()
        if delimiter is not None:
            options = replace(options, delimiter=delimiter)
        if name is not None:
            options = replace(options, schema_full_name=name)
        if schema_id is not None:
            options = replace(options, schema_id=schema_id)
        if nullable is not None:
            options = replace(options, nullable_representation=nullable)
        return options


def source_properties(properties: Properties) -> WithProperties:
    """Returns the properties of ``CREATE STREAM|TABLE``."""
    given = _read(
        properties, set(_TEXTS) - {"QUERY_ID"} | set(_NUMBERS) | {"WRAP_SINGLE_VALUE", "WINDOW_SIZE"} | _EXPIRY
    )
    if given.kafka_topic is None:
        message = 'Missing required property "KAFKA_TOPIC" which has no default value.'
        raise _unprepared(message)
    _check_window(given)
    return _with_both_formats(given)


def sink_properties(properties: Properties) -> WithProperties:
    """Returns the properties of ``CREATE STREAM|TABLE … AS SELECT``."""
    names = set(_TEXTS) - _SOURCE_ONLY - {"QUERY_ID"} | set(_NUMBERS) | {"WRAP_SINGLE_VALUE"} | _EXPIRY
    return _with_both_formats(_read(properties, names))


def insert_properties(properties: Properties) -> WithProperties:
    """Returns the properties of ``INSERT INTO … SELECT``."""
    return _read(properties, {"QUERY_ID"})


def _read(properties: Properties, names: set[str]) -> WithProperties:
    given = [name for name, _ in properties]
    if "VALUE_AVRO_SCHEMA_FULL_NAME" in given and "VALUE_SCHEMA_FULL_NAME" in given:
        message = (
            "Cannot supply both 'VALUE_AVRO_SCHEMA_FULL_NAME' and 'VALUE_SCHEMA_FULL_NAME' properties. "
            "Please only set 'VALUE_SCHEMA_FULL_NAME'."
        )
        raise _unprepared(message)
    strange = [name for name in given if name not in names]
    if strange:
        hint = did_you_mean(strange[0], names)
        message = f"Invalid config variable(s) in the WITH clause: {','.join(strange)}{hint}"
        raise _unprepared(message)
    values: dict[str, object] = {}
    for name, literal in properties:
        if name in _TEXTS:
            values[_TEXTS[name]] = _filled(name, literal) if name == "KAFKA_TOPIC" else _text(name, literal)
        elif name in _NUMBERS:
            values[_NUMBERS[name]] = (_size if name in _SIZES else _number)(name, literal)
        elif name == "WRAP_SINGLE_VALUE":
            values["wrap_single_value"] = _flag(name, literal)
        elif name == "WINDOW_SIZE":
            values["window_size"] = _duration(name, literal)
        elif name == "TTL":
            values["ttl"], values["ttl_position"] = _lifetime(name, literal), literal.position
        elif name == "TTL_CLOCK":
            values["ttl_clock"] = _clock(name, literal)
            if not any(other == "TTL" for other, _ in properties):
                raise _invalid(name, "it says which clock 'TTL' goes by: set 'TTL', too, or leave it out", literal)
    if "timestamp" in values:
        values["timestamp"] = _folded(str(values["timestamp"]))
    if isinstance(values.get("window_type"), str):
        values["window_type"] = _window_type(str(values["window_type"]))
    return WithProperties(**values)  # type: ignore[arg-type]  # each value was read as the type of its field


def _invalid(name: str, problem: str, literal: Literal) -> SqlParseError:
    return _unprepared(f"Configuration {name} is invalid: {problem}", position=literal.position)


def _wrong_value(name: str, value: object, problem: str, literal: Literal) -> SqlParseError:
    return _unprepared(f"Invalid value {value} for property {name}: {problem}", position=literal.position)


def _unprepared(message: str, *, position: Position | None = None) -> SqlParseError:
    """Returns the error for a WITH clause that cannot be read."""
    return SqlParseError(f"Failed to prepare statement: {message}", position=position)


def _text(name: str, literal: Literal) -> str:
    if literal.value is None or isinstance(literal.value, bool):
        shown = "null" if literal.value is None else str(literal.value).lower()
        raise _wrong_value(name, shown, "Expected value to be a string", literal)
    return str(literal.value)


def _filled(name: str, literal: Literal) -> str:
    value = _text(name, literal)
    if not value:
        raise _wrong_value(name, value, "String must be non-empty", literal)
    return value


def _number(name: str, literal: Literal) -> int:
    value = literal.value
    if isinstance(value, str) and re.fullmatch(r"\s*[+-]?\d+\s*", value):
        value = int(value)
    if not isinstance(value, int) or isinstance(value, bool):
        raise _wrong_value(name, value, "Not a number of type INT", literal)
    return value


def _size(name: str, literal: Literal) -> int:
    value = _number(name, literal)
    if value < 1:
        raise _wrong_value(name, value, "Value must be at least 1", literal)
    return value


def _flag(name: str, literal: Literal) -> bool:
    value = literal.value
    if isinstance(value, bool):
        return value
    if isinstance(value, str) and value.strip().lower() in ("true", "false"):
        return value.strip().lower() == "true"
    raise _wrong_value(name, value, "Expected value to be either true or false", literal)


def _duration(name: str, literal: Literal) -> timedelta:
    text = str(literal.value)
    found = _DURATION.fullmatch(text)
    if found is None:
        problem = f"Invalid duration: '{text}'. Must be in format '<number> <unit>', for example '30 SECONDS'"
        raise _invalid(name, problem, literal)
    unit = found[2].upper()
    if unit not in UNITS:
        raise _invalid(name, f"Invalid duration: '{text}'. Unknown time unit: '{unit}'", literal)
    return duration(int(found[1]), unit)


def _lifetime(name: str, literal: Literal) -> timedelta:
    found = _duration(name, literal)
    if not found:
        problem = f"Invalid duration: '{literal.value}'. Rows must live longer than 0; leave TTL out to keep them"
        raise _invalid(name, problem, literal)
    return found


def _clock(name: str, literal: Literal) -> str:
    clock = _text(name, literal).upper()
    if clock not in _CLOCKS:
        raise _invalid(name, f"Unknown clock: {literal.value}. Must be one of {', '.join(_CLOCKS)}", literal)
    return clock


def _window_type(text: str) -> str:
    kind = text.upper()
    if kind not in ("TUMBLING", "HOPPING", "SESSION"):
        known = "HOPPING, SESSION, TUMBLING"
        message = f"Configuration WINDOW_TYPE is invalid: Unknown window type: {text}. Must be one of {known}"
        raise _unprepared(message)
    return kind


def _folded(name: str) -> str:
    """Returns the name of a column as the language reads it: in upper case unless it is quoted."""
    if len(name) >= 2 and name[0] == name[-1] and name[0] in '`"':
        return name[1:-1]
    return name.upper()


def _check_window(given: WithProperties) -> None:
    if given.window_type in ("SESSION", None) and given.window_size is not None:
        message = "'WINDOW_SIZE' should not be set for SESSION windows."
        if given.window_type is None:
            message += " Without 'WINDOW_TYPE' the source has no windows."
        raise _unprepared(message)
    if given.window_type in ("TUMBLING", "HOPPING") and given.window_size is None:
        message = (
            f"{given.window_type} windows require 'WINDOW_SIZE' to be provided in the WITH clause. "
            "For example: 'WINDOW_SIZE'='10 SECONDS'"
        )
        raise _unprepared(message)


def _with_both_formats(given: WithProperties) -> WithProperties:
    _check_delimiter("KEY_DELIMITER", given.key_delimiter)
    _check_delimiter("VALUE_DELIMITER", given.value_delimiter)
    for name, value in (("KEY", given.key_nullable_representation), ("VALUE", given.value_nullable_representation)):
        if value is not None and value.upper() not in _REPRESENTATIONS:
            full = f"{name}_PROTOBUF_NULLABLE_REPRESENTATION"
            message = f"Configuration {full} is invalid: must be one of {', '.join(_REPRESENTATIONS)}; found {value}"
            raise _unprepared(message)
    _check_time_format(given.timestamp_format)
    if given.format is None:
        return given
    for name, value in (("KEY_FORMAT", given.key_format), ("VALUE_FORMAT", given.value_format)):
        if value is not None:
            message = (
                f"Cannot supply both '{name}' and 'FORMAT' properties, as 'FORMAT' sets both key and value formats. "
                "Either use just 'FORMAT', or use 'KEY_FORMAT' and 'VALUE_FORMAT'."
            )
            raise _unprepared(message)
    return replace(given, key_format=given.format, value_format=given.format)


def _check_time_format(text: str | None) -> None:
    if text is None:
        return
    try:
        pattern_of(text)
    except ValueError as error:
        message = f"Invalid datetime format for config:TIMESTAMP_FORMAT, reason:{error}"
        raise _unprepared(message) from error


def _check_delimiter(name: str, value: str | None) -> None:
    if value is None:
        return
    if not value.strip():
        problem = (
            "Delimiter cannot be empty, if you meant to have a tab or space for delimiter, "
            "please use the special values 'TAB' or 'SPACE'\nExample valid value: ';'"
        )
    elif len(value) > 1 and value not in ("TAB", "SPACE"):
        problem = (
            f"Invalid delimiter value: '{value}'. Delimiter must be a single character or TAB,SPACE\n"
            "Example valid value: ';'"
        )
    else:
        return
    message = f"Configuration {name} is invalid: {problem}"
    raise _unprepared(message)


def check_format_properties(given: WithProperties, key_format: str, value_format: str) -> None:
    """Raises if a format was given properties that it does not have."""
    for side, name in (("key", key_format), ("value", value_format)):
        nullable = getattr(given, f"{side}_nullable_representation")
        if nullable is not None and "nullableRepresentation" not in format_named(name).properties:
            full = f"{side.upper()}_PROTOBUF_NULLABLE_REPRESENTATION"
            message = f"Property {full} can only be enabled with protobuf format. The {side}'s format is {name}."
            raise SqlStatementError(message)
        names = [
            shown
            for shown, attribute in (
                ("delimiter", f"{side}_delimiter"),
                ("fullSchemaName", f"{side}_schema_full_name"),
            )
            if getattr(given, attribute) is not None
        ]
        if names:
            format_named(name).check_properties(names)


def with_key_name(options: FormatOptions, format: str, source: str) -> FormatOptions:
    """Returns the options of a key's format with a name for its schema, where the format needs one.

    >>> with_key_name(FormatOptions(), "AVRO", "ORDER_ITEMS").schema_full_name
    'io.confluent.ksql.avro_schemas.OrderItemsKey'
    """
    if format != "AVRO" or options.schema_full_name is not None:
        return options
    words = "".join(word.capitalize() for word in source.split("_"))
    return replace(options, schema_full_name=f"io.confluent.ksql.avro_schemas.{words}Key")


def wrapping(given: WithProperties, value_format: str, columns: int, settings: Mapping[str, object]) -> bool:
    """Returns whether a single value column is a field of an object; raises if WRAP_SINGLE_VALUE does not fit."""
    format = format_named(value_format)
    wrap = given.wrap_single_value
    if wrap is not None:
        if columns != 1:
            message = "'WRAP_SINGLE_VALUE' is only valid for single-field value schemas"
            raise SqlStatementError(message)
        if not (format.wraps_singles if wrap else format.unwraps_singles):
            message = f"Format '{format.name}' does not support 'WRAP_SINGLE_VALUE' set to '{str(wrap).lower()}'."
            raise SqlStatementError(message)
        return wrap
    default = str(settings.get("ksql.persistence.wrap.single.values", "true")).lower()
    return not (columns == 1 and default == "false" and format.unwraps_singles)

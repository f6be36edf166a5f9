"""One setting of the configuration: its Kafka name, the values it takes, and how a value is read from a mapping."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from enum import Enum
from typing import Any

from headrace.arguments.signatures import count_of, deferred, describe_function, parameters_of, takes
from headrace.errors import ConfigError, describe_value, did_you_mean

PREFIXES = (
    "consumer.",
    "main.consumer.",
    "restore.consumer.",
    "global.consumer.",
    "producer.",
    "admin.",
    "topic.",
    "client.tag.",
    "spark.",
    "sasl.",
    "ssl.",
)
"""Settings that begin so are kept as they are, for whoever they are meant for."""

CLIENT_SETTINGS = frozenset(
    {
        "client.dns.lookup",
        "connections.max.idle.ms",
        "metadata.max.age.ms",
        "receive.buffer.bytes",
        "reconnect.backoff.max.ms",
        "reconnect.backoff.ms",
        "request.timeout.ms",
        "retry.backoff.max.ms",
        "retry.backoff.ms",
        "security.protocol",
        "security.providers",
        "send.buffer.bytes",
        "socket.connection.setup.timeout.max.ms",
        "socket.connection.setup.timeout.ms",
    }
)
"""Settings of all Kafka clients; kept as they are."""

NO_EFFECT = {
    "built.in.metrics.version": "there is one version of the metrics",
    "config.providers": "settings are Python values",
    "default.client.supplier": "the log is chosen by bootstrap_servers",
    "dsl.store.suppliers.class": "set default_dsl_store, or give Materialized a store supplier",
    "enable.metrics.push": "metrics are read from the application",
    "group.protocol": "tasks are placed by the host, not by a consumer group",
    "log.summary.interval.ms": "the host logs its progress",
    "metadata.recovery.rebootstrap.trigger.ms": "it belongs to Java's client",
    "metadata.recovery.strategy": "it belongs to Java's client",
    "metric.reporters": "metrics are read from the application",
    "metrics.num.samples": "metrics are counters",
    "metrics.sample.window.ms": "metrics are counters",
    "rack.aware.assignment.non_overlap_cost": "tasks are placed by the host",
    "rack.aware.assignment.strategy": "tasks are placed by the host",
    "rack.aware.assignment.tags": "tasks are placed by the host",
    "rack.aware.assignment.traffic_cost": "tasks are placed by the host",
    "repartition.purge.interval.ms": "repartitioned records are not kept in the log",
    "task.assignor.class": "tasks are placed by the host",
    "upgrade.from": "there is no older version",
    "windowstore.changelog.additional.retention.ms": "changelogs of windows are cut by stream time, not by a clock",
}
"""Settings of Kafka Streams that mean nothing here: they are taken with a warning, and the reason."""

_MILLISECOND = timedelta(milliseconds=1)


class Kind(Enum):
    """Kind of a setting's values; the value is the phrase for it in messages."""

    TEXT = "a string"
    NAME = "a string of letters, digits, '.', '_' and '-'"
    NUMBER = "a whole number"
    FLAG = "True or False"
    DURATION = "a timedelta"
    CHOICE = "one of"
    FUNCTION = "a function"
    SERDE = "a serde"
    WRAPPER = "an object with the methods wrap_processor_supplier and wrap_fixed_key_processor_supplier"
    CONFIG_SETTER = "a function (store_name, options, configs), or an object with the method set_config"
    PATH = "a path"


NAMED_KINDS = frozenset({Kind.FUNCTION, Kind.SERDE, Kind.WRAPPER, Kind.CONFIG_SETTER})
"""Kinds whose values are objects, which a mapping may name."""


@dataclass(frozen=True, slots=True)
class Setting:
    """Properties of one setting besides its default.

    >>> Setting("poll.ms", Kind.DURATION, minimum=0).parse("poll", 100)
    datetime.timedelta(microseconds=100000)
    """

    key: str
    """Its name in Kafka Streams, or in the same manner."""
    kind: Kind
    """What its values are."""
    optional: bool = False
    """Whether None is a value."""
    minimum: int | None = None
    """Smallest number, or duration in milliseconds."""
    choices: tuple[str, ...] = ()
    """The values of a choice."""
    synonyms: tuple[tuple[str, str], ...] = ()
    """Other spellings of choices, and what they mean."""
    aliases: tuple[str, ...] = ()
    """Other keys of the setting."""
    call: str = ""
    """How a function is called."""

    def parse(self, name: str, value: Any) -> Any:
        """Returns a value of a mapping as the field holds it: numbers and flags may be text, durations milliseconds.

        >>> Setting("num.stream.threads", Kind.NUMBER, minimum=1).parse("num.stream.threads", "4")
        4
        >>> Setting("poll.ms", Kind.DURATION, minimum=0).parse("poll.ms", "soon")
        Traceback (most recent call last):
        ...
        headrace.errors.ConfigError: poll.ms must be a number of milliseconds, at least 0, got str 'soon'
        """
        given = value
        if isinstance(value, str):
            value = self._from_text(value)
        if self.kind is Kind.DURATION and not isinstance(value, timedelta | None):
            if type(value) is not int or (self.minimum is not None and value < self.minimum):
                message = f"{name} must be {self._required('a number of milliseconds')}, got {describe_value(given)}"
                raise ConfigError(message)
            try:
                value = timedelta(milliseconds=value)
            except OverflowError as error:
                message = f"{name} is a duration of at most {timedelta.max.days} days, got {value} ms"
                raise ConfigError(message) from error
        if self.kind is Kind.TEXT and isinstance(value, list | tuple):
            return ",".join(map(str, value))
        return self.check(name, value)

    def _from_text(self, text: str) -> Any:
        if self.kind in (Kind.NUMBER, Kind.DURATION):
            try:
                return int(text)
            except ValueError:
                return text
        if self.kind is Kind.FLAG:
            return {"true": True, "false": False}.get(text.strip().lower(), text)
        return text

    def check(self, name: str, value: Any) -> Any:
        """Returns the value in its usual spelling, or raises for one that the setting cannot have.

        >>> Setting("num.stream.threads", Kind.NUMBER, minimum=1).check("num_stream_threads", 0)
        Traceback (most recent call last):
        ...
        headrace.errors.ConfigError: num_stream_threads must be a whole number, at least 1, got int 0
        """
        if value is None and self.optional:
            return None
        value = dict(self.synonyms).get(value, value) if isinstance(value, str) else value
        if isinstance(value, type) and self.kind in NAMED_KINDS:
            value = self._instance(value)
        if not self._fits(value):
            message = f"{name} must be {self._required()}, got {describe_value(value)}{self._hint(value)}"
            raise ConfigError(message)
        return value

    def _instance(self, kind: type[Any]) -> Any:
        """Returns an instance where one is meant: Kafka's configuration names classes, ours takes instances.

        A class whose instances cannot be called is itself the function, such as ``str`` for a formatter.
        """
        is_function = self.kind is Kind.FUNCTION and not any("__call__" in vars(base) for base in kind.__mro__)
        return kind if is_function or not takes(kind, 0) else kind()

    def _fits(self, value: Any) -> bool:
        match self.kind:
            case Kind.TEXT:
                return isinstance(value, str)
            case Kind.NAME:
                return isinstance(value, str) and bool(value) and all(_is_legal(character) for character in value)
            case Kind.NUMBER:
                return type(value) is int and (self.minimum is None or value >= self.minimum)
            case Kind.FLAG:
                return type(value) is bool
            case Kind.DURATION:
                return (
                    isinstance(value, timedelta)
                    and not value % _MILLISECOND
                    and (self.minimum is None or value >= timedelta(milliseconds=self.minimum))
                )
            case Kind.CHOICE:
                return value in self.choices
            case Kind.FUNCTION:
                takes_all = callable(value) and (not self.call or takes(value, count_of(self.call)))
                return takes_all and deferred(value) is None
            case Kind.SERDE:
                return _has_methods(value, "serializer", "deserializer")
            case Kind.WRAPPER:
                return _has_methods(value, "wrap_processor_supplier", "wrap_fixed_key_processor_supplier")
            case Kind.CONFIG_SETTER:
                set_config = getattr(value, "set_config", value)
                return callable(set_config) and takes(set_config, 3) and deferred(set_config) is None
            case Kind.PATH:
                return isinstance(value, str | os.PathLike) and bool(str(value))

    def _required(self, what: str | None = None) -> str:
        required = what or f"{self.kind.value} {self.call}".rstrip()
        if self.choices:
            required = f"{required} {', '.join(map(repr, self.choices))}"
        if self.minimum is not None:
            unit = " ms" if self.kind is Kind.DURATION and what is None else ""
            required = f"{required}, at least {self.minimum}{unit}"
        return f"{required}, or None" if self.optional else required

    def _hint(self, value: Any) -> str:
        if self.kind is Kind.DURATION and type(value) in (int, float):
            return "; write for example timedelta(milliseconds=100)"
        if isinstance(value, timedelta) and value % _MILLISECOND:
            return "; give it in whole milliseconds"
        if self.kind is Kind.FUNCTION and callable(value):
            if (why := deferred(value)) is not None:
                return f"; {describe_function(value)} is {why}"
            return f"; {describe_function(value)} takes {parameters_of(value)}"
        return did_you_mean(value, self.choices) if self.choices and isinstance(value, str) else ""


def setting(default: Any, key: str, kind: Kind, **details: Any) -> Any:
    """Returns a dataclass field with a default and what is known of the setting.

    >>> setting(1, "num.stream.threads", Kind.NUMBER, minimum=1).metadata["setting"].minimum
    1
    """
    return field(default=default, metadata={"setting": Setting(key, kind, **details)})


def to_plain(value: Any) -> Any:
    """Returns a value as a mapping with Kafka's names holds it: durations in milliseconds.

    >>> to_plain(timedelta(seconds=1)), to_plain("all")
    (1000, 'all')
    """
    return value // _MILLISECOND if isinstance(value, timedelta) else value


def optimizations(value: str | Iterable[str]) -> frozenset[str]:
    """Returns the rewrites that a value of ``topology_optimization`` asks for.

    >>> optimizations("none"), sorted(optimizations("all"))
    (frozenset(), ['merge.repartition.topics', 'reuse.ktable.source.topics', 'single.store.self.join'])
    """
    given: object = value
    if not isinstance(given, Iterable) or isinstance(given, bytes | Mapping):
        message = f"topology_optimization must be a string or several, got {describe_value(given)}"
        raise ConfigError(message)
    names = [name.strip() for name in value.split(",")] if isinstance(value, str) else list(value)
    if names == ["none"]:
        return frozenset()
    if names == ["all"]:
        return OPTIMIZATIONS
    for name in names:
        if not isinstance(name, str) or name not in OPTIMIZATIONS:
            message = (
                f"topology_optimization must be 'none', 'all', or some of {', '.join(sorted(OPTIMIZATIONS))}, "
                f"got {describe_value(name)}{did_you_mean(str(name), OPTIMIZATIONS)}"
            )
            raise ConfigError(message)
    return frozenset(names)


OPTIMIZATIONS = frozenset({"reuse.ktable.source.topics", "merge.repartition.topics", "single.store.self.join"})
"""The rewrites of a topology that can be asked for."""


def _has_methods(value: object, *names: str) -> bool:
    return all(callable(getattr(value, name, None)) for name in names)


def _is_legal(character: str) -> bool:
    return (character.isascii() and character.isalnum()) or character in "._-"

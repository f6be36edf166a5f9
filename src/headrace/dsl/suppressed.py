"""Options of ``suppress``: how long updates of a table are held back, and what its buffer may hold."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import ClassVar

from headrace.arguments.durations import to_ms
from headrace.arguments.hints import Hinting, HintingType
from headrace.arguments.values import flag, topic_config
from headrace.dsl import hints
from headrace.dsl.naming import checked
from headrace.errors import TopologyError, describe_value


@dataclass(frozen=True, slots=True)
class BufferConfig(Hinting, metaclass=HintingType):
    """Bounds of a suppression buffer, and what happens when it is full.

    A bounded buffer emits its oldest entry early when it is full, unless it is told to shut the application down.

    >>> BufferConfig.max_records(1000).with_max_bytes(1 << 20).shut_down_when_full().strict
    True
    """

    record_limit: int | None = None
    """How many keys it holds at most; None: no bound."""
    byte_limit: int | None = None
    """How many bytes it holds at most; None: no bound."""
    strict: bool = True
    """Whether it never emits early: it stops the application when it is full."""
    logging: bool = True
    """Whether a changelog backs it."""
    log_config: Mapping[str, str] = field(default_factory=dict)
    """Settings of the changelog topic."""

    def __post_init__(self) -> None:
        for name in ("record_limit", "byte_limit"):
            limit = getattr(self, name)
            if limit is not None and (not isinstance(limit, int) or limit < 0):
                message = f"BufferConfig: {name} must be an int that is not negative; found {describe_value(limit)}"
                raise TopologyError(message)
        flag(self.strict, "BufferConfig: strict")
        flag(self.logging, "BufferConfig: logging")
        topic_config(self.log_config, "BufferConfig: log_config")

    @classmethod
    def unbounded(cls) -> BufferConfig:
        """No bound: it holds whatever the time limit asks it to.

        >>> BufferConfig.unbounded().strict
        True
        """
        return cls()

    @classmethod
    def max_records(cls, limit: int) -> BufferConfig:
        """At most ``limit`` keys; emits early when it is full.

        >>> BufferConfig.max_records(2).strict
        False
        """
        return cls(record_limit=limit, strict=False)

    @classmethod
    def max_bytes(cls, limit: int) -> BufferConfig:
        """At most ``limit`` bytes; emits early when it is full.

        >>> BufferConfig.max_bytes(1024).byte_limit
        1024
        """
        return cls(byte_limit=limit, strict=False)

    def with_max_records(self, limit: int) -> BufferConfig:
        """The same with another bound on keys.

        >>> BufferConfig.unbounded().with_max_records(5).record_limit
        5
        """
        return replace(self, record_limit=limit)

    def with_max_bytes(self, limit: int) -> BufferConfig:
        """The same with another bound on bytes.

        >>> BufferConfig.unbounded().with_max_bytes(5).byte_limit
        5
        """
        return replace(self, byte_limit=limit)

    def with_no_bound(self) -> BufferConfig:
        """The same without bounds.

        >>> BufferConfig.max_records(2).with_no_bound() == BufferConfig.unbounded()
        True
        """
        return replace(self, record_limit=None, byte_limit=None, strict=True)

    def shut_down_when_full(self) -> BufferConfig:
        """The same, stopping the application when it is full.

        >>> BufferConfig.max_records(2).shut_down_when_full().strict
        True
        """
        return replace(self, strict=True)

    def emit_early_when_full(self) -> BufferConfig:
        """The same, emitting the oldest entries when it is full.

        >>> BufferConfig.max_records(2).emit_early_when_full().strict
        False
        """
        return replace(self, strict=False)

    def with_logging_disabled(self) -> BufferConfig:
        """The same without a changelog.

        >>> BufferConfig.unbounded().with_logging_disabled().logging
        False
        """
        return replace(self, logging=False, log_config={})

    def with_logging_enabled(self, config: Mapping[str, str]) -> BufferConfig:
        """The same with a changelog of these settings.

        >>> BufferConfig.unbounded().with_logging_enabled({"retention.ms": "1"}).log_config
        {'retention.ms': '1'}
        """
        return replace(self, logging=True, log_config=dict(topic_config(config, "BufferConfig: log_config")))


@dataclass(frozen=True, slots=True)
class Suppressed(Hinting, metaclass=HintingType):
    """When ``suppress`` lets an update go: made by ``until_window_closes`` and ``until_time_limit``."""

    _HINTS: ClassVar[Mapping[str, str]] = hints.SUPPRESSED

    limit: timedelta | None
    """How long an update waits, by record time; None: until its window closes."""
    config: BufferConfig
    """What the buffer may hold."""
    name: str | None = None
    """Name of the node; its store is called ``<name>-store``."""

    def __post_init__(self) -> None:
        if not isinstance(self.config, BufferConfig):
            message = f"Suppressed: the buffer must be a BufferConfig; found {describe_value(self.config)}"
            raise TopologyError(message)
        if self.limit is None and not self.config.strict:
            message = (
                "Suppressed.until_window_closes: a buffer that emits early cannot give final results; "
                "found one bounded without shut_down_when_full(); add it, or use BufferConfig.unbounded()"
            )
            raise TopologyError(message)
        if self.limit is not None and to_ms(self.limit, "Suppressed: the time limit") < 0:
            message = f"Suppressed: the time limit must not be negative; found {self.limit}"
            raise TopologyError(message)
        checked(self.name, "Suppressed")

    @classmethod
    def until_window_closes(cls, config: BufferConfig, *, name: str | None = None) -> Suppressed:
        """Lets one final result per window go, when stream time passes the window's end and grace period.

        >>> Suppressed.until_window_closes(BufferConfig.unbounded()).limit is None
        True
        """
        return cls(None, config, name)

    @classmethod
    def until_time_limit(cls, limit: timedelta, config: BufferConfig, *, name: str | None = None) -> Suppressed:
        """Lets the latest update of a key go when stream time is ``limit`` past the first one that waits.

        >>> Suppressed.until_time_limit(timedelta(minutes=5), BufferConfig.max_records(1000)).limit
        datetime.timedelta(seconds=300)
        """
        if limit is None:
            message = "Suppressed.until_time_limit: the time limit must be a timedelta; found None"
            raise TopologyError(message)
        return cls(limit, config, name)

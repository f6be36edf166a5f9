"""Auto offset reset: the start of a source that has no committed offset."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import Literal, cast, get_args

from headrace.arguments.hints import HintingType
from headrace.errors import TopologyError, describe_value, did_you_mean

Strategy = Literal["none", "earliest", "latest", "by_duration"]


@dataclass(frozen=True, slots=True)
class AutoOffsetReset(metaclass=HintingType):
    """Where a source starts to read when it has no committed offset; it overrides the application's setting.

    >>> AutoOffsetReset.earliest().strategy
    'earliest'
    >>> AutoOffsetReset.by_duration(timedelta(hours=1)).duration
    datetime.timedelta(seconds=3600)
    """

    strategy: Strategy
    duration: timedelta | None = None
    """How far back to start; only for ``by_duration``."""

    def __post_init__(self) -> None:
        given: tuple[object, object] = (self.strategy, self.duration)
        strategy, duration = given
        if strategy not in get_args(Strategy):
            known = ", ".join(map(repr, get_args(Strategy)))
            message = f"offset reset: the strategy must be one of {known}, found {describe_value(strategy)}"
            raise TopologyError(message)
        if strategy != "by_duration":
            if duration is not None:
                message = (
                    f"offset reset: '{strategy}' takes no duration, found {describe_value(duration)}; leave it out"
                )
                raise TopologyError(message)
        elif not isinstance(duration, timedelta) or duration < timedelta(0):
            message = (
                f"offset reset: the duration must be a timedelta of zero or more, found {describe_value(duration)}; "
                "pass for example timedelta(hours=1)"
            )
            raise TopologyError(message)

    @classmethod
    def none(cls) -> AutoOffsetReset:
        """Fails when there is no committed offset.

        >>> AutoOffsetReset.none().strategy
        'none'
        """
        return cls("none")

    @classmethod
    def earliest(cls) -> AutoOffsetReset:
        """Starts at the oldest record.

        >>> AutoOffsetReset.earliest() == AutoOffsetReset.of("earliest")
        True
        """
        return cls("earliest")

    @classmethod
    def latest(cls) -> AutoOffsetReset:
        """Starts with the next record that arrives.

        >>> AutoOffsetReset.latest() == AutoOffsetReset.of("latest")
        True
        """
        return cls("latest")

    @classmethod
    def by_duration(cls, duration: timedelta) -> AutoOffsetReset:
        """Starts at the first record that is not older than ``duration``.

        >>> AutoOffsetReset.by_duration(timedelta(days=1)).strategy
        'by_duration'
        """
        return cls("by_duration", duration)

    @classmethod
    def of(cls, value: AutoOffsetReset | str | timedelta) -> AutoOffsetReset:
        """Reads ``"earliest"``, ``"latest"`` or ``"none"``; a timedelta means ``by_duration``.

        >>> AutoOffsetReset.of("latest")
        AutoOffsetReset(strategy='latest', duration=None)
        """
        if isinstance(value, AutoOffsetReset):
            return value
        if isinstance(value, timedelta):
            return cls.by_duration(value)
        strategies = [strategy for strategy in get_args(Strategy) if strategy != "by_duration"]
        if isinstance(value, str) and value.lower() in strategies:
            return cls(cast("Strategy", value.lower()))
        hint = did_you_mean(value.lower(), strategies) if isinstance(value, str) else ""
        message = (
            f"offset reset: must be one of {', '.join(map(repr, strategies))} or a timedelta, "
            f"found {describe_value(value)}{hint}"
        )
        raise TopologyError(message)

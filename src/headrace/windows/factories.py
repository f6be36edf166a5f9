"""Factories of windows: a constructor called as in other libraries raises an error that names the class method."""

from __future__ import annotations

from dataclasses import MISSING, fields
from datetime import timedelta
from functools import wraps
from typing import TYPE_CHECKING, Any, TypeVar

from headrace.arguments.hints import HintingType, snake_case
from headrace.errors import TopologyError, describe_value

W = TypeVar("W")


class Factories(HintingType):
    """Type of windows: they are made by class methods whose names say what the durations mean, grace included."""

    # Type checkers know what there is; this is for those who guess.
    if not TYPE_CHECKING:

        def __getattr__(cls, name: str) -> Any:
            snake = snake_case(name)
            if snake == "with_" or any(factory != snake and factory.startswith(snake) for factory in _factories(cls)):
                message = f"type object {cls.__name__!r} has no attribute '{name}'; {_remedy(cls)}"
                raise AttributeError(message, name=name, obj=None)
            return super().__getattr__(name)


def made_by_factories(windows: type[W]) -> type[W]:
    """Makes the constructor, which takes milliseconds, point to the class methods, which take durations.

    >>> from headrace import TimeWindows
    >>> TimeWindows(timedelta(minutes=1))
    Traceback (most recent call last):
    ...
    headrace.errors.TopologyError: TimeWindows takes size_ms, advance_ms, grace_ms; found timedelta ...; \
use TimeWindows.of_size_with_no_grace(…) or TimeWindows.of_size_and_grace(…)
    """
    # Any: every window class is a dataclass, which type[W] does not say.
    every = fields(windows)  # type: ignore[arg-type]
    init, names = windows.__init__, [field.name for field in every if field.default is MISSING]

    @wraps(init)
    def settle(self: W, *given: Any, **named: Any) -> None:
        values = (*given, *named.values())
        wrong = [value for value in values if isinstance(value, timedelta)]
        if wrong or len(values) < len(names):
            found = describe_value(wrong[0]) if wrong else f"{len(values)} of them"
            message = f"{windows.__name__} takes {', '.join(names)}; found {found}; {_remedy(windows)}"
            raise TopologyError(message)
        init(self, *given, **named)

    setattr(windows, "__init__", settle)  # noqa: B010 - a type checker wants to see the dataclass's
    return windows


def _factories(windows: type) -> list[str]:
    return [name for name in vars(windows) if name.startswith("of_")]


def _remedy(windows: type) -> str:
    return "use " + " or ".join(f"{windows.__name__}.{factory}(…)" for factory in _factories(windows))

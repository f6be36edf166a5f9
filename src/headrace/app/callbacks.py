"""Calls of user listeners: an exception in a listener never reaches the application."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from headrace.arguments.signatures import count_of, deferred, describe_function, parameters_of, takes
from headrace.errors import ConfigError, describe_value

logger = logging.getLogger(__name__)


class Callbacks:
    """Calls listeners so that they cannot do harm, and knows in which threads that is going on.

    A listener must not wait for the end of the application, since that end waits for the listener to return.
    """

    def __init__(self) -> None:
        self._here = threading.local()

    @property
    def inside(self) -> bool:
        """Whether this thread is in such a call now."""
        return getattr(self._here, "depth", 0) > 0

    @contextmanager
    def entered(self) -> Iterator[None]:
        self._here.depth = getattr(self._here, "depth", 0) + 1
        try:
            yield
        finally:
            self._here.depth -= 1

    def call(self, what: str, function: Callable[..., object], *arguments: Any) -> None:
        """Calls a listener; what it raises is logged, and the application goes on."""
        try:
            with self.entered():
                function(*arguments)
        except Exception:
            logger.exception("%s %s failed; the application goes on", what, describe_function(function))


def check_callback(what: str, function: object, call: str) -> None:
    """Refuses what cannot be called in this way.

    >>> check_callback("the state listener", print, "(new, old)")
    >>> check_callback("the state listener", lambda state: None, "(new, old)")
    Traceback (most recent call last):
    ...
    headrace.errors.ConfigError: the state listener must be a function (new, old); <lambda> (...) takes (state)
    """
    if not callable(function):
        found = f"found {describe_value(function)}"
    elif (why := deferred(function)) is not None:
        found = f"{describe_function(function)} is {why}"
    elif not takes(function, count_of(call)):
        found = f"{describe_function(function)} takes {parameters_of(function)}"
    else:
        return
    message = f"{what} must be a function {call}; {found}"
    raise ConfigError(message)

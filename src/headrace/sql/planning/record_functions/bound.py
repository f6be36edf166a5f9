"""Functions that the DSL calls per record, around a compiled function that they look up once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol


class Compiled(Protocol):
    """Protocol of objects with a compiled function."""

    @property
    def function(self) -> Callable[..., Any]: ...

    def variant(self, parameters: str, guard: str) -> Callable[..., Any]:
        """Returns the function with other parameters and a statement before its own."""
        ...


class Bound:
    """Holds something compiled, and after the first call its function: a call per record less."""

    __slots__ = ("_function", "compiled")

    def __init__(self, compiled: Compiled) -> None:
        self.compiled = compiled
        self._function: Callable[..., Any] | None = None

    def bind(self) -> Callable[..., Any]:
        """Returns the compiled function, and keeps it."""
        self._function = self.compiled.function
        return self._function

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.compiled,)

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and self.__reduce__() == other.__reduce__()

    def __hash__(self) -> int:
        return hash(type(self))

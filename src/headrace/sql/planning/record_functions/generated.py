"""Functions made of source, once per process: they take no loops and no calls that are known to do nothing."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any


class Generated:
    """A function made of Python source. It pickles as its source and what the names in it stand for.

    >>> Generated("row", "[row[0] + one]", {"one": 1})([4])
    [5]
    """

    __slots__ = ("_function", "expression", "names", "parameters")

    def __init__(self, parameters: str, expression: str, names: Mapping[str, Any]) -> None:
        self.parameters = parameters
        self.expression = expression
        self.names = dict(names)
        self._function: Callable[..., Any] | None = None

    def __call__(self, *arguments: Any) -> Any:
        return self.function(*arguments)

    @property
    def function(self) -> Callable[..., Any]:
        """The function itself: the quickest way to call it many times."""
        if self._function is None:
            self._function = eval(f"lambda {self.parameters}: {self.expression}", dict(self.names))
        return self._function

    def made_function(self) -> Callable[..., Any]:
        """Returns the function, to be called per record."""
        return self.function

    def __reduce__(self) -> tuple[type[Generated], tuple[str, str, dict[str, Any]]]:
        return Generated, (self.parameters, self.expression, self.names)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Generated) and self.__reduce__() == other.__reduce__()

    def __hash__(self) -> int:
        return hash((self.parameters, self.expression))

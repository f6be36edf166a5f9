"""The functions that statements can call, by name."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from difflib import get_close_matches

from headrace.sql.errors import SqlFunctionError
from headrace.sql.functions.definitions import AggregateFunction, AnyFunction, TableFunction


class FunctionRegistry:
    """The functions of an engine. Never changed: adding a function makes another registry.

    >>> from headrace.sql.functions import BUILTIN_FUNCTIONS
    >>> BUILTIN_FUNCTIONS.is_aggregate("count"), BUILTIN_FUNCTIONS.is_aggregate("ucase")
    (True, False)
    """

    def __init__(self, functions: Iterable[AnyFunction] = ()) -> None:
        self._functions = {function.name.upper(): function for function in functions}

    def __iter__(self) -> Iterator[AnyFunction]:
        return iter(sorted(self._functions.values(), key=lambda function: function.name.upper()))

    def __contains__(self, name: str) -> bool:
        return name.upper() in self._functions

    def find(self, name: str) -> AnyFunction | None:
        """Returns the function of that name in any case, or None."""
        return self._functions.get(name.upper())

    def function(self, name: str) -> AnyFunction:
        """Returns the function of that name in any case; raises ``SqlFunctionError`` if there is none."""
        found = self.find(name)
        if found is None:
            similar = get_close_matches(name.upper(), self._functions, n=1)
            hint = f"; did you mean {similar[0]}?" if similar else ""
            message = f"Can't find any functions with the name '{name}'{hint}"
            raise SqlFunctionError(message)
        return found

    def is_aggregate(self, name: str) -> bool:
        """Whether the name is that of an aggregate function."""
        return isinstance(self.find(name), AggregateFunction)

    def is_table(self, name: str) -> bool:
        """Whether the name is that of a table function."""
        return isinstance(self.find(name), TableFunction)

    def with_functions(self, *functions: AnyFunction) -> FunctionRegistry:
        """Returns a registry that has these functions too; one of the same name is replaced."""
        return FunctionRegistry([*self._functions.values(), *functions])

    def without(self, name: str) -> FunctionRegistry:
        """Returns a registry without the function of that name."""
        return FunctionRegistry(one for key, one in self._functions.items() if key != name.upper())

"""Definitions of functions: names, overloads, documentation."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from headrace.sql.functions.signatures import Parameter, Signature, signature
from headrace.sql.types import SqlType


@dataclass(frozen=True, slots=True)
class CallSite:
    """One call in a statement: what is known of it before the first row."""

    types: tuple[SqlType | None, ...]
    """The type of each argument, None for NULL, lambdas and units of time."""
    settings: Mapping[str, object]


@dataclass(frozen=True, slots=True)
class Overload:
    """One way to call a scalar or table function."""

    signature: Signature
    function: Callable[..., Any] | None = None
    """What is called with the arguments; a function of a module, so that it pickles."""
    returns: Callable[[Sequence[SqlType | None]], SqlType | None] | None = None
    """The type of the result by those of the arguments, where the signature alone does not say it."""
    bind: Callable[[CallSite], Callable[..., Any]] | None = None
    """Makes ``function`` for one call, where it depends on types or settings; the result pickles."""
    strict: bool = True
    """Whether a NULL argument gives NULL without a call."""


@dataclass(frozen=True, slots=True)
class Function:
    """Base of scalar, table and aggregate functions."""

    name: str
    """As messages write it; statements may write it in any case."""
    description: str
    """One sentence."""
    category: str
    examples: tuple[tuple[str, str], ...]
    """Calls and their results, both as SQL."""
    kind: ClassVar[str] = ""


@dataclass(frozen=True, slots=True)
class ScalarFunction(Function):
    """One value for the arguments of one row."""

    overloads: tuple[Overload, ...]
    kind: ClassVar[str] = "SCALAR"


@dataclass(frozen=True, slots=True)
class TableFunction(Function):
    """Any number of rows for the arguments of one row: ``function`` returns a list, the type is that of an item."""

    overloads: tuple[Overload, ...]
    kind: ClassVar[str] = "TABLE"


class Aggregate:
    """Folds the rows of a group into a state. A state is a value of ``state_type`` and is never changed in place."""

    state_type: SqlType
    result_type: SqlType
    can_undo: ClassVar[bool] = False
    """Whether a row can be taken back, which aggregating a table needs."""

    def initialize(self) -> Any:
        """Returns the state of a group without rows."""
        raise NotImplementedError

    def aggregate(self, state: Any, *values: Any) -> Any:
        """Returns the state with one more row."""
        raise NotImplementedError

    def merge(self, left: Any, right: Any) -> Any:
        """Returns the state of two sessions that became one, ``left`` being the earlier one."""
        raise NotImplementedError

    def undo(self, state: Any, *values: Any) -> Any:
        """Returns the state without a row that was aggregated before."""
        raise NotImplementedError

    def map(self, state: Any) -> Any:
        """Returns the result for a state."""
        return state


class ListAggregate(Aggregate):
    """An aggregate whose state is the list that it gives."""

    @property
    def result_type(self) -> SqlType:  # type: ignore[override]  # it follows from the state
        return self.state_type

    def initialize(self) -> list[Any]:
        return []


@dataclass(frozen=True, slots=True)
class AggregateOverload:
    """One way to call an aggregate function.

    The last ``constants`` arguments (for a variadic constant: at least as many) are literals that ``make`` gets.
    """

    signature: Signature
    make: Callable[[Sequence[SqlType | None], Sequence[Any], Mapping[str, object]], Aggregate]
    """Makes the aggregate from the types of the columns, the constants and the settings."""
    constants: int = 0

    @property
    def columns(self) -> tuple[Parameter, ...]:
        """The parameters that take expressions over rows."""
        return self.signature.parameters[: len(self.signature.parameters) - self.constants]


@dataclass(frozen=True, slots=True)
class AggregateFunction(Function):
    """One value for the rows of a group."""

    overloads: tuple[AggregateOverload, ...]
    kind: ClassVar[str] = "AGGREGATE"


AnyFunction = ScalarFunction | TableFunction | AggregateFunction


def overload(
    text: str,
    function: Callable[..., Any] | None = None,
    *,
    returns: Callable[[Sequence[SqlType | None]], SqlType | None] | None = None,
    bind: Callable[[CallSite], Callable[..., Any]] | None = None,
    strict: bool = True,
) -> Overload:
    """Returns an overload from the text of its signature."""
    return Overload(signature(text), function, returns, bind, strict)


def scalar(
    name: str, description: str, category: str, examples: Sequence[tuple[str, str]], *overloads: Overload
) -> ScalarFunction:
    """Returns a scalar function."""
    return ScalarFunction(name, description, category, tuple(examples), overloads)

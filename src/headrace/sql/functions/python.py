"""Functions written in Python, called from SQL: types come from hints (see ``type_hints``), words from docstrings.

A decorated function stays what it is, so that Python can go on calling it; ``sql_function`` makes the SQL function.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from itertools import islice
from typing import Any, TypeVar, get_type_hints, overload

from headrace.arguments.signatures import describe_function
from headrace.sql.errors import SqlFunctionError
from headrace.sql.functions.definitions import (
    Aggregate,
    AggregateFunction,
    AggregateOverload,
    AnyFunction,
    CallSite,
    Overload,
    ScalarFunction,
    TableFunction,
)
from headrace.sql.functions.resolution import fits, spread, spread_places
from headrace.sql.functions.signatures import AnyDecimal, AnyStruct, Exactly, Parameter, Signature, resolved
from headrace.sql.functions.sizes import MOST_ITEMS
from headrace.sql.functions.type_hints import accepted_of, item_hint, type_of, without_none
from headrace.sql.functions.user_values import CheckedFunction, misses_value, result_of
from headrace.sql.types import SqlType

CATEGORY = "User"
_MARK = "__sql_function__"
F = TypeVar("F", bound=Callable[..., Any])
C = TypeVar("C", bound=type)
M = TypeVar("M")


@dataclass(frozen=True, slots=True)
class _Mark:
    kind: str
    name: str | None


@overload
def udf(function: F, *, name: str | None = None) -> F: ...
@overload
def udf(function: None = None, *, name: str | None = None) -> Callable[[F], F]: ...
def udf(function: F | None = None, *, name: str | None = None) -> F | Callable[[F], F]:
    """Marks a Python function as a scalar function of SQL. Its name is that of the function unless another is given.

    A NULL argument gives NULL without a call, unless the hint of its parameter allows ``None``. An exception gives NULL
    in that column and a line in the processing log, and so does a result that is not of the declared type.

    >>> @udf
    ... def shout(text: str, times: int = 1) -> str:
    ...     '''Returns the text in upper case, with exclamation marks.'''
    ...     return text.upper() + "!" * times
    >>> shout("hey"), sql_function(shout).name, [str(one.signature) for one in sql_function(shout).overloads]
    ('HEY!', 'SHOUT', ['(VARCHAR text)', '(VARCHAR text, BIGINT times)'])
    """
    return _marked(function, _Mark("SCALAR", name))


@overload
def udtf(function: F, *, name: str | None = None) -> F: ...
@overload
def udtf(function: None = None, *, name: str | None = None) -> Callable[[F], F]: ...
def udtf(function: F | None = None, *, name: str | None = None) -> F | Callable[[F], F]:
    """Marks a Python function as a table function of SQL: it returns a list, or yields, one item per row.

    >>> from collections.abc import Iterator
    >>> @udtf
    ... def words(text: str) -> Iterator[str]:
    ...     yield from text.split()
    >>> sql_function(words).kind
    'TABLE'
    """
    return _marked(function, _Mark("TABLE", name))


@overload
def udaf(kind: C, *, name: str | None = None) -> C: ...
@overload
def udaf(kind: None = None, *, name: str | None = None) -> Callable[[C], C]: ...
def udaf(kind: C | None = None, *, name: str | None = None) -> C | Callable[[C], C]:
    """Marks a class as an aggregate function of SQL; an instance folds the rows of all groups.

    It has ``initialize() -> state``, ``aggregate(state, *values) -> state``, and where they are needed
    ``merge(left, right) -> state`` (session windows), ``undo(state, *values) -> state`` (tables) and
    ``map(state) -> result``. Arguments of ``__init__`` are literals of the call. A state is a value that SQL can hold,
    by the hint of ``initialize``, and must not be changed in place. Rows with a NULL that the hints of ``aggregate`` do
    not allow are left out.

    >>> @udaf
    ... class Longest:
    ...     def initialize(self) -> str:
    ...         return ""
    ...     def aggregate(self, state: str, text: str) -> str:
    ...         return max(state, text, key=len)
    >>> str(sql_function(Longest).overloads[0].signature)
    '(VARCHAR text)'
    """
    return _marked(kind, _Mark("AGGREGATE", name))


def _marked(target: M | None, mark: _Mark) -> M | Callable[[M], M]:
    def marked(target: M) -> M:
        setattr(target, _MARK, mark)
        return target

    return marked if target is None else marked(target)


def sql_function(target: Any, name: str | None = None) -> AnyFunction:
    """Returns the SQL function of a Python function or class; without a mark, a class is an aggregate function."""
    mark = getattr(target, _MARK, None) or _Mark("AGGREGATE" if inspect.isclass(target) else "SCALAR", None)
    if not callable(target):
        message = f"{target!r} is no function; name a Python function, or a class with initialize and aggregate"
        raise SqlFunctionError(message)
    words = inspect.getdoc(target) or ""
    called = (name or mark.name or target.__name__).upper()
    description = words.split("\n\n")[0].replace("\n", " ")
    if mark.kind == "AGGREGATE":
        return AggregateFunction(called, description, CATEGORY, (), _aggregate_overloads(target))
    overloads = _overloads(target, rows=mark.kind == "TABLE")
    kind = TableFunction if mark.kind == "TABLE" else ScalarFunction
    return kind(called, description, CATEGORY, (), overloads)


def load_function(target: str, name: str | None = None) -> AnyFunction:
    """Returns the SQL function of a Python function named as ``module:function``.

    >>> load_function("math:no_such")
    Traceback (most recent call last):
    headrace.sql.errors.SqlFunctionError: function 'math:no_such': the module 'math' has no 'no_such'; ...
    """
    module_name, _, path = target.partition(":")
    if not path:
        message = f"function {target!r}: write the place of a Python function as 'module:function'"
        raise SqlFunctionError(message)
    try:
        found: Any = import_module(module_name)
    except ImportError as error:
        message = f"function {target!r}: the module {module_name!r} cannot be imported: {error}"
        raise SqlFunctionError(message) from error
    for part in path.split("."):
        if not hasattr(found, part):
            message = f"function {target!r}: the module {module_name!r} has no {path!r}; check its spelling"
            raise SqlFunctionError(message)
        found = getattr(found, part)
    return sql_function(found, name)


def _hints(function: Any, where: str) -> dict[str, Any]:
    try:
        return get_type_hints(function, include_extras=True)
    except NameError as error:
        message = f"{where}: its hints cannot be read: {error}; import what they name, outside of functions"
        raise SqlFunctionError(message) from error


def _parameters(function: Any, where: str, *, skip: int = 0) -> tuple[list[Parameter], int, tuple[bool, ...]]:
    """Returns the parameters, how many of them a call has to give, and which of them take None."""
    hints = _hints(function, where)
    parameters: list[Parameter] = []
    required = 0
    takes_none: list[bool] = []
    for one in list(inspect.signature(function).parameters.values())[skip:]:
        if one.kind in (one.KEYWORD_ONLY, one.VAR_KEYWORD):
            continue
        if one.name not in hints:
            message = f"{where}: the parameter {one.name!r} has no type hint; SQL needs one, such as {one.name}: str"
            raise SqlFunctionError(message)
        takes_none.append(without_none(hints[one.name])[1])
        parameters.append(Parameter(one.name, accepted_of(hints[one.name], where), one.kind is one.VAR_POSITIONAL))
        required += one.default is one.empty and one.kind is not one.VAR_POSITIONAL
    return parameters, required, tuple(takes_none)


def _overloads(function: Any, *, rows: bool) -> tuple[Overload, ...]:
    where = f"function {describe_function(function)}"
    parameters, required, takes_none = _parameters(function, where)
    hints = _hints(function, where)
    if "return" not in hints:
        message = f"{where}: it has no hint for its result; SQL needs one, such as -> str"
        raise SqlFunctionError(message)
    result = item_hint(hints["return"], where) if rows else hints["return"]
    accepted = accepted_of(result, where)
    if isinstance(accepted, AnyDecimal):
        type_of(result, where)
    fixed = type_of(result, where) if isinstance(accepted, AnyStruct) else None
    overloads: list[Overload] = []
    for count in range(required, len(parameters) + 1):
        taken = tuple(parameters[:count])
        if taken != tuple(parameters) and len(parameters) > count and parameters[count].variadic:
            continue
        signature = Signature(taken, accepted)
        returns = partial(_result_type, signature, fixed)
        bind = partial(_bound, function, signature, takes_none, fixed, rows=rows)
        overloads.append(Overload(signature, None, returns, bind, strict=not any(takes_none) and not rows))
    return tuple(overloads)


def _bound(
    function: Callable[..., Any],
    signature: Signature,
    takes_none: tuple[bool, ...],
    fixed: SqlType | None,
    site: CallSite,
    *,
    rows: bool,
) -> Callable[..., Any]:
    """Returns the function for calls with arguments of these types."""
    places = spread_places(signature, len(site.types)) or []
    taken = tuple(takes_none[place] for place in places)
    result = _result_type(signature, fixed, site.types)
    if result is None:
        # Nothing but NULL tells what a type variable stands for: there is nothing to hold the result against.
        return Listed(function, taken, None) if rows else function
    if rows:
        return Listed(function, taken, result)
    return CheckedFunction(function, taken if any(taken) else (), result)


def _result_type(signature: Signature, fixed: SqlType | None, types: Sequence[SqlType | None]) -> SqlType | None:
    if fixed is not None:
        return fixed
    generics: dict[str, SqlType] = {}
    for parameter, found in zip(spread(signature, len(types)) or (), types, strict=True):
        fits(parameter.accepts, found, generics, with_casts=True)
    return resolved(signature.returns, generics)


@dataclass(frozen=True, slots=True)
class Listed:
    """A table function whose rows come as a list, whatever the function returns; NULL arguments give no rows."""

    user_function: Callable[..., Any]
    takes_none: tuple[bool, ...]
    """Of each argument."""
    item: SqlType | None
    """The type of a row."""

    def __call__(self, *arguments: Any) -> list[Any]:
        if misses_value(self.takes_none, arguments):
            return []
        found = self.user_function(*arguments)
        if found is None:
            return []
        # One more than may be: a generator need not have an end.
        rows = list(islice(found, MOST_ITEMS + 1))
        if len(rows) > MOST_ITEMS:
            name = getattr(self.user_function, "__qualname__", repr(self.user_function))
            message = f"the table function {name} may return {MOST_ITEMS:,} rows at most for a row"
            raise ValueError(message)
        return rows if self.item is None else [result_of(self.user_function, row, self.item) for row in rows]


class PythonAggregate(Aggregate):
    """An aggregate whose methods are those of a user's class."""

    def __init__(self, user: Any, state_type: SqlType, result_type: SqlType, takes_none: tuple[bool, ...]) -> None:
        self.user = user
        self.state_type = state_type
        self.result_type = result_type
        self.takes_none = takes_none
        """Which arguments may be NULL; rows with a NULL in another one do not count."""

    @property
    def can_undo(self) -> bool:  # type: ignore[override]  # a class of a user may have it or not
        """Whether the class has a method ``undo``."""
        return hasattr(self.user, "undo")

    def initialize(self) -> Any:
        return self._state(self.user.initialize)

    def aggregate(self, state: Any, *values: Any) -> Any:
        if misses_value(self.takes_none, values):
            return state
        return self._state(self.user.aggregate, state, *values)

    def merge(self, left: Any, right: Any) -> Any:
        return self._state(self.user.merge, left, right)

    def undo(self, state: Any, *values: Any) -> Any:
        if misses_value(self.takes_none, values):
            return state
        return self._state(self.user.undo, state, *values)

    def _state(self, method: Callable[..., Any], *arguments: Any) -> Any:
        return result_of(method, method(*arguments), self.state_type)

    def map(self, state: Any) -> Any:
        if not hasattr(self.user, "map"):
            return state
        return result_of(self.user.map, self.user.map(state), self.result_type)


def _aggregate_overloads(kind: Any) -> tuple[AggregateOverload, ...]:
    where = f"aggregate {describe_function(kind)}"
    for method in ("initialize", "aggregate"):
        if not hasattr(kind, method):
            message = f"{where}: it has no method {method}; an aggregate needs initialize() and aggregate(state, …)"
            raise SqlFunctionError(message)
    columns, _, takes_none = _parameters(kind.aggregate, where, skip=2)
    variadic = next((place for place, column in enumerate(columns) if column.variadic), None)
    constants: list[Parameter] = []
    required = 0
    if kind.__init__ is not object.__init__:
        constants, required, _ = _parameters(kind.__init__, where, skip=1)
    state_type = _state_type(kind, where)
    hints = _hints(kind.map, where) if hasattr(kind, "map") else {}
    result = accepted_of(hints["return"], where) if "return" in hints else None

    def with_constants(count: int) -> AggregateOverload:
        taken = constants[:count]
        result_type = type_of(hints["return"], where) if result is not None else state_type
        make = partial(_made, kind, state_type, result_type, takes_none, variadic)
        return AggregateOverload(Signature((*columns, *taken), Exactly(result_type)), make, count)

    return tuple(with_constants(count) for count in range(required, len(constants) + 1))


def _state_type(kind: Any, where: str) -> SqlType:
    hints = _hints(kind.initialize, where)
    if "return" not in hints:
        message = f"{where}: initialize has no hint for the state; SQL needs one to store it, such as -> int"
        raise SqlFunctionError(message)
    return type_of(hints["return"], where)


def _made(
    kind: Any,
    state_type: SqlType,
    result_type: SqlType,
    takes_none: tuple[bool, ...],
    variadic: int | None,
    types: Sequence[SqlType | None],
    constants: Sequence[Any],
    settings: Mapping[str, object],
) -> Aggregate:
    if variadic is not None:
        more = len(types) - len(takes_none) + 1
        takes_none = takes_none[:variadic] + (takes_none[variadic],) * more + takes_none[variadic + 1 :]
    return PythonAggregate(kind(*constants), state_type, result_type, takes_none)

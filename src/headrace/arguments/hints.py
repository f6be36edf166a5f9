"""Help for those who come from Kafka Streams: what to call instead of a name, or a call, that does not exist here."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping
from functools import wraps
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from headrace.errors import TopologyError, describe_value, did_you_mean

C = TypeVar("C")

_WORD = re.compile(r"(?<=[a-z0-9])([A-Z])")


def snake_case(name: str) -> str:
    """Returns a name of Kafka Streams as it is written here.

    >>> snake_case("ofSizeWithNoGrace"), snake_case("map_values")
    ('of_size_with_no_grace', 'map_values')
    """
    return _WORD.sub(r"_\1", name).lower()


def each(hint: str, *names: str) -> dict[str, str]:
    """Returns one hint for several names; ``{}`` stands for the name.

    >>> each("group first: group_by_key().{}(…)", "count")
    {'count': 'group first: group_by_key().count(…)'}
    """
    return {name: hint.replace("{}", name) for name in names}


class Hinting:
    """Answers an unknown attribute with what to use instead; ``_HINTS`` has what the spelling alone does not tell.

    In a hint ``{owner}`` stands for the name of the class.
    """

    __slots__ = ()
    _HINTS: ClassVar[Mapping[str, str]] = {}

    # Type checkers must not see it: to them it would make every name a known one.
    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            raise _unknown(type(self), f"{type(self).__name__!r} object", name)


class HintingType(type):
    """The same for the attributes of a class itself."""

    if not TYPE_CHECKING:

        def __getattr__(cls, name: str) -> Any:
            raise _unknown(cls, f"type object {cls.__name__!r}", name)


class OptionType(HintingType):
    """Type of options, which are values with keyword arguments: it also says how they are made."""

    _all: ClassVar[dict[str, type]] = {}

    def __init__(cls, name: str, bases: tuple[type, ...], namespace: dict[str, Any]) -> None:
        super().__init__(name, bases, namespace)
        OptionType._all[name.lower()] = cls

    @staticmethod
    def of_parameter(parameter: str, field: str) -> str | None:
        """Returns the option that a method takes as ``parameter``, if it has such a field."""
        option = OptionType._all.get(parameter)
        return option.__name__ if option is not None and field in vars(option)["__dataclass_fields__"] else None

    @property
    def __signature__(cls) -> inspect.Signature:
        # What inspect would find is __call__ below.
        signature = inspect.signature(vars(cls)["__init__"])
        return signature.replace(parameters=list(signature.parameters.values())[1:])

    # To type checkers calling an option gives what its constructor says.
    if not TYPE_CHECKING:

        def __call__(cls, *args: Any, **options: Any) -> Any:
            try:
                return super().__call__(*args, **options)
            except TypeError as error:
                signature = inspect.signature(cls.__init__)
                try:
                    signature.bind(None, *args, **options)
                except TypeError as problem:
                    raise _misused(cls.__name__, cls.__name__, signature, args, str(problem)) from None
                raise error


def _unknown(owner: type, what: str, name: str) -> AttributeError:
    message = f"{what} has no attribute '{name}'"
    if not name.startswith("_"):
        known = [known for known in dir(owner) if not known.startswith("_")]
        hints: Mapping[str, str] = getattr(owner, "_HINTS", {})
        snake = snake_case(name)
        if snake in hints:
            message += f"; {hints[snake].replace('{owner}', owner.__name__)}"
        else:
            message += f"; did you mean '{snake}'?" if snake in known else did_you_mean(snake, known)
    # With an object Python would add a guess of its own to ours.
    return AttributeError(message, name=name, obj=None)


def explaining(owner: type[C]) -> type[C]:
    """Makes the methods of a class say how they are called to those who call them otherwise.

    Python would say "takes 2 positional arguments but 3 were given", counting ``self``, and name the private class that
    a method comes from.
    """
    for name, method in list(vars(owner).items()):
        if inspect.isfunction(method) and not name.startswith("_"):
            setattr(owner, name, _explaining(method))
    return owner


def _explaining(method: Callable[..., Any]) -> Callable[..., Any]:
    signature = inspect.signature(method)

    @wraps(method)
    def call(self: Any, *args: Any, **options: Any) -> Any:
        try:
            signature.bind(self, *args, **options)
        except TypeError as error:
            where = getattr(self, "_where", None)
            place = where(method.__name__) if callable(where) else f"{type(self).__name__}.{method.__name__}()"
            raise _misused(place, method.__name__, signature, args, str(error)) from None
        return method(self, *args, **options)

    return call


_KEYWORDS = {
    "JoinWindows": "windows",
    "Joined": "joined",
    "Materialized": "materialized",
    "Named": "name",
    "StreamJoined": "joined",
    "TableJoined": "table_joined",
    "str": "name",
}
"""How options of these types are called where a method takes them by keyword only."""


def _misused(place: str, name: str, signature: inspect.Signature, args: tuple[Any, ...], problem: str) -> TopologyError:
    parameters = list(signature.parameters.values())[1:]
    by_position = sum(parameter.kind is not inspect.Parameter.KEYWORD_ONLY for parameter in parameters)
    remedy = ""
    if len(args) > by_position:
        extra = args[by_position]
        problem = f"it takes no further argument by position; found {describe_value(extra)}"
        keyword = _KEYWORDS.get(type(extra).__name__)
        if keyword in signature.parameters:
            remedy = f"; pass {keyword}={extra!r}" if isinstance(extra, str) else f"; pass it as {keyword}=…"
    elif unexpected := re.search(r"unexpected keyword argument '(\w+)'", problem):
        remedy = _remedy_for(snake_case(unexpected[1]), signature)
    bare = [parameter.replace(annotation=inspect.Parameter.empty) for parameter in parameters]
    return TopologyError(f"{place}: {problem}; it is called as {name}{inspect.Signature(bare)}{remedy}")


def _remedy_for(keyword: str, signature: inspect.Signature) -> str:
    for parameter in signature.parameters:
        if (option := OptionType.of_parameter(parameter, keyword)) is not None:
            return f"; pass it in an option: {parameter}={option}({keyword}=…)"
        if keyword in ("store_name", "name") and parameter in ("materialized", "store"):
            return "; the name of a store is the first argument of Materialized"
    return did_you_mean(keyword, signature.parameters)

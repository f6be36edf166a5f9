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
    """Answers an unknown attribute with what to use instead; ``_HINTS`` has what the spelling alone does not tell."""

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


def _unknown(owner: type, what: str, name: str) -> AttributeError:
    message = f"{what} has no attribute '{name}'"
    if not name.startswith("_"):
        known = [known for known in dir(owner) if not known.startswith("_")]
        hints: Mapping[str, str] = getattr(owner, "_HINTS", {})
        snake = snake_case(name)
        if snake in hints:
            message += f"; {hints[snake]}"
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
            raise _misused(self, method.__name__, signature, args, str(error)) from None
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


def _misused(owner: Any, name: str, signature: inspect.Signature, args: tuple[Any, ...], problem: str) -> TopologyError:
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
        remedy = did_you_mean(snake_case(unexpected[1]), signature.parameters)
    bare = [parameter.replace(annotation=inspect.Parameter.empty) for parameter in parameters]
    where = getattr(owner, "_where", None)
    place = where(name) if callable(where) else f"{type(owner).__name__}.{name}()"
    return TopologyError(f"{place}: {problem}; it is called as {name}{inspect.Signature(bare)}{remedy}")

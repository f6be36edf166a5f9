"""Names of nodes, stores and internal topics: given by the user, or counted as Kafka Streams counts them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import ClassVar

from headrace.arguments.hints import HintingType
from headrace.errors import TopologyError, describe_value

MAX_NAME_LENGTH = 249
_LEGAL = re.compile(r"[a-zA-Z0-9._-]+")
# A repartition topic whose base looks like this gets counted node names instead of names derived from the topic.
_COUNTED = re.compile(r"KSTREAM.*-[0-9]{10}")

REPARTITION_SUFFIX = "-repartition"


class Named(str, metaclass=HintingType):
    """A name that a node, store or internal topic may have.

    Letters, digits, ``.``, ``_`` and ``-``, at most 249 characters, neither ``.`` nor ``..``: what Kafka accepts as a
    topic name, because names of internal topics are made from it.

    >>> Named("by-user")
    'by-user'
    >>> Named("by user")
    Traceback (most recent call last):
    ...
    headrace.errors.TopologyError: name 'by user' is illegal: use only ASCII letters, digits, '.', '_' and '-'
    """

    __slots__ = ()
    _HINTS: ClassVar[Mapping[str, str]] = {"as_": "a str will do where a name is wanted"}

    def __new__(cls, name: str) -> Named:
        if (problem := _problem(name)) is not None:
            raise TopologyError(problem)
        return super().__new__(cls, name)


def _problem(name: object) -> str | None:
    if not isinstance(name, str):
        return f"a name must be a str, found {describe_value(name)}"
    if not name:
        return "a name must not be empty; leave it out to get a generated one"
    if name in {".", ".."}:
        return f"name '{name}' is illegal: '.' and '..' are reserved"
    if len(name) > MAX_NAME_LENGTH:
        return f"name '{name}' is illegal: at most {MAX_NAME_LENGTH} characters are allowed, found {len(name)}"
    if not _LEGAL.fullmatch(name):
        return f"name '{name}' is illegal: use only ASCII letters, digits, '.', '_' and '-'"
    return None


def checked(name: str | None, option: str | None = None, hint: str = "") -> str | None:
    """Returns the name if it may be used; None stays None. ``option`` is where it was given."""
    if name is None:
        return None
    if (problem := _problem(name)) is not None:
        message = f"{problem if option is None else f'{option}: {problem}'}{hint}"
        raise TopologyError(message)
    return str(name)


class NameCounter:
    """Counts the generated names of one builder.

    Every node takes an index, also when the user names it: so naming one node leaves the names of all others alone.

    >>> names = NameCounter()
    >>> names.node("KSTREAM-SOURCE-"), names.named("mine", "KSTREAM-FILTER-"), names.store("KSTREAM-AGGREGATE-")
    ('KSTREAM-SOURCE-0000000000', 'mine', 'KSTREAM-AGGREGATE-STATE-STORE-0000000002')
    """

    def __init__(self) -> None:
        self._next = 0

    def node(self, prefix: str) -> str:
        """Returns the next generated name with that prefix."""
        index = self._next
        self._next += 1
        return f"{prefix}{index:010d}"

    def store(self, prefix: str) -> str:
        """Returns the next generated name of a store."""
        return self.node(f"{prefix}STATE-STORE-")

    def named(self, name: str | None, prefix: str) -> str:
        """Returns the user's name, or a generated one."""
        generated = self.node(prefix)
        return generated if name is None else str(Named(name))

    def suffixed(self, name: str | None, suffix: str, prefix: str) -> str:
        """Returns the user's name with a suffix, or a generated one."""
        generated = self.node(prefix)
        return generated if name is None else str(Named(Named(name) + suffix))


def has_counted_name(base: str) -> bool:
    """Tells whether the base of a repartition topic's name is itself a generated one."""
    return _COUNTED.fullmatch(base) is not None

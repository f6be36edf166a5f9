"""Looks names up in the package: what they are, and how they are called."""

from __future__ import annotations

import builtins
import datetime
import importlib
import inspect
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from types import ModuleType
from typing import Any

from tools.api_reference.docstrings import alias_docs, field_docs, summary_of

MODULES = (
    "headrace",
    "headrace.config",
    "headrace.dsl",
    "headrace.errors",
    "headrace.handlers",
    "headrace.record",
    "headrace.serdes",
    "headrace.state",
    "headrace.processor",
    "headrace.views",
    "headrace.testing",
    "headrace.timestamps",
    "headrace.topics.partitioner",
    "headrace.topology",
    "headrace.windows",
)
"""Where public names are looked for, in this order."""

_REFERENCE = re.compile(r"([A-Za-z_][\w.]*)(?:\((.*)\))?")
_KEYWORD = re.compile(r"(\w+)=")


class UnknownNameError(LookupError):
    """The page would claim something that the package does not have: correct the mapping, or add it."""


@dataclass(frozen=True, slots=True)
class Found:
    """Something public: its name, how it is called, and what it does, in a sentence."""

    name: str
    call: str
    summary: str
    value: Any


def find(reference: str, owner: type | None = None) -> Found:
    """Finds a name such as ``KStream.join(windows=)``; keywords in the call must be parameters.

    With ``owner``, a name without dots is first looked for among its members.

    >>> find("Record.with_key").call
    'Record.with_key(key)'
    """
    match = _REFERENCE.fullmatch(reference)
    if match is None:
        message = f"'{reference}' is not a name"
        raise UnknownNameError(message)
    name, arguments = match.groups()
    found = (owner is not None and "." not in name and find_member(owner, name)) or _find_public(name)
    keywords = set(_KEYWORD.findall(arguments or ""))
    missing = keywords and keywords - set(inspect.signature(found.value).parameters)
    if missing:
        message = f"{found.name} has no parameter {', '.join(sorted(missing))}; it is called as {found.call}"
        raise UnknownNameError(message)
    return found


def find_member(owner: type, name: str) -> Found | None:
    """Finds a public method, property or field of a class."""
    label, docs = f"{owner.__name__}.{name}", field_docs(owner)
    if name.startswith("_"):
        return None
    if not any(name in vars(base) for base in owner.__mro__[:-1]):
        return Found(label, label, docs[name], None) if name in docs else None
    value = getattr(owner, name)
    if not inspect.isroutine(value):
        return Found(label, label, summary_of(value) if isinstance(value, property) else docs.get(name, ""), value)
    plain = inspect.isfunction(value) and not isinstance(inspect.getattr_static(owner, name), staticmethod)
    summary = summary_of(value) or _summary_of_store(owner, name)
    return Found(label, f"{label}({_arguments(value, skip=int(plain))})", summary, value)


def _summary_of_store(owner: type, name: str) -> str:
    """What a read-only face leaves to the docstring of the store that it reads."""
    store = owner.__name__.removeprefix("ReadOnly")
    return _find_public(f"{store}.{name}").summary if store != owner.__name__ else ""


def constructor(owner: type) -> Found:
    """Describes how a class is called."""
    # What an exception takes that has no __init__ of its own depends on the version of Python.
    plain = issubclass(owner, BaseException) and not inspect.isfunction(owner.__init__)
    return Found(owner.__name__, f"{owner.__name__}({'message' if plain else _arguments(owner)})", "", owner)


def is_public(name: str) -> bool:
    """Tells whether there is something public of that name."""
    return any(hasattr(module, name) and _offers(module, name) for module in _modules())


def public_path(name: str) -> str:
    """Says where to import a name from.

    >>> public_path("KStream")
    'headrace.KStream'
    """
    return f"{_module_of(name).__name__}.{name}"


def public_names() -> list[str]:
    """All names that ``import headrace`` offers."""
    names: list[str] = importlib.import_module("headrace").__all__
    return names


def _find_public(name: str) -> Found:
    first, *rest = name.split(".")
    module = _module_of(first)
    value = getattr(module, first)
    if not rest:
        if isinstance(value, type):
            return Found(name, name, summary_of(value), value)
        if inspect.isroutine(value):
            return Found(name, f"{name}({_arguments(value)})", summary_of(value), value)
        return Found(name, name, alias_docs(module).get(name, ""), value)
    found = find_member(value, rest[0]) if isinstance(value, type) and len(rest) == 1 else None
    if found is None:
        message = f"there is no {name} in Headrace"
        raise UnknownNameError(message)
    return found


def _module_of(name: str) -> ModuleType:
    for module in (*_modules(), datetime, builtins):
        if hasattr(module, name) and _offers(module, name):
            return module
    message = f"there is no {name} in Headrace"
    raise UnknownNameError(message)


def _offers(module: ModuleType, name: str) -> bool:
    if hasattr(module, "__all__") or module is builtins:
        return name in getattr(module, "__all__", vars(module))
    # Without a list, what a module defines is offered, and what it has only imported is not.
    return getattr(getattr(module, name), "__module__", "") == module.__name__ or name in alias_docs(module)


@cache
def _modules() -> tuple[ModuleType, ...]:
    return tuple(importlib.import_module(name) for name in MODULES)


class _Elsewhere:
    def __repr__(self) -> str:
        return "…"


def _arguments(value: Callable[..., Any], skip: int = 0) -> str:
    parameters = list(inspect.signature(value).parameters.values())[skip:]
    plain = [one.replace(annotation=inspect.Parameter.empty, default=_default(one)) for one in parameters]
    return str(inspect.Signature(plain))[1:-1].removesuffix(", /")


def _default(parameter: inspect.Parameter) -> Any:
    simple = parameter.default is inspect.Parameter.empty or isinstance(parameter.default, int | str | None)
    return parameter.default if simple else _Elsewhere()

"""Properties of a type that serdes use: the classes of its values, and whether they are immutable."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum
from functools import cache
from types import NoneType, UnionType
from typing import Annotated, Any, ClassVar, Final, Literal, NewType, Union, get_args, get_origin, get_type_hints
from uuid import UUID

import msgspec
from msgspec import inspect

_IMMUTABLE = frozenset({str, bytes, int, float, bool, NoneType, datetime, date, time, timedelta, Decimal, UUID})
_NOT_VALUES = (Annotated, Final)


@cache
def is_immutable(type_: Any) -> bool:
    """Tells whether no value of a type can change: plain values, and frozen classes and tuples of them.

    >>> is_immutable(tuple[str, int]), is_immutable(list[int])
    (True, False)
    """
    return _is_immutable(type_, ())


@cache
def accepted_types(type_: Any) -> tuple[type, ...]:
    """Returns the classes that the values of a type have, ``(object,)`` when the type does not tell.

    >>> accepted_types(list[int]), accepted_types(str | None)
    ((<class 'list'>,), (<class 'str'>, <class 'NoneType'>))
    """
    if type_ is Any:
        return (object,)
    origin = get_origin(type_)
    if origin in (Union, UnionType):
        return tuple(accepted for part in get_args(type_) for accepted in accepted_types(part))
    if origin in _NOT_VALUES:
        return accepted_types(get_args(type_)[0])
    if origin is Literal:
        return tuple({type(value) for value in get_args(type_)})
    if isinstance(type_, NewType):
        return accepted_types(type_.__supertype__)
    found = origin or type_
    # A TypedDict is a class in name only: its values are dicts.
    if isinstance(found, type) and hasattr(found, "__total__") and issubclass(found, dict):
        return (dict,)
    return (found,) if isinstance(found, type) else (object,)


@cache
def may_hold_floats(type_: Any) -> bool:
    """Tells whether a value of a type can have a float somewhere.

    >>> may_hold_floats(dict[str, list[float]]), may_hold_floats(dict[str, int])
    (True, False)
    """
    return any(isinstance(node, inspect.FloatType | inspect.AnyType | inspect.CustomType) for node in _nodes(type_))


def unknown_class(type_: Any) -> type | None:
    """Returns the first class in a type whose fields msgspec does not know, so that it reads none of its objects.

    >>> class Plain: ...
    >>> unknown_class(list[Plain]), unknown_class(list[int])
    (<class 'headrace.serdes.type_inspection.Plain'>, None)
    """
    unknown = (node.cls for node in _nodes(type_) if isinstance(node, inspect.CustomType))
    return next((cls for cls in unknown if cls is not object), None)


def _nodes(type_: Any) -> list[inspect.Type]:
    found: dict[int, inspect.Type] = {}
    todo: list[object] = [inspect.type_info(type_)]
    while todo:
        node = todo.pop()
        if isinstance(node, tuple):
            todo += node
        elif isinstance(node, inspect.Field):
            todo.append(node.type)
        elif isinstance(node, inspect.Type) and id(node) not in found:
            found[id(node)] = node
            todo += (getattr(node, name) for name in node.__struct_fields__)
    return list(found.values())


def _is_immutable(type_: Any, seen: tuple[Any, ...]) -> bool:
    if type_ in _IMMUTABLE or type_ in seen:
        return True
    origin, arguments = get_origin(type_), get_args(type_)
    if origin in (Union, UnionType, tuple, frozenset):
        return bool(arguments) and all(part is Ellipsis or _is_immutable(part, seen) for part in arguments)
    if origin in _NOT_VALUES:
        return _is_immutable(arguments[0], seen)
    if origin is Literal:
        return True
    if isinstance(type_, NewType):
        return _is_immutable(type_.__supertype__, seen)
    if not isinstance(type_, type):
        return False
    if issubclass(type_, Enum):
        return True
    return _is_frozen(type_) and all(_is_immutable(part, (*seen, type_)) for part in _field_types(type_))


def _is_frozen(type_: type) -> bool:
    if issubclass(type_, msgspec.Struct):
        return type_.__struct_config__.frozen
    if dataclasses.is_dataclass(type_):
        # The only public trace of frozen=True is this attribute of the decorator.
        return bool(type_.__dataclass_params__.frozen)  # type: ignore[attr-defined]
    return issubclass(type_, tuple) and hasattr(type_, "_fields")


def _field_types(type_: type) -> Sequence[Any]:
    try:
        hints = get_type_hints(type_, include_extras=True)
    except NameError:
        # A forward reference that cannot be resolved here: nothing is known of that field.
        return (Any,)
    return [hint for hint in hints.values() if get_origin(hint) is not ClassVar]

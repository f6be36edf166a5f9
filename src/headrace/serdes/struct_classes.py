"""Pickling of ``msgspec.Struct`` classes that another process cannot import: a recipe that makes the class again.

A class of a script, ``__main__``, or of a function is pickled by value, name by name of its ``__dict__``. That does not
work for a ``msgspec.Struct``, whose metaclass reads the fields once, when the class is made.
"""

from __future__ import annotations

from collections.abc import Callable
from types import GetSetDescriptorType, MemberDescriptorType
from typing import Any, NamedTuple

import msgspec

CACHE = "__msgspec_cache__"
"""Where msgspec keeps, in a class, what it has found out about its fields; it cannot be pickled."""

_MADE_ANEW = frozenset(
    {
        "__struct_fields__",
        "__struct_defaults__",
        "__struct_encode_fields__",
        "__struct_config__",
        "__match_args__",
        "__annotations__",
        "__dict__",
        "__weakref__",
        "__slots__",
        "__rename__",
        CACHE,
    }
)


class Recipe(NamedTuple):
    """Arguments that make the class again, except for what may refer to the class itself."""

    name: str
    module: str
    bases: tuple[type, ...]
    fields: tuple[tuple[str, Any, Any], ...]
    """Name, default, default factory of its own fields."""
    encoded: dict[str, str]
    """How all fields are written, by name."""
    options: dict[str, Any]
    has_post_init: bool


def is_struct(cls: type) -> bool:
    """Returns whether a class needs a recipe."""
    return issubclass(cls, msgspec.Struct)


def reduce_struct(
    cls: Any,
) -> tuple[Callable[..., Any], tuple[Recipe], dict[str, Any], None, None, Callable[..., Any]]:
    """Returns what a pickler needs to make a class again: a recipe, and what is set on the class afterwards.

    >>> class Point(msgspec.Struct, frozen=True):
    ...     x: int
    ...     y: int = 0
    >>> make, recipe, state, *_, set_state = reduce_struct(Point)
    >>> again = make(*recipe)
    >>> set_state(again, state)
    >>> msgspec.json.decode(b'{"x": 1}', type=again)
    Point(x=1, y=0)
    """
    own = vars(cls).get("__annotations__", {})
    infos = {info.name: info for info in msgspec.structs.fields(cls)}
    mine = [name for name in cls.__struct_fields__ if name in own]
    config = cls.__struct_config__
    recipe = Recipe(
        cls.__name__,
        cls.__module__,
        cls.__bases__,
        tuple((name, infos[name].default, infos[name].default_factory) for name in mine),
        {name: info.encode_name for name, info in infos.items()},
        {
            # The only trace of it: such fields cannot be matched by position.
            "kw_only": any(name not in cls.__match_args__ for name in mine),
            **{name: getattr(config, name) for name in dir(config) if not name.startswith("_")},
        },
        "__post_init__" in vars(cls),
    )
    state = {
        name: value
        for name, value in vars(cls).items()
        if name not in _MADE_ANEW and not isinstance(value, MemberDescriptorType | GetSetDescriptorType)
    }
    # A field may be of the class itself, so types come when it is there; msgspec looks at them only when it reads. They
    # are the types themselves: names mean nothing in another process.
    state["__annotations__"] = own | {name: infos[name].type for name in mine}
    return _make, (recipe,), state, None, None, _set


def _make(recipe: Recipe) -> type[msgspec.Struct]:
    fields = [(name, Any, _default(default, factory)) for name, default, factory in recipe.fields]
    return msgspec.defstruct(
        recipe.name,
        fields,
        bases=recipe.bases,
        module=recipe.module,
        namespace={"__post_init__": _post_init} if recipe.has_post_init else None,
        rename=recipe.encoded,
        **recipe.options,
    )


def _default(default: Any, factory: Any) -> Any:
    if factory is not msgspec.NODEFAULT:
        return msgspec.field(default_factory=factory)
    return msgspec.field() if default is msgspec.NODEFAULT else msgspec.field(default=default)


def _post_init(self: Any) -> None:
    # msgspec has remembered this function when it made the class; the class has its own by now.
    type(self).__post_init__(self)


def _set(cls: type, state: dict[str, Any]) -> None:
    for name, value in state.items():
        setattr(cls, name, value)

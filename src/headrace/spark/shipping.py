"""Packing of an application for the workers, with errors that name the node, its function and what it captures."""

from __future__ import annotations

import dataclasses
import io
import sys
from collections.abc import Iterator, Mapping
from functools import partial
from types import FunctionType, MethodType, ModuleType
from typing import Any, get_type_hints

from pyspark import cloudpickle

from headrace.arguments.signatures import describe_function
from headrace.config import StreamsConfig
from headrace.errors import StreamsError, TopologyError
from headrace.record import WithKey
from headrace.serdes.struct_classes import CACHE, is_struct, reduce_struct
from headrace.topology.topology import Topology

_DEEPEST = 20


class _Pickler(cloudpickle.Pickler):
    """Sends classes that workers cannot import so that msgspec can still read their fields."""

    def reducer_override(self, obj: Any) -> Any:
        if isinstance(obj, type) and not _is_importable(obj) and is_struct(obj):
            return reduce_struct(obj)
        reduced = super().reducer_override(obj)  # type: ignore[no-untyped-call]  # pyspark's copy has no types
        if isinstance(obj, type) and isinstance(reduced, tuple) and len(reduced) > 2:
            # A class by value: its annotations may be names of a script, which is not the main module of a worker.
            content = reduced[2][0]
            content.pop(CACHE, None)
            if "__annotations__" in content:
                content["__annotations__"] = _resolve_annotations(obj, content["__annotations__"])
        return reduced


def pack(what: object) -> bytes:
    """Returns an object as bytes, functions and classes included; ``cloudpickle.loads`` brings it back."""
    buffer = io.BytesIO()
    _Pickler(buffer).dump(what)  # type: ignore[no-untyped-call]  # pyspark's copy has no types
    return buffer.getvalue()


def check_shippable(topology: Topology, config: StreamsConfig) -> None:
    """Raises TopologyError if a function of a topology, or a setting, cannot be sent to the workers."""
    failure = _failure((topology, config))
    if failure is None:
        return
    for where, thing in _parts(topology, config):
        if _failure(thing) is not None:
            raise _explain_unpicklable(where, thing) from failure
    message = f"the topology cannot be sent to the workers: {failure}; make what its functions need inside of them"
    raise TopologyError(message) from failure


def _failure(thing: object) -> Exception | None:
    try:
        pack(thing)
    except StreamsError:
        raise
    except Exception as error:
        # Whatever an object's own way to be pickled raises.
        return error
    return None


def _parts(topology: Topology, config: StreamsConfig) -> Iterator[tuple[str, object]]:
    """Yields everything of the user's that is sent, and whose it is."""
    for name, node in topology.nodes.items():
        operation = getattr(node, "operation", None)
        for owner in (node, operation):
            if owner is None:
                continue
            for field in dataclasses.fields(owner):
                if field.name != "operation":
                    yield f"node '{name}'", getattr(owner, field.name)
    for name, builder in topology.store_builders.items():
        yield f"store '{name}'", builder
    for field in dataclasses.fields(config):
        yield f"setting '{field.name}'", getattr(config, field.name)


def _explain_unpicklable(where: str, thing: object) -> TopologyError:
    while isinstance(thing, tuple | WithKey):
        inside = thing if isinstance(thing, tuple) else (thing.function,)
        thing = next(each for each in inside if _failure(each) is not None)
    path, culprit = _find_unpicklable(thing)
    what = f"the function {describe_function(thing)}" if callable(thing) else f"a {_type(thing)}"
    if not path:
        reason = f"a {_type(culprit)} belongs to this process"
    elif len(path) == 1:
        reason = f"it {path[0]}, a {_type(culprit)}"
    else:
        reason = f"it {path[0]}, and there {''.join(path[1:])} is a {_type(culprit)}"
    message = (
        f"{where}: {what} cannot be sent to the workers: {reason}, which cannot be pickled; make it inside of the "
        "function, or in init() of a processor, so that each worker has its own"
    )
    return TopologyError(message)


def _find_unpicklable(thing: object) -> tuple[list[str], object]:
    """Returns the innermost object that cannot be pickled, and the way to it."""
    path: list[str] = []
    seen = {id(thing)}
    while len(path) < _DEEPEST:
        for step, inner in _pickled_parts(thing):
            if id(inner) not in seen and _failure(inner) is not None:
                path.append(step)
                seen.add(id(inner))
                thing = inner
                break
        else:
            break
    return path, thing


def _pickled_parts(thing: Any) -> Iterator[tuple[str, object]]:
    """Yields the objects that are pickled with an object, each with a description of the path to it."""
    if isinstance(thing, FunctionType):
        cells = zip(thing.__code__.co_freevars, thing.__closure__ or (), strict=True)
        for name, cell in cells:
            try:
                yield f"captures '{name}'", cell.cell_contents
            except ValueError:
                # A variable that has no value yet.
                continue
        for name in thing.__code__.co_names:
            if name in thing.__globals__ and not isinstance(thing.__globals__[name], ModuleType):
                yield f"uses the global '{name}'", thing.__globals__[name]
        parameters = thing.__code__.co_varnames[: thing.__code__.co_argcount]
        for name, value in zip(reversed(parameters), reversed(thing.__defaults__ or ()), strict=False):
            yield f"has the default '{name}'", value
        for name, value in (thing.__kwdefaults__ or {}).items():
            yield f"has the default '{name}'", value
    elif isinstance(thing, MethodType):
        yield "belongs to 'self'", thing.__self__
        yield "calls itself", thing.__func__
    elif isinstance(thing, partial):
        yield "wraps a function", thing.func
        for place, value in enumerate(thing.args):
            yield f"has the argument {place}", value
        for name, value in thing.keywords.items():
            yield f"has the argument '{name}'", value
    elif isinstance(thing, Mapping):
        for key, value in thing.items():
            yield f"[{key!r}]", value
    elif isinstance(thing, list | tuple | set | frozenset):
        for place, value in enumerate(thing):
            yield f"[{place}]", value
    elif isinstance(thing, type):
        for name, value in vars(thing).items():
            yield f".{name}", value
    else:
        yield from _attributes(thing)


def _attributes(thing: Any) -> Iterator[tuple[str, object]]:
    for name, value in getattr(thing, "__dict__", {}).items():
        yield f".{name}", value
    for kind in type(thing).__mro__:
        slots = vars(kind).get("__slots__", ())
        for name in (slots,) if isinstance(slots, str) else slots:
            if hasattr(thing, name):
                yield f".{name}", getattr(thing, name)
    yield ".__class__", type(thing)


def _type(thing: object) -> str:
    kind = type(thing)
    return (
        kind.__qualname__ if kind.__module__ in ("builtins", "__main__") else f"{kind.__module__}.{kind.__qualname__}"
    )


def _is_importable(cls: type) -> bool:
    """Returns whether a worker finds the class where it is defined: not in a script, and not in a function."""
    if cls.__module__ == "__main__":
        return False
    found: Any = sys.modules.get(cls.__module__)
    for name in cls.__qualname__.split("."):
        found = getattr(found, name, None)
    return found is cls


def _resolve_annotations(cls: type, annotations: dict[str, Any]) -> dict[str, Any]:
    try:
        hints = get_type_hints(cls, include_extras=True)
    except Exception:
        # An annotation can be any text, and does harm only where it is read.
        return annotations
    return {name: hints.get(name, annotation) for name, annotation in annotations.items()}

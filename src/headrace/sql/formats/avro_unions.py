"""Unions of several types, read as structs in which the field of the type at hand is set.

fastavro gives the value of a union without saying of which type it was; the value itself tells.
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from typing import Any

from headrace.sql.formats.avro_schemas import branch_name, branches_of

Restore = Callable[[Any], Any]
_KINDS: dict[str, tuple[type, ...]] = {
    "boolean": (bool,),
    "int": (int,),
    "long": (int,),
    "float": (float,),
    "double": (float,),
    "string": (str,),
    "enum": (str,),
    "bytes": (bytes, Decimal),
    "fixed": (bytes, Decimal),
    "array": (list,),
    "map": (dict,),
    "record": (dict,),
}


def union_reader(schema: Any) -> Restore | None:
    """Returns the function that makes structs of the unions in a value of the schema; None if there are none.

    >>> union_reader({"type": "array", "items": ["null", "int", "string"]})([1, "a", None])
    [{'int': 1}, {'string': 'a'}, None]
    """
    return _reader(schema, {})


def _reader(schema: Any, named: dict[str, Any]) -> Restore | None:
    if isinstance(schema, str):
        # A named type that is used again; inside of itself it is left as it is.
        return named.get(schema.rpartition(".")[2])
    if isinstance(schema, list):
        branches = branches_of(schema)
        return _reader(branches[0], named) if len(branches) == 1 else _union(branches, named)
    kind = schema["type"]
    if isinstance(kind, dict | list):
        return _reader(kind, named)
    if kind == "record":
        made = _record(schema, named)
        named[schema["name"].rpartition(".")[2]] = made
        return made
    if kind in ("array", "map"):
        return _each(_reader(schema["items" if kind == "array" else "values"], named))
    return None


def _record(schema: dict[str, Any], named: dict[str, Any]) -> Restore | None:
    readers = [(field["name"], _reader(field["type"], named)) for field in schema["fields"]]
    changed = [(name, reader) for name, reader in readers if reader is not None]
    if not changed:
        return None

    def restore(value: dict[str, Any]) -> dict[str, Any]:
        for name, reader in changed:
            if value[name] is not None:
                value[name] = reader(value[name])
        return value

    return restore


def _each(reader: Restore | None) -> Restore | None:
    if reader is None:
        return None

    def restore(value: Any) -> Any:
        if type(value) is list:
            return [None if item is None else reader(item) for item in value]
        return {key: None if item is None else reader(item) for key, item in value.items()}

    return restore


def _union(branches: list[Any], named: dict[str, Any]) -> Restore:
    readers = [(branch, branch_name(branch), _reader(branch, named)) for branch in branches]

    def restore(value: Any) -> Any:
        if value is None:
            return None
        for branch, name, reader in readers:
            if _is_of(value, branch):
                return {name: value if reader is None else reader(value)}
        message = f"a value of the type {type(value).__name__} is none of the union's"
        raise ValueError(message)

    return restore


def _is_of(value: Any, branch: Any) -> bool:
    kind = branch if isinstance(branch, str) else branch["type"]
    if type(value) not in _KINDS.get(kind, (dict,)):
        return False
    if kind == "int" and not -(2**31) <= value < 2**31:
        return False
    if kind == "record":
        return {field["name"] for field in branch["fields"]} == set(value)
    return True

"""Functions on maps, and on collections with lambdas."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from headrace.sql.functions.definitions import overload, scalar
from headrace.sql.types import ARRAY, STRING, STRUCT, SqlMap, SqlType, StructField

CATEGORY = "Map"
LAMBDA = "Lambda"


def map_of(keys: list[str], values: list[Any]) -> dict[str, Any]:
    """Returns a map from keys to the values at the same places, as far as both go."""
    return dict(zip(keys, values, strict=False))


def keys_of(entries: dict[Any, Any]) -> list[Any]:
    """Returns the keys of a map."""
    return list(entries)


def values_of(entries: dict[Any, Any]) -> list[Any]:
    """Returns the values of a map."""
    return list(entries.values())


def united(left: dict[Any, Any] | None, right: dict[Any, Any] | None) -> dict[Any, Any] | None:
    """Returns the entries of both maps; where both have a key, the second counts."""
    if left is None and right is None:
        return None
    return {**(left or {}), **(right or {})}


def entries_of(entries: dict[str, Any], ordered: bool) -> list[dict[str, Any]]:  # noqa: FBT001
    """Returns the entries of a map as structs, in the order of their keys if asked."""
    keys = sorted(entries) if ordered else list(entries)
    return [{"K": key, "V": entries[key]} for key in keys]


def _entries_type(types: Sequence[SqlType | None]) -> SqlType:
    value = types[0].value if isinstance(types[0], SqlMap) else STRING
    return ARRAY(STRUCT((StructField("K", STRING), StructField("V", value))))


def filtered_array(array: list[Any], keep: Callable[[Any], bool]) -> list[Any]:
    """Returns the items for which a lambda is true."""
    return [item for item in array if keep(item)]


def filtered_map(entries: dict[Any, Any], keep: Callable[[Any, Any], bool]) -> dict[Any, Any]:
    """Returns the entries for which a lambda is true."""
    return {key: value for key, value in entries.items() if keep(key, value)}


def reduced_array(array: list[Any] | None, state: Any, step: Callable[[Any, Any], Any]) -> Any:
    """Returns what a lambda makes of a state, item by item."""
    if state is None:
        return None
    for item in array or ():
        state = step(state, item)
    return state


def reduced_map(entries: dict[Any, Any] | None, state: Any, step: Callable[[Any, Any, Any], Any]) -> Any:
    """Returns what a lambda makes of a state, entry by entry."""
    if state is None:
        return None
    for key, value in (entries or {}).items():
        state = step(state, key, value)
    return state


def transformed_array(array: list[Any], change: Callable[[Any], Any]) -> list[Any]:
    """Returns what a lambda makes of each item."""
    return [change(item) for item in array]


def transformed_map(
    entries: dict[Any, Any], change_key: Callable[[Any, Any], Any], change_value: Callable[[Any, Any], Any]
) -> dict[Any, Any]:
    """Returns what two lambdas make of each key and value; two keys that become equal are an error."""
    result = {change_key(key, value): change_value(key, value) for key, value in entries.items()}
    if len(result) < len(entries):
        message = "TRANSFORM: two keys of the map became equal"
        raise ValueError(message)
    return result


FUNCTIONS = (
    scalar(
        "AS_MAP",
        "Returns a map from the keys of one array to the values of another.",
        CATEGORY,
        [("AS_MAP(ARRAY['a'], ARRAY[1])", "MAP('a' := 1)")],
        overload("(keys ARRAY<STRING>, values ARRAY<T>) MAP<STRING, T>", map_of),
    ),
    scalar(
        "ENTRIES",
        "Returns the entries of a map as structs with the fields K and V, by key if the second argument is true.",
        CATEGORY,
        [("ENTRIES(MAP('b' := 2, 'a' := 1), true)[1]->V", "1")],
        *(
            overload(f"(map MAP<STRING, {one}>, sorted BOOLEAN) ARRAY<STRUCT>", entries_of, returns=_entries_type)
            for one in ("INT", "BIGINT", "DOUBLE", "BOOLEAN", "STRING")
        ),
    ),
    scalar(
        "map_keys",
        "Returns the keys of a map.",
        CATEGORY,
        [("MAP_KEYS(MAP('a' := 1))", "ARRAY['a']")],
        overload("(map MAP<STRING, T>) ARRAY<STRING>", keys_of),
    ),
    scalar(
        "map_union",
        "Returns the entries of both maps; where both have a key, the second counts.",
        CATEGORY,
        [("MAP_UNION(MAP('a' := 1), MAP('a' := 2))", "MAP('a' := 2)")],
        overload("(left MAP<STRING, T>, right MAP<STRING, T>) MAP<STRING, T>", united, strict=False),
    ),
    scalar(
        "map_values",
        "Returns the values of a map.",
        CATEGORY,
        [("MAP_VALUES(MAP('a' := 1))", "ARRAY[1]")],
        overload("(map MAP<STRING, T>) ARRAY<T>", values_of),
    ),
    scalar(
        "filter",
        "Returns the items of an array, or the entries of a map, for which a lambda is true.",
        LAMBDA,
        [("FILTER(ARRAY[1, 2, 3], x => x > 1)", "ARRAY[2, 3]")],
        overload("(array ARRAY<T>, keep T => BOOLEAN) ARRAY<T>", filtered_array),
        overload("(map MAP<K, V>, keep (K, V) => BOOLEAN) MAP<K, V>", filtered_map),
    ),
    scalar(
        "reduce",
        "Returns what a lambda makes of a state, item by item of an array or entry by entry of a map.",
        LAMBDA,
        [("REDUCE(ARRAY[1, 2, 3], 10, (s, x) => s + x)", "16")],
        overload("(array ARRAY<T>, state S, step (S, T) => S) S", reduced_array, strict=False),
        overload("(map MAP<K, V>, state S, step (S, K, V) => S) S", reduced_map, strict=False),
    ),
    scalar(
        "transform",
        "Returns what a lambda makes of each item of an array, or two lambdas of each key and value of a map.",
        LAMBDA,
        [("TRANSFORM(ARRAY[1, 2], x => x * 2)", "ARRAY[2, 4]")],
        overload("(array ARRAY<T>, change T => R) ARRAY<R>", transformed_array),
        overload("(map MAP<K, V>, changeKey (K, V) => R, changeValue (K, V) => U) MAP<R, U>", transformed_map),
    ),
)

"""Levels of compatibility: what of older schemas a new one has to read, and the other way round.

Only Avro has rules here; schemas of JSON and Protobuf are taken to be compatible.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from headrace.devtools.schema_registry.avro_schemas import unreadable_parts
from headrace.devtools.schema_registry.errors import INVALID_LEVEL, RegistryError
from headrace.devtools.schema_registry.schemas import avro_type
from headrace.serdes.registry.registry import Schema

DEFAULT_LEVEL = "BACKWARD"
LEVELS = (
    "NONE",
    "BACKWARD",
    "BACKWARD_TRANSITIVE",
    "FORWARD",
    "FORWARD_TRANSITIVE",
    "FULL",
    "FULL_TRANSITIVE",
)

WithReferences = tuple[Schema, Mapping[str, Schema]]
"""A schema and those that it imports."""


def checked_level(level: object) -> str:
    """Returns a level as it is written.

    >>> checked_level("full")
    'FULL'
    """
    found = str(level).upper()
    if found not in LEVELS:
        message = f"Invalid compatibility level. Valid values are {', '.join(LEVELS).lower()}, got '{level}'"
        raise RegistryError(INVALID_LEVEL, message)
    return found


def incompatibilities(new: WithReferences, older: Sequence[WithReferences], level: str) -> list[str]:
    """Returns why a schema must not follow older ones, the oldest first; nothing if it may."""
    if level == "NONE" or not older:
        return []
    found: list[str] = []
    for each in older if level.endswith("_TRANSITIVE") else older[-1:]:
        if new[0].kind != each[0].kind:
            found.append(f"the kind of schema changes from {each[0].kind} to {new[0].kind}")
        elif new[0].kind == "AVRO":
            new_type, old_type = avro_type(*new), avro_type(*each)
            if level.startswith(("BACKWARD", "FULL")):
                found += [f"older records cannot be read: {part}" for part in unreadable_parts(new_type, old_type)]
            if level.startswith(("FORWARD", "FULL")):
                found += [f"older readers cannot read: {part}" for part in unreadable_parts(old_type, new_type)]
    return found

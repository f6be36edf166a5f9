"""Base of all statement answers, and the JSON form of values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, is_dataclass
from enum import Enum
from typing import Any, ClassVar


@dataclass(frozen=True, kw_only=True)
class Entity:
    """The answer to one statement.

    >>> Entity(statement_text="SHOW STREAMS;").to_json()
    {'@type': '', 'statementText': 'SHOW STREAMS;', 'warnings': []}
    """

    kind: ClassVar[str] = ""
    """What clients tell answers apart by."""
    statement_text: str
    warnings: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """Returns the answer as it is sent."""
        content = {_camel(each.name): plain(getattr(self, each.name)) for each in fields(self)}
        warnings = [{"message": text} for text in content.pop("warnings")]
        return {"@type": self.kind, **content, "warnings": warnings}


def plain(value: Any) -> Any:
    """Returns a value made of what JSON has; the fields of a dataclass get their names in camel case."""
    if is_dataclass(value) and not isinstance(value, type):
        return {_camel(each.name): plain(getattr(value, each.name)) for each in fields(value)}
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [plain(item) for item in value]
    return value.value if isinstance(value, Enum) else value


def _camel(name: str) -> str:
    first, *others = name.rstrip("_").split("_")
    return first + "".join(other.capitalize() for other in others)

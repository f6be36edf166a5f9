"""Content of the registry, made of the records of its topic in their order.

Two processes that write at once may choose the same number. Then the first record counts, for everybody who reads, and
the writer of the second one finds out when it reads its own record, and tries again.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from headrace.devtools.schema_registry.schemas import identity
from headrace.serdes.registry.registry import Schema, SchemaReference


@dataclass(frozen=True)
class Registration:
    """A version of a subject."""

    subject: str
    version: int
    id: int
    schema: Schema
    is_deleted: bool = False
    """Whether it was deleted in a way that can be seen through: its number and its schema are still known."""


class Content:
    """Everything that is registered."""

    def __init__(self) -> None:
        self.subjects: dict[str, dict[int, Registration]] = {}
        self.levels: dict[str | None, str] = {}
        """Compatibility by subject; None is for all others."""
        self._ids: dict[tuple[object, ...], int] = {}
        self._last_id = 0

    def versions(self, subject: str, *, deleted: bool = False) -> list[Registration]:
        """Returns the versions of a subject, the oldest first."""
        found = self.subjects.get(subject, {})
        return [each for _, each in sorted(found.items()) if deleted or not each.is_deleted]

    def registered(self, id: int) -> list[Registration]:
        """Returns the versions that have a schema."""
        return [each for subject in self.subjects.values() for each in subject.values() if each.id == id]

    def users_of(self, subject: str, version: int) -> list[Registration]:
        """Returns the versions whose schemas import a version of a subject."""
        wanted = subject, version
        return [
            each
            for several in self.subjects.values()
            for each in several.values()
            if not each.is_deleted and wanted in {(one.subject, one.version) for one in each.schema.references}
        ]

    def next_registration(self, subject: str, schema: Schema) -> Registration:
        """Returns what a schema becomes that is new to its subject."""
        return Registration(
            subject, self._next_version(subject), self._ids.get(identity(schema), self._last_id + 1), schema
        )

    def _next_version(self, subject: str) -> int:
        return max(self.subjects.get(subject, {}), default=0) + 1

    # Any: JSON.
    def apply(self, record: Any) -> None:
        """Takes what a record says; one that came too late changes nothing."""
        match record:
            case {"type": "schema"}:
                self._register(registration_of(record))
            case {"type": "delete", "subject": subject, "version": version, "permanent": permanent}:
                self._delete(subject, version, permanent=permanent)
            case {"type": "level", "subject": subject, "level": None}:
                self.levels.pop(subject, None)
            case {"type": "level", "subject": subject, "level": level}:
                self.levels[subject] = level

    def _register(self, given: Registration) -> None:
        if given == self.next_registration(given.subject, given.schema):
            self.subjects.setdefault(given.subject, {})[given.version] = given
            self._ids[identity(given.schema)] = given.id
            self._last_id = max(self._last_id, given.id)

    def _delete(self, subject: str, version: int, *, permanent: bool) -> None:
        found = self.subjects.get(subject, {})
        if version not in found:
            return
        if not permanent:
            each = found[version]
            found[version] = Registration(each.subject, each.version, each.id, each.schema, is_deleted=True)
            return
        gone = found.pop(version)
        if not found:
            del self.subjects[subject]
        if not self.registered(gone.id):
            self._ids.pop(identity(gone.schema), None)


def record_of(given: Registration) -> bytes:
    """Returns a version as a record of the topic."""
    references = [[each.name, each.subject, each.version] for each in given.schema.references]
    return json.dumps(
        {
            "type": "schema",
            "subject": given.subject,
            "version": given.version,
            "id": given.id,
            "schema": given.schema.text,
            "schemaType": given.schema.kind,
            "references": references,
        }
    ).encode()


# Any: JSON.
def registration_of(record: Any) -> Registration:
    """Returns the version that a record of the topic holds."""
    references = tuple(SchemaReference(*each) for each in record["references"])
    schema = Schema(record["schema"], record["schemaType"], references)
    return Registration(record["subject"], record["version"], record["id"], schema)

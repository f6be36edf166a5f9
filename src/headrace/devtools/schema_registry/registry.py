"""The registry itself: subjects, versions, schemas by number, levels of compatibility."""

from __future__ import annotations

import json
import logging
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from headrace.devtools.schema_registry.compatibility import (
    DEFAULT_LEVEL,
    WithReferences,
    checked_level,
    incompatibilities,
)
from headrace.devtools.schema_registry.content import Content, Registration, record_of
from headrace.devtools.schema_registry.errors import (
    INCOMPATIBLE,
    INVALID_SCHEMA,
    INVALID_VERSION,
    LEVEL_NOT_FOUND,
    SCHEMA_NOT_FOUND,
    STILL_REFERENCED,
    SUBJECT_NOT_FOUND,
    SUBJECT_NOT_SOFT_DELETED,
    SUBJECT_SOFT_DELETED,
    VERSION_NOT_FOUND,
    VERSION_NOT_SOFT_DELETED,
    VERSION_SOFT_DELETED,
    RegistryError,
)
from headrace.devtools.schema_registry.schemas import checked_schema, identity
from headrace.errors import TopicExistsError
from headrace.serdes.registry.registry import Schema
from headrace.topics.log import TopicLog

logger = logging.getLogger(__name__)

TOPIC = "_headrace_schemas"
"""The topic that holds all that is registered."""


class DevelopmentRegistry:
    """A schema registry whose content is a topic of a log; any thread, and any number of processes, may use it.

    >>> from tempfile import mkdtemp
    >>> from headrace import EmbeddedLog
    >>> registry = DevelopmentRegistry(EmbeddedLog(mkdtemp()))
    >>> registry.register("orders-value", Schema('"int"')), registry.register("orders-value", Schema('"long"'))
    (1, 2)
    >>> registry.register("orders-value", Schema('"string"'))
    Traceback (most recent call last):
    ...
    headrace.devtools.schema_registry.errors.RegistryError: Schema being registered is incompatible with an earlier ...
    """

    def __init__(self, log: TopicLog) -> None:
        self._log = log
        self._lock = threading.Lock()
        self._position = 0
        self._content = Content()
        with suppress(TopicExistsError):
            # Nothing of it may ever be removed: the content is made of all records.
            log.create_topic(TOPIC, configs={"cleanup.policy": "delete", "retention.ms": -1})

    @contextmanager
    def _current(self) -> Iterator[Content]:
        """Gives what is registered now, by whichever process; it does not change meanwhile."""
        with self._lock:
            self._catch_up()
            yield self._content

    def subjects(self, prefix: str = "", *, deleted: bool = False) -> list[str]:
        """Returns the names of subjects; ``deleted`` adds those whose versions are all deleted."""
        with self._current() as content:
            names = sorted(name for name in content.subjects if name.startswith(prefix))
            return [name for name in names if content.versions(name, deleted=deleted)]

    def versions(self, subject: str, *, deleted: bool = False) -> list[Registration]:
        """Returns the versions of a subject, the oldest first."""
        with self._current() as content:
            return self._versions(content, subject, deleted=deleted)

    def version(self, subject: str, version: str, *, deleted: bool = False) -> Registration:
        """Returns a version by its number, or the newest one: ``latest`` or ``-1``."""
        with self._current() as content:
            return self._version(content, subject, version, deleted=deleted)

    def registered(self, id: int) -> list[Registration]:
        """Returns the versions that have the schema of that number; there is at least one."""
        with self._current() as content:
            found = content.registered(id)
        if not found:
            raise RegistryError(SCHEMA_NOT_FOUND, f"Schema {id} not found")
        return found

    def users_of(self, subject: str, version: str) -> list[Registration]:
        """Returns the versions whose schemas import a version of a subject."""
        with self._current() as content:
            return content.users_of(subject, self._version(content, subject, version).version)

    def find(self, subject: str, schema: Schema, *, deleted: bool = False) -> Registration:
        """Returns the version of a subject that has this schema."""
        with self._current() as content:
            self._versions(content, subject, deleted=deleted)
            found = self._same(content, subject, self._checked(content, schema)[0], deleted=deleted)
        if found is None:
            raise RegistryError(SCHEMA_NOT_FOUND, "Schema not found")
        return found

    def register(self, subject: str, schema: Schema) -> int:
        """Returns the number of a schema, which becomes the newest version of its subject unless it is one already."""
        with self._current() as content:
            while True:
                new = self._checked(content, schema)
                if (known := self._same(content, subject, new[0])) is not None:
                    return known.id
                self._check_compatible(content, subject, new)
                made = content.next_registration(subject, new[0])
                self._append(record_of(made))
                self._catch_up()
                if content.subjects.get(subject, {}).get(made.version) == made:
                    return made.id

    def problems(self, subject: str, schema: Schema, version: str | None) -> list[str]:
        """Returns why a schema could not follow a version of a subject, or without one all that its level asks for."""
        with self._current() as content:
            new = self._checked(content, schema)
            level = self._level(content, subject)
            if version is None:
                return incompatibilities(new, self._older(content, subject), level)
            one = self._version(content, subject, version)
            return incompatibilities(new, [(one.schema, self._imported(content, one.schema))], level)

    def delete_subject(self, subject: str, *, permanent: bool) -> list[int]:
        """Deletes all versions of a subject, and returns their numbers; those that are to go for good must be deleted.

        Their schemas are still found by their numbers, unless they are deleted for good.
        """
        with self._current() as content:
            found = self._versions(content, subject, deleted=True)
            if permanent and content.versions(subject):
                message = f"Subject '{subject}' was not deleted first before being permanently deleted"
                raise RegistryError(SUBJECT_NOT_SOFT_DELETED, message)
            if not permanent and not content.versions(subject):
                message = f"Subject '{subject}' was soft deleted. Set permanent=true to delete permanently"
                raise RegistryError(SUBJECT_SOFT_DELETED, message)
            wanted = [each for each in found if permanent or not each.is_deleted]
            for each in wanted:
                self._delete(content, each, permanent=permanent)
            return [each.version for each in wanted]

    def delete_version(self, subject: str, version: str, *, permanent: bool) -> int:
        """Deletes a version of a subject, and returns its number; one that is to go for good must be deleted."""
        with self._current() as content:
            found = self._version(content, subject, version, deleted=True)
            if permanent and not found.is_deleted:
                message = (
                    f"Subject '{subject}' Version {version} was not deleted first before being permanently deleted"
                )
                raise RegistryError(VERSION_NOT_SOFT_DELETED, message)
            if not permanent and found.is_deleted:
                message = (
                    f"Subject '{subject}' Version {version} was soft deleted. Set permanent=true to delete permanently"
                )
                raise RegistryError(VERSION_SOFT_DELETED, message)
            self._delete(content, found, permanent=permanent)
            return found.version

    def level(self, subject: str | None = None, *, or_default: bool = True) -> str:
        """Returns the compatibility that is asked for, of a subject or of those that say nothing else."""
        with self._current() as content:
            if subject is not None and not or_default and subject not in content.levels:
                message = f"Subject '{subject}' does not have subject-level compatibility configured"
                raise RegistryError(LEVEL_NOT_FOUND, message)
            return self._level(content, subject)

    def set_level(self, subject: str | None, level: object) -> str:
        """Sets the compatibility that is asked for from now on; None is the default again."""
        wanted = None if level is None else checked_level(level)
        with self._lock:
            self._append(json.dumps({"type": "level", "subject": subject, "level": wanted}).encode())
        return wanted or DEFAULT_LEVEL

    def _delete(self, content: Content, one: Registration, *, permanent: bool) -> None:
        if users := content.users_of(one.subject, one.version):
            named = ", ".join(f"{user.subject} version {user.version}" for user in users)
            message = f"One or more references exist to the schema {one.subject} version {one.version}: {named}"
            raise RegistryError(STILL_REFERENCED, message)
        record = {"type": "delete", "subject": one.subject, "version": one.version, "permanent": permanent}
        self._append(json.dumps(record).encode())
        self._catch_up()

    def _check_compatible(self, content: Content, subject: str, new: WithReferences) -> None:
        level = self._level(content, subject)
        found = incompatibilities(new, self._older(content, subject), level)
        if found:
            message = (
                f'Schema being registered is incompatible with an earlier schema for subject "{subject}", details: '
                f"{'; '.join(found)}; compatibility: '{level}'"
            )
            raise RegistryError(INCOMPATIBLE, message)

    def _checked(self, content: Content, schema: Schema) -> WithReferences:
        imported = self._imported(content, schema)
        return checked_schema(schema, imported), imported

    def _imported(self, content: Content, schema: Schema) -> dict[str, Schema]:
        """Returns the schemas that a schema imports, with those that they import in front of them."""
        found: dict[str, Schema] = {}
        for each in schema.references:
            known = content.subjects.get(each.subject, {}).get(each.version)
            if known is None:
                message = (
                    f'No schema reference found for subject "{each.subject}" and version {each.version}; '
                    "register it first"
                )
                raise RegistryError(INVALID_SCHEMA, message)
            found |= self._imported(content, known.schema)
            found[each.name] = known.schema
        return found

    def _older(self, content: Content, subject: str) -> list[WithReferences]:
        return [(each.schema, self._imported(content, each.schema)) for each in content.versions(subject)]

    def _same(self, content: Content, subject: str, schema: Schema, *, deleted: bool = False) -> Registration | None:
        wanted = identity(schema)
        return next(
            (each for each in content.versions(subject, deleted=deleted) if identity(each.schema) == wanted), None
        )

    def _versions(self, content: Content, subject: str, *, deleted: bool = False) -> list[Registration]:
        found = content.versions(subject, deleted=deleted)
        if not found:
            raise RegistryError(SUBJECT_NOT_FOUND, f"Subject '{subject}' not found.")
        return found

    def _version(self, content: Content, subject: str, version: str, *, deleted: bool = False) -> Registration:
        found = self._versions(content, subject, deleted=deleted)
        if version in ("latest", "-1"):
            return found[-1]
        if not version.isdecimal() or not 1 <= int(version) <= 2**31 - 1:
            message = (
                f"The specified version '{version}' is not a valid version id. Allowed values are between "
                '[1, 2^31-1] and the string "latest"'
            )
            raise RegistryError(INVALID_VERSION, message)
        for each in found:
            if each.version == int(version):
                return each
        raise RegistryError(VERSION_NOT_FOUND, f"Version {version} not found.")

    def _level(self, content: Content, subject: str | None) -> str:
        return content.levels.get(subject) or content.levels.get(None) or DEFAULT_LEVEL

    def _append(self, record: bytes) -> None:
        self._log.append(TOPIC, [(0, time.time_ns() // 1_000_000, None, record, ())])

    def _catch_up(self) -> None:
        while found := self._log.read(TOPIC, 0, self._position):
            for offset, _, _, value, _ in found:
                self._position = offset + 1
                try:
                    self._content.apply(json.loads(value or b"null"))
                except (ValueError, LookupError, TypeError) as error:
                    logger.error("%s, offset %d: left out: %s", TOPIC, offset, error)

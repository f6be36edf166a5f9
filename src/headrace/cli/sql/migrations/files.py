"""Files of migrations: a version, some words, statements."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from pathlib import Path

from headrace.errors import StreamsError

_NAME = re.compile(r"V(\d{6})__(\w+)\.sql")
_LAST = 999_999


class MigrationError(StreamsError):
    """Files of migrations, and what was carried out, do not go together. The message says what to do."""


@dataclass(frozen=True)
class Migration:
    """A file of statements."""

    version: int
    name: str
    path: Path

    @property
    def text(self) -> str:
        return self.path.read_text(encoding="utf-8")

    @property
    def checksum(self) -> str:
        """What tells whether a file was changed after it was carried out."""
        return hashlib.sha256(self.path.read_bytes()).hexdigest()


def migrations_in(directory: Path) -> list[Migration]:
    """Returns the migrations of a directory by version; other files may lie beside them."""
    if not directory.is_dir():
        message = f"there is no directory '{directory}'; make the first migration with 'headrace sql migrations create'"
        raise MigrationError(message)
    found: dict[int, Migration] = {}
    for path in sorted(directory.glob("*.sql")):
        match = _NAME.fullmatch(path.name)
        if match is None:
            message = f"'{path}' is no migration: name it as V000001__some_words.sql"
            raise MigrationError(message)
        version = int(match[1])
        if version in found:
            message = f"'{path}' and '{found[version].path}' have the same version; give one of them another number"
            raise MigrationError(message)
        found[version] = Migration(version, match[2].replace("_", " "), path)
    return [found[version] for version in sorted(found)]


def new_migration(directory: Path, words: str, version: int | None = None) -> Path:
    """Makes a file for a migration; returns its path."""
    directory.mkdir(parents=True, exist_ok=True)
    known = [each.version for each in migrations_in(directory)]
    number = max(known, default=0) + 1 if version is None else version
    if not 1 <= number <= _LAST or number in known:
        message = f"version {number} cannot be made: it must be new, and between 1 and {_LAST}"
        raise MigrationError(message)
    name = re.sub(r"\W+", "_", words.strip()).strip("_")
    if not name:
        message = f"'{words}' has no word for the name of a file"
        raise MigrationError(message)
    path = directory / f"V{number:06}__{name}.sql"
    path.write_text(f"-- {words.strip()}\n", encoding="utf-8")
    return path

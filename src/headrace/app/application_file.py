"""``application.json``: what an application directory says of itself."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from headrace.app.fingerprint import Fingerprint
from headrace.app.places import unusable
from headrace.errors import StateDirectoryError

NAME = "application.json"
FORMAT = 1


@dataclass(frozen=True)
class ApplicationFile:
    """Whose state a directory holds, and which topology it fits."""

    application: str
    topology: Fingerprint
    internal_topics: tuple[str, ...] = ()
    """Topics that were made for this application alone, by their names in the log."""
    is_resetting: bool = False
    """Whether a reset has begun: nothing else of the directory counts until it has ended."""

    @classmethod
    def read(cls, directory: Path) -> ApplicationFile | None:
        """Reads the file of a directory; None if there is none."""
        path = directory / NAME
        try:
            found = json.loads(path.read_bytes())
        except FileNotFoundError:
            return None
        except OSError as error:
            raise unusable(path, error, "read") from error
        except ValueError as error:
            raise _damaged(path, error) from error
        return _parsed(path, found)

    def check_owner(self, directory: Path, application: str) -> None:
        """Complains if the directory holds the state of another application."""
        if self.application != application:
            message = (
                f"'{directory}' holds the state of the application '{self.application}', and this is '{application}'; "
                "set state_dir to another directory, or use the former application_id"
            )
            raise StateDirectoryError(message)

    def write(self, directory: Path) -> None:
        """Writes the file: after a crash there is the old one or the new one, whole."""
        content = {
            "format": FORMAT,
            "application": self.application,
            "internal_topics": list(self.internal_topics),
            "is_resetting": self.is_resetting,
            "topology": self.topology.to_json(),
        }
        path, draft = directory / NAME, directory / f"{NAME}.new"
        try:
            with draft.open("w", encoding="utf-8") as stream:
                json.dump(content, stream, indent=2)
                stream.flush()
                os.fsync(stream.fileno())
            draft.replace(path)
            sync_directory(directory)
        except OSError as error:
            raise unusable(path, error, "written") from error

    def resetting(self) -> ApplicationFile:
        return replace(self, is_resetting=True)


def remove(directory: Path) -> None:
    """Removes the file for good."""
    path = directory / NAME
    try:
        path.unlink(missing_ok=True)
        sync_directory(directory)
    except OSError as error:
        raise unusable(path, error, "removed") from error


def sync_directory(directory: Path) -> None:
    """Makes sure that names which have changed in a directory survive a crash of the machine."""
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _parsed(path: Path, found: Any) -> ApplicationFile:
    if isinstance(found, dict) and found.get("format", FORMAT) != FORMAT:
        message = (
            f"'{path}' has the format {found['format']!r}, and this version of Headrace reads {FORMAT}; "
            f"use the version that wrote it, or start over with `headrace reset {path.parent.name}`"
        )
        raise StateDirectoryError(message)
    try:
        return ApplicationFile(
            str(found["application"]),
            Fingerprint.from_json(found["topology"]),
            tuple(map(str, found["internal_topics"])),
            bool(found["is_resetting"]),
        )
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise _damaged(path, error) from error


def _damaged(path: Path, error: Exception) -> StateDirectoryError:
    return StateDirectoryError(
        f"'{path}' is damaged ({error!r}), so it is not known which topology the state fits; "
        f"bring it back from a copy, or start over with `headrace reset {path.parent.name}`"
    )

"""Directories that only this user can enter, and what is trusted in them."""

from __future__ import annotations

import os
import stat
import tempfile
from pathlib import Path

_LONGEST_TEMPORARY = 30
"""Characters. The name of a socket has room for about 100, and what Spark adds to a directory has some 70."""


def make_directories(path: Path) -> None:
    """Makes a directory, and those above it that are missing; nobody else can enter what is made here."""
    if not path.parent.is_dir():
        make_directories(path.parent)
    path.mkdir(mode=0o700, exist_ok=True)


def close_to_others(path: Path) -> None:
    """Makes a directory of this user one that nobody else can enter; raises PermissionError if others could write it.

    What they have put there cannot be told from what this user has put there.
    """
    found = path.stat()
    if found.st_uid != os.geteuid() or found.st_mode & 0o022:
        message = (
            f"'{path}' must be a directory that only user {os.geteuid()} can write; found "
            f"{stat.filemode(found.st_mode)} of user {found.st_uid}; look at what is in it, and delete it, or chmod it "
            "to 0700"
        )
        raise PermissionError(message)
    if found.st_mode & 0o055:
        path.chmod(0o700)


def make_private(path: Path) -> Path:
    """Makes a directory of mode 0700 if it is missing; raises PermissionError if it is not this user's alone."""
    make_directories(path.parent)
    try:
        os.mkdir(path, 0o700)
    except FileExistsError:
        if not is_private(path):
            found = os.lstat(path)
            message = (
                f"'{path}' must be a directory that only user {os.geteuid()} can enter; found "
                f"{stat.filemode(found.st_mode)} of user {found.st_uid}; delete it, or chmod it to 0700"
            )
            raise PermissionError(message) from None
    return path


def is_private(path: str | os.PathLike[str]) -> bool:
    """Returns whether a path is a directory, not a link to one, that only this user can enter."""
    try:
        found = os.lstat(path)
    except OSError:
        return False
    return stat.S_ISDIR(found.st_mode) and found.st_uid == os.geteuid() and not found.st_mode & 0o077


def temporary_directory() -> Path:
    """Returns the user's temporary directory, or the machine's if sockets would have names that are too long there.

    On macOS they would: a user's own one has 49 characters.
    """
    own, shared = Path(tempfile.gettempdir()), Path("/tmp")
    too_long = len(os.fsencode(own)) > _LONGEST_TEMPORARY and os.access(shared, os.W_OK | os.X_OK)
    return shared if too_long else own


def own_temporary_directory(within: Path | None = None) -> Path:
    """Returns this user's private directory in the temporary one, which processes of this user share.

    If somebody else has taken its name, a new one is made, which nobody can have prepared.
    """
    within = within or temporary_directory()
    try:
        return make_private(within / f"headrace-{os.geteuid()}")
    except PermissionError:
        return Path(tempfile.mkdtemp(prefix="headrace-", dir=within))

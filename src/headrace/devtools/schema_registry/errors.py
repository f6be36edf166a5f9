"""Errors of the registry, with the numbers that clients know."""

from __future__ import annotations

SUBJECT_NOT_FOUND = 40401
VERSION_NOT_FOUND = 40402
SCHEMA_NOT_FOUND = 40403
SUBJECT_SOFT_DELETED = 40404
SUBJECT_NOT_SOFT_DELETED = 40405
VERSION_SOFT_DELETED = 40406
VERSION_NOT_SOFT_DELETED = 40407
LEVEL_NOT_FOUND = 40408
INCOMPATIBLE = 409
INVALID_SCHEMA = 42201
INVALID_VERSION = 42202
INVALID_LEVEL = 42203
STILL_REFERENCED = 42206


class RegistryError(Exception):
    """A request that cannot be answered; its number begins with the status of HTTP."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code

    @property
    def status(self) -> int:
        """The status of HTTP.

        >>> RegistryError(SUBJECT_NOT_FOUND, "").status, RegistryError(INCOMPATIBLE, "").status
        (404, 409)
        """
        return int(str(self.code)[:3])

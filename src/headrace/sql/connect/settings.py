"""Settings of the Connect client: URL, timeout, credentials."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Self
from urllib.parse import urlsplit

from headrace.errors import ConfigError, describe_value

URL = "ksql.connect.url"
TIMEOUT = "ksql.connect.request.timeout.ms"
CREDENTIALS_SOURCE = "ksql.connect.basic.auth.credentials.source"
CREDENTIALS_FILE = "ksql.connect.basic.auth.credentials.file"

DEFAULTS = {URL: "", TIMEOUT: "5000", CREDENTIALS_SOURCE: "NONE", CREDENTIALS_FILE: ""}
"""The settings of a server that say how it reaches the worker, with their defaults."""


@dataclass(frozen=True)
class ConnectSettings:
    """Settings for reaching a worker.

    >>> ConnectSettings.of({"ksql.connect.url": "http://localhost:8083/"})
    ConnectSettings(url='http://localhost:8083', timeout=datetime.timedelta(seconds=5))
    >>> ConnectSettings.of({}) is None
    True
    """

    url: str
    timeout: timedelta = timedelta(seconds=5)
    credentials: tuple[str, str] | None = field(default=None, repr=False)
    """A name and a password."""

    @classmethod
    def of(cls, settings: Mapping[str, object]) -> Self | None:
        """Returns what the settings of a server say; None if they name no worker. Raises ``ConfigError``."""
        given = {name: str(settings.get(name, default)) for name, default in DEFAULTS.items()}
        if not given[URL]:
            return None
        return cls(_url(given[URL]), _timeout(given[TIMEOUT]), _credentials(given))


def _url(text: str) -> str:
    address = urlsplit(text)
    if address.scheme not in ("http", "https") or not address.hostname:
        message = f"{URL} must be an address such as http://localhost:8083, got {describe_value(text)}"
        raise ConfigError(message)
    if address.username is not None:
        # It would be shown with the address, in errors and by SHOW PROPERTIES.
        message = f"{URL} must not hold a password; set {CREDENTIALS_SOURCE}=FILE and {CREDENTIALS_FILE}"
        raise ConfigError(message)
    return text.rstrip("/")


def _timeout(text: str) -> timedelta:
    if not text.isdecimal() or int(text) == 0:
        message = f"{TIMEOUT} must be a number of milliseconds above 0, got {describe_value(text)}"
        raise ConfigError(message)
    return timedelta(milliseconds=int(text))


def _credentials(given: Mapping[str, str]) -> tuple[str, str] | None:
    source = given[CREDENTIALS_SOURCE].upper()
    if source == "NONE":
        return None
    if source != "FILE":
        message = f"{CREDENTIALS_SOURCE} must be NONE or FILE, got {describe_value(given[CREDENTIALS_SOURCE])}"
        raise ConfigError(message)
    path = Path(given[CREDENTIALS_FILE]).expanduser()
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except OSError as error:
        message = f"{CREDENTIALS_FILE} cannot be read: {error}"
        raise ConfigError(message) from error
    found = {name.strip(): value.strip() for name, _, value in (line.partition("=") for line in lines)}
    if not found.get("username") or "password" not in found:
        message = f"{CREDENTIALS_FILE}: '{path}' must have the lines username=… and password=…"
        raise ConfigError(message)
    return found["username"], found["password"]

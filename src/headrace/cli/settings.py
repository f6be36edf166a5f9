"""Settings of an application from a file and from the command line."""

from __future__ import annotations

import json
import os
import tomllib
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

import click

from headrace.config import known_names

F = TypeVar("F", bound=Callable[..., Any])

_ENDINGS = ".json, .toml or .properties"
_OPTIONS = ("bootstrap_servers", "extras", "log_dir", "state_dir")


def together(*options: Callable[[F], F]) -> Callable[[F], F]:
    """Returns one decorator for several, in the order in which they would stand above a command."""

    def decorate(function: F) -> F:
        for option in reversed(options):
            function = option(function)
        return function

    return decorate


settings_options = together(
    click.option(
        "--config",
        "config_file",
        type=click.Path(exists=True, dir_okay=False, path_type=Path),
        metavar="FILE",
        help=f"Settings by Kafka's dotted names or ours, as {_ENDINGS}; those of --set and of the environment win.",
    ),
    click.option(
        "--set",
        "assignments",
        metavar="KEY=VALUE",
        multiple=True,
        help="A setting, such as commit.interval.ms=200 or spark.master='local[2,4]'. May be repeated.",
    ),
)


def read_settings(
    config_file: Path | None, assignments: tuple[str, ...], *, with_environment: bool = True
) -> dict[str, Any]:
    """Returns the settings of the file, over them those of the environment, and over them those of the command line."""
    settings = {} if config_file is None else read_file(config_file)
    for variable, name in _variables().items():
        if with_environment and os.environ.get(variable):
            _put(settings, name, os.environ[variable])
    for text in assignments:
        key, equals, value = text.partition("=")
        if not equals or not key.strip():
            message = f"'{text}' is no setting; write KEY=VALUE, for example commit.interval.ms=200"
            raise click.BadParameter(message, param_hint="--set")
        _put(settings, key.strip(), value.strip())
    return settings


def _put(settings: dict[str, Any], key: str, value: str) -> None:
    """Sets a value in place of the one that the setting has, under whichever of its names."""
    names = known_names()
    if key in names:
        for other in [each for each in settings if names.get(each) == names[key]]:
            del settings[other]
    settings[key] = value


@cache
def _variables() -> dict[str, str]:
    """The environment variables of settings, besides those that are options of the command, and what they set."""
    names = {f"HEADRACE_{name.upper()}": field for name, field in known_names().items() if name.isidentifier()}
    return {variable: field for variable, field in names.items() if field not in _OPTIONS}


def read_file(path: Path) -> dict[str, Any]:
    """Returns the settings of a file by their dotted names."""
    try:
        text = path.read_text(encoding="utf-8")
        if path.suffix == ".json":
            found = json.loads(text)
        elif path.suffix == ".toml":
            found = tomllib.loads(text)
        elif path.suffix in (".properties", ".conf"):
            found = _properties(text)
        else:
            message = f"'{path}' must end with {_ENDINGS}, so that one knows what it is"
            raise click.UsageError(message)
    except ValueError as error:
        message = f"'{path}' cannot be read as {path.suffix[1:]}: {error}"
        raise click.UsageError(message) from error
    if not isinstance(found, dict):
        message = f"'{path}' must hold an object of settings, found {type(found).__name__}"
        raise click.UsageError(message)
    return _flatten_keys(found)


def _flatten_keys(found: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Returns nested tables, which TOML makes of dotted names, as dotted names again."""
    flat: dict[str, Any] = {}
    for key, value in found.items():
        if isinstance(value, Mapping):
            flat |= _flatten_keys(value, f"{prefix}{key}.")
        else:
            flat[prefix + key] = value
    return flat


def _properties(text: str) -> dict[str, str]:
    found: dict[str, str] = {}
    for number, line in enumerate(text.replace("\\\n", "").splitlines(), 1):
        stripped = line.strip()
        if not stripped or stripped[0] in "#!":
            continue
        # Java takes the first of both for the end of the name.
        end = min((at for at in (stripped.find("="), stripped.find(":")) if at > 0), default=-1)
        if end < 0:
            message = f"line {number} is no setting: {stripped!r}; write name=value"
            raise ValueError(message)
        found[stripped[:end].strip()] = stripped[end + 1 :].strip()
    return found

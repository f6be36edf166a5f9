"""``module:build`` and ``file.py:build``: from what is typed to a topology and its configuration."""

from __future__ import annotations

import inspect
import sys
import traceback
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

import click

from headrace.config import StreamsConfig, known_names
from headrace.dsl import StreamsBuilder
from headrace.errors import ConfigError, StreamsError, did_you_mean
from headrace.topology import Topology

_DEFAULT = "build"
_CONFIG = "config"
_PACKAGE = Path(__file__).parents[1]
_FORMS = (
    "a function that takes a StreamsBuilder, a function that takes nothing and returns a Topology or StreamsBuilder, "
    "or a Topology or StreamsBuilder itself"
)


class TargetError(click.ClickException):
    """There is no topology where the command line says; so the usage was wrong."""

    exit_code = 2


def load_topology(target: str, config: StreamsConfig, directory: Path | None = None) -> Topology:
    """Returns the topology that a target names; paths are relative to ``directory`` (default: the current one).

    >>> load_topology("headrace:build", StreamsConfig())
    Traceback (most recent call last):
    ...
    headrace.cli.targets.TargetError: module 'headrace' has no 'build'; name a function that takes a StreamsBuilder, ...
    """
    place, name = _parts(target)
    found: Any = _import(place, directory or Path.cwd())
    for part in name.split("."):
        if not hasattr(found, part):
            known = [each for each in vars(found) if not each.startswith("_")] if hasattr(found, "__dict__") else []
            hint = did_you_mean(part, known) or f"; name {_FORMS}"
            message = f"module '{place}' has no '{name}'{hint}"
            raise TargetError(message)
        found = getattr(found, part)
    return _built(target, found, config)


def load_config(
    target: str, settings: Mapping[str, Any], application_id: str | None = None, *, is_named: bool = True
) -> StreamsConfig:
    """Returns the configuration of a target: that of its module, if it has a ``config``, with ``settings`` over it.

    An application that nobody names has the name of its module, unless ``is_named`` says that it needs none.
    """
    place, _ = _parts(target)
    # First of all: settings may name functions of modules that only then are found.
    own = getattr(_import(place, Path.cwd()), _CONFIG, None)
    try:
        base = StreamsConfig.of(own if isinstance(own, StreamsConfig | Mapping) else None)
    except ConfigError as error:
        message = f"{_CONFIG} of module '{place}': {error}"
        raise ConfigError(message) from error
    config = base.replaced(settings)
    if application_id is not None:
        return config.replaced({"application.id": application_id})
    names = known_names()
    is_anonymous = base.application_id == StreamsConfig().application_id
    if is_named and is_anonymous and all(names.get(key) != "application_id" for key in settings):
        return config.replaced({"application.id": short_name(target)})
    return config


def _parts(target: str) -> tuple[str, str]:
    place, _, name = target.rpartition(":") if ":" in target else (target, "", _DEFAULT)
    if not place or not name:
        message = f"'{target}' names no topology; write module:function or path/to/file.py:function"
        raise TargetError(message)
    return place, name


def short_name(target: str) -> str:
    """Returns the default application id: the name of the module.

    >>> short_name("examples/word_count.py:build"), short_name("shop.orders:build")
    ('word_count', 'orders')
    """
    place = target.rpartition(":")[0] if ":" in target else target
    return Path(place).stem if place.endswith(".py") else place.rpartition(".")[2]


def _import(place: str, directory: Path) -> ModuleType:
    if place.endswith(".py") or "/" in place:
        return _import_file(place, directory)
    _prefer(directory)
    try:
        return import_module(place)
    except ModuleNotFoundError as error:
        # A package above may be missing, too; anything else is an import inside of the user's module.
        if error.name is None or not f"{place}.".startswith(f"{error.name}."):
            raise _load_failure(error, f"module '{place}' cannot be imported") from error
        files = [path.stem for path in directory.glob("*.py")]
        path = place.replace(".", "/") + ".py"
        hint = did_you_mean(place, files) or f"; for a file write its path, {path}:{_DEFAULT}"
        message = f"there is no module '{error.name}' in '{directory}' or in what Python has installed{hint}"
        raise TargetError(message) from None
    except Exception as error:
        raise _load_failure(error, f"module '{place}' cannot be imported") from error


def _import_file(place: str, directory: Path) -> ModuleType:
    path = (directory / Path(place).expanduser()).resolve()
    if not path.is_file():
        near = [each.name for each in path.parent.glob("*.py")] if path.parent.is_dir() else []
        message = f"there is no file '{path}'{did_you_mean(path.name, near)}"
        raise TargetError(message)
    if path.suffix != ".py":
        message = f"'{place}' is no file of Python, whose name ends with .py"
        raise TargetError(message)
    # A file in a package has imports relative to it. By its name the executors find the module, too.
    root, names = path.parent, [path.stem]
    while (root / "__init__.py").exists():
        names.insert(0, root.name)
        root = root.parent
    name = ".".join(names)
    _prefer(root)
    try:
        module = import_module(name)
    except Exception as error:
        raise _load_failure(error, f"'{place}' cannot be imported") from error
    loaded = getattr(module, "__file__", None)
    if loaded is None or Path(loaded).resolve() != path:
        message = f"'{place}': another module is called '{name}', {loaded or 'a built-in one'}; rename the file"
        raise TargetError(message)
    return module


def _prefer(directory: Path) -> None:
    text = str(directory)
    if text in sys.path:
        sys.path.remove(text)
    sys.path.insert(0, text)


def _built(target: str, found: Any, config: StreamsConfig) -> Topology:
    result = found
    if callable(found) and not isinstance(found, Topology | StreamsBuilder):
        builder = StreamsBuilder(config)
        arguments = (builder,) if _wants_builder(target, found) else ()
        try:
            result = found(*arguments)
        except StreamsError:
            # It says itself what is wrong with the topology.
            raise
        except Exception as error:
            raise _load_failure(error, f"{target} failed") from error
        if result is None and arguments:
            result = builder
    if isinstance(result, StreamsBuilder):
        result = result.build(config)
    if isinstance(result, Topology):
        return result
    what = "gives" if callable(found) else "is"
    message = f"{target} {what} {type(result).__name__}, which is no topology; name {_FORMS}"
    raise TargetError(message)


def _wants_builder(target: str, function: Any) -> bool:
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return False
    required = [
        each
        for each in parameters
        if each.default is each.empty and each.kind not in (each.VAR_POSITIONAL, each.VAR_KEYWORD)
    ]
    if len(required) > 1 or any(each.kind is each.KEYWORD_ONLY for each in required):
        message = f"{target} takes {', '.join(each.name for each in required)}; name {_FORMS}"
        raise TargetError(message)
    return bool(required)


def _load_failure(error: Exception, what: str) -> click.ClickException:
    """Returns the error for an exception in the user's module, with its line; --debug shows the traceback."""
    if isinstance(error, SyntaxError) and error.filename:
        where = f" ({error.filename}, line {error.lineno})"
        return click.ClickException(f"{what}: {error.msg}{where}")
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if "importlib" not in frame.filename]
    # A mistake shows inside of Headrace, too; it is made in the last line outside.
    frames = [frame for frame in frames if _PACKAGE not in Path(frame.filename).parents] or frames
    where = f" ({frames[-1].filename}, line {frames[-1].lineno})" if frames else ""
    return click.ClickException(f"{what}: {type(error).__name__}: {error}{where}")

"""``headrace doctor``: checks of what an application needs on this machine, with a remedy for what is missing."""

from __future__ import annotations

import os
import re
import shutil
import socket
import sys
from collections.abc import Iterator
from contextlib import closing, suppress
from dataclasses import asdict, dataclass
from importlib.metadata import PackageNotFoundError, requires, version
from pathlib import Path
from typing import Literal
from urllib.error import HTTPError
from urllib.request import urlopen

import click

from headrace.app.directories import open_log
from headrace.cli.common_options import CommonOptions, common_options
from headrace.cli.printing import Size, json_option, note, print_json, print_table
from headrace.config import StreamsConfig
from headrace.errors import StreamsError

_PYTHON = (3, 11)
_ROOM = 1_000_000_000
_PORTS = {8080: "http.listen of the guide", 8081: "headrace registry", 8088: "headrace sql server", 9092: "Kafka"}
_BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "firefox")
_EXTRA = re.compile(r"^([\w.-]+)(?:\[([\w,-]+)\])?.*extra == ['\"]([\w-]+)['\"]")
_SECONDS = 5.0

Status = Literal["ok", "missing", "failed"]


@dataclass(frozen=True)
class Finding:
    """One thing that was looked for."""

    what: str
    status: Status
    found: str
    remedy: str = ""
    """What to do; empty if there is nothing to do."""
    is_needed: bool = True
    """Whether applications cannot run without it."""


@click.command(short_help="Look for what applications need here.")
@click.option("--schema-registry", metavar="URL", help="A schema registry that applications use.")
@json_option
@common_options()
@click.pass_obj
def doctor(common: CommonOptions, schema_registry: str | None, *, as_json: bool) -> int:
    """Look for what applications need here, and say what to do about what is missing.

    It looks for Python, Java and Spark, for room on the disk of the state directory, for the broker of
    --bootstrap-servers and the registry of --schema-registry if they are given, and for what only some need: packages
    of extras, a browser for the console, free ports. It changes nothing. The exit code is 1 if something is missing
    that applications cannot run without.

    \b
      headrace doctor
      headrace doctor --bootstrap-servers localhost:9092 --schema-registry http://localhost:8081
    """
    found = list(examine(common.config(), schema_registry))
    if as_json:
        print_json([asdict(each) for each in found])
    else:
        print_table(("what", "", "found"), [(each.what, _mark(each), each.found) for each in found])
    lacking = [each for each in found if each.status != "ok" and each.is_needed]
    if not as_json:
        _advise(found, lacking)
    return 1 if lacking else 0


def examine(config: StreamsConfig, registry: str | None = None) -> Iterator[Finding]:
    """Yields what is found, one thing after the other."""
    yield _python()
    yield _java()
    yield _spark()
    yield _disk(Path(config.state_dir))
    if config.bootstrap_servers is None:
        yield Finding("broker", "ok", "none is asked for: topics are in the embedded log", is_needed=False)
    else:
        yield _broker(config)
    if registry is None:
        yield Finding("registry", "ok", "none is asked for", is_needed=False)
    else:
        yield _registry(registry)
    yield from _extras()
    yield _browser()
    yield _ports()


def _python() -> Finding:
    now = ".".join(map(str, sys.version_info[:3]))
    if sys.version_info >= _PYTHON:
        return Finding("Python", "ok", now)
    return Finding("Python", "failed", now, "install Python 3.11 or newer")


def _java() -> Finding:
    from headrace.spark.java import find_java

    try:
        java = find_java()
    except StreamsError as error:
        return Finding("Java", "missing", str(error), "install Java 17 or newer, or `pip install 'headrace[java]'`")
    return Finding("Java", "ok", f"{java.version} in {java.runtime}")


def _spark() -> Finding:
    try:
        return Finding("Spark", "ok", version("pyspark"))
    except PackageNotFoundError:
        return Finding("Spark", "missing", "the package pyspark is not installed", "`pip install 'headrace[spark]'`")


def _disk(directory: Path) -> Finding:
    there = next(path for path in (directory, *directory.absolute().parents) if path.exists())
    free = shutil.disk_usage(there).free
    found = f"{Size(free)} free for {directory}"
    if not os.access(there, os.W_OK):
        remedy = "set --state-dir to a directory that this user may write"
        return Finding("disk", "failed", f"{there} cannot be written", remedy)
    if free < _ROOM:
        return Finding("disk", "failed", found, "make room, or set --state-dir to another disk")
    return Finding("disk", "ok", found)


def _broker(config: StreamsConfig) -> Finding:
    try:
        with closing(open_log(config)) as log:
            return Finding("broker", "ok", f"{config.bootstrap_servers}, {len(log.topics())} topics")
    except StreamsError as error:
        remedy = "start it, for development with `headrace kafka start`, or correct --bootstrap-servers"
        return Finding("broker", "failed", str(error), remedy)
    except ImportError as error:
        found = f"the package {error.name} is not installed"
        return Finding("broker", "missing", found, "`pip install 'headrace[kafka]'`")


def _registry(url: str) -> Finding:
    remedy = "start it, for development with `headrace registry`, or correct --schema-registry"
    try:
        with urlopen(f"{url.rstrip('/')}/subjects", timeout=_SECONDS):
            return Finding("registry", "ok", url)
    except HTTPError as error:
        return Finding("registry", "failed", f"{url} answers {error.code} {error.reason}", remedy)
    except (OSError, ValueError) as error:
        return Finding("registry", "failed", f"{url} cannot be reached: {error}", remedy)


def _extras() -> Iterator[Finding]:
    """Yields which packages of which extras are there; Java and Spark have findings of their own."""
    packages: dict[str, list[str]] = {}
    for requirement in requires("headrace") or ():
        if (match := _EXTRA.match(requirement)) is not None and match[3] not in ("dev", "docs", "java", "spark"):
            packages.setdefault(match[3], []).append(match[1])
    for extra, names in sorted(packages.items()):
        missing = [name for name in names if name != "headrace" and not _is_installed(name)]
        if missing:
            found, remedy = f"without {', '.join(missing)}", f"`pip install 'headrace[{extra}]'`, if you need it"
            yield Finding(f"extra {extra}", "missing", found, remedy, is_needed=False)
        else:
            yield Finding(f"extra {extra}", "ok", "all packages are installed", is_needed=False)


def _is_installed(name: str) -> bool:
    try:
        return bool(version(name))
    except PackageNotFoundError:
        return False


def _browser() -> Finding:
    named = os.environ.get("HEADRACE_BROWSER")
    path = named or next((path for name in _BROWSERS if (path := shutil.which(name))), None)
    if path is None:
        remedy = "any browser shows the console, also one on another machine"
        return Finding("browser", "missing", "none of this machine", remedy, is_needed=False)
    return Finding("browser", "ok", path, is_needed=False)


def _ports() -> Finding:
    taken = [f"{port} ({use})" for port, use in _PORTS.items() if not _is_free(port)]
    if taken:
        remedy = "let Headrace listen elsewhere: --http, --listen or --port"
        return Finding("ports", "failed", f"taken: {', '.join(taken)}", remedy, is_needed=False)
    return Finding("ports", "ok", f"{', '.join(map(str, _PORTS))} are free", is_needed=False)


def _is_free(port: int) -> bool:
    with suppress(OSError), socket.create_connection(("localhost", port), timeout=1):
        return False
    return True


def _mark(finding: Finding) -> str:
    return finding.status if finding.is_needed or finding.status == "ok" else f"{finding.status}, optional"


def _advise(found: list[Finding], lacking: list[Finding]) -> None:
    for each in found:
        if each.remedy:
            note(f"{each.what}: {each.remedy}")
    note(f"applications cannot run here: {', '.join(each.what for each in lacking)}" if lacking else "all is well")

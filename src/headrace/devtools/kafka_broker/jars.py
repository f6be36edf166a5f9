"""The broker's jars: fetched once by the dependency manager that PySpark carries, checked, kept in the cache."""

from __future__ import annotations

import hashlib
import importlib.util
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

from headrace.errors import LogError, MissingDependencyError
from headrace.spark.cache import cache_directory

KAFKA_VERSION = "4.1.1"
_SCALA = "2.13"

# Of the names and checksums of all jars, in their order: a repository that sends something else is refused.
_DIGEST = "7a7aa131316512e6f33c34f6f78e4968b67bacd4744701603fba4db36e233a31"
_FETCH_TIMEOUT_S = 600.0


def kafka_jars(java: Path) -> Path:
    """Returns the directory with the broker's jars. The first call needs the network, later ones do not."""
    return kept_jars(java, "kafka", f"kafka_{_SCALA}", _DIGEST)


def kept_jars(java: Path, name: str, artifact: str, digest: str, *options: str) -> Path:
    """Returns the directory with an artifact of Kafka's and what it needs; ``options`` are those of the manager."""
    cache = cache_directory()
    if cache is None:
        message = "the broker's jars need a directory to be kept in; set HEADRACE_CACHE_DIR to one that is yours"
        raise LogError(message)
    jars = cache / f"{name}-{KAFKA_VERSION}"
    if not jars.is_dir():
        with tempfile.TemporaryDirectory(prefix="kafka-", dir=cache) as work:
            fetched = Path(work) / "jars"
            _fetch(java, artifact, fetched, Path(work), options)
            check_jars(fetched, digest)
            try:
                fetched.rename(jars)
            except OSError:
                # Somebody else was faster, and has the same.
                if not jars.is_dir():
                    raise
    return jars


def _fetch(java: Path, artifact: str, target: Path, work: Path, options: Sequence[str]) -> None:
    command = [
        *(str(java), "-Xmx256m", "-XX:TieredStopAtLevel=1", "-jar", str(_ivy())),
        *("-dependency", "org.apache.kafka", artifact, KAFKA_VERSION, *options),
        *("-cache", str(work / "ivy"), "-confs", "default"),
        *("-retrieve", f"{target}/[artifact]-[revision].[ext]"),
    ]
    try:
        done = subprocess.run(command, cwd=work, capture_output=True, text=True, timeout=_FETCH_TIMEOUT_S, check=False)
    except subprocess.TimeoutExpired:
        message = f"the jars of Kafka {KAFKA_VERSION} could not be fetched within {_FETCH_TIMEOUT_S:.0f} s; try again"
        raise LogError(message) from None
    if done.returncode != 0 or not target.is_dir():
        last = "\n".join((done.stdout + done.stderr).splitlines()[-5:])
        message = (
            f"the jars of Kafka {KAFKA_VERSION} could not be fetched: check the network, or a proxy's settings; the "
            f"last that was said:\n{last}"
        )
        raise LogError(message)


def _ivy() -> Path:
    found = importlib.util.find_spec("pyspark")
    for place in () if found is None else found.submodule_search_locations or ():
        for jar in sorted(Path(place, "jars").glob("ivy-*.jar")):
            return jar
    message = "the broker's jars are fetched with a tool of PySpark, which is missing: pip install 'headrace[spark]'"
    raise MissingDependencyError(message)


def check_jars(jars: Path, digest: str = _DIGEST) -> None:
    """Refuses jars that are not the ones that were tested."""
    found = jars_digest(jars)
    if found != digest:
        message = (
            f"the jars of Kafka {KAFKA_VERSION} that were fetched are not the ones that were tested (digest {found}); "
            "check where your Maven repository gets them from"
        )
        raise LogError(message)


def jars_digest(jars: Path) -> str:
    """Returns a checksum over the names and contents of all jars."""
    whole = hashlib.sha256()
    for jar in sorted(jars.glob("*.jar")):
        whole.update(jar.name.encode() + b"\0" + hashlib.sha256(jar.read_bytes()).digest())
    return whole.hexdigest()

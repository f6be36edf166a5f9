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
_TOOLS_DIGEST = "47225de378a2aa206153b576303a28ef04e07aaf45f88efc1e9d0be8a73adce8"
_STREAMS_DIGEST = "a9732581f92ce1f47fa9a7fab2b73a5d83400d3aa9298e166f4d0fd8f8e75d80"
_CONNECT_DIGEST = "8f4c90a880cd75726cf59025dc5a0108955b2b5493f27c9bd5828346b20cde9d"
_CONNECT_FILE_DIGEST = "41167dae93cf6a2f6dfdb13f3af29ed25f8e273aa2905c3e598d9c7a8fa33fb2"
_FETCH_TIMEOUT_S = 600.0


def kafka_jars(java: Path) -> Path:
    """Returns the directory with the broker's jars. The first call needs the network, later ones do not."""
    return _kept(java, f"kafka-{KAFKA_VERSION}", f"kafka_{_SCALA}", _DIGEST)


def tools_jars(java: Path) -> Path:
    """Returns the directory with Kafka's command-line tools, which run with the broker's jars beside them."""
    return _kept(java, f"kafka-tools-{KAFKA_VERSION}", "kafka-tools", _TOOLS_DIGEST, "-notransitive")


def streams_jars(java: Path) -> Path:
    """Returns the directory with Kafka Streams itself, whose classes need the broker's jars beside them."""
    return _kept(java, f"kafka-streams-{KAFKA_VERSION}", "kafka-streams", _STREAMS_DIGEST, "-notransitive")


def connect_jars(java: Path) -> Path:
    """Returns the directory with a worker of Kafka Connect, without connectors."""
    return _kept(java, f"kafka-connect-{KAFKA_VERSION}", "connect-runtime", _CONNECT_DIGEST)


def connect_file_jars(java: Path) -> Path:
    """Returns the directory with the connectors that read and write files."""
    return _kept(java, f"kafka-connect-file-{KAFKA_VERSION}", "connect-file", _CONNECT_FILE_DIGEST, "-notransitive")


def _kept(java: Path, name: str, artifact: str, digest: str, *options: str) -> Path:
    cache = cache_directory()
    if cache is None:
        message = "the broker's jars need a directory to be kept in; set HEADRACE_CACHE_DIR to one that is yours"
        raise LogError(message)
    jars = cache / name
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

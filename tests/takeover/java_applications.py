"""Kafka Streams applications in a Java process of their own: started, closed, and killed with it."""

from __future__ import annotations

import json
import queue
import subprocess
import threading
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import pyspark

from headrace.devtools.kafka_broker.jars import kafka_jars
from headrace.spark.java import find_java
from tests.jars import streams_jars

_SOURCES = Path(__file__).parent / "java" / "headrace"
_PATIENCE_S = 90.0
_JVM = ("-Xmx512m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xshare:auto")
SESSION_S = 6.0
"""Session timeout of the consumers: so long members stay in a group after they are closed."""


def class_path(java: Path, classes: Path) -> str:
    """Returns where Java finds the applications, Kafka Streams, and RocksDB, which comes with Spark."""
    (rocksdb,) = Path(pyspark.__file__).parent.glob("jars/rocksdbjni-*.jar")
    return f"{classes}:{streams_jars(java)}/*:{kafka_jars(java)}/*:{rocksdb}"


def compile_applications(directory: Path) -> Path:
    """Compiles the Java sources beside this file; returns where the classes are."""
    home = find_java().home
    classes = directory / "classes"
    if not classes.exists():
        path = class_path(home / "bin" / "java", classes)
        sources = [str(path) for path in sorted(_SOURCES.glob("*.java"))]
        subprocess.run(
            [str(home / "bin" / "javac"), "-Xlint:-options", "-nowarn", "-d", str(classes), "-cp", path, *sources],
            check=True,
        )
    return classes


class JavaApplications:
    """A Java process; its applications end with it."""

    def __init__(self, directory: Path, bootstrap_servers: str) -> None:
        self._servers = bootstrap_servers
        self._state = directory / "state"
        java = find_java().home / "bin" / "java"
        path = class_path(java, compile_applications(directory))
        with (directory / "java.log").open("ab") as errors:
            self._process = subprocess.Popen(
                [str(java), *_JVM, "-cp", path, "headrace.CaseApplications"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
            )
        self._said: queue.Queue[tuple[str, str, str]] = queue.Queue()
        self.descriptions: dict[str, str] = {}
        """What ``describe()`` of each topology says."""
        self._listener = threading.Thread(target=self._listen, daemon=True)
        self._listener.start()

    def _listen(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            what, name, more = line.rstrip("\n").split("\t")
            if what == "DESCRIBED":
                self.descriptions[name] = more.replace("\\n", "\n")
            else:
                self._said.put((what, name, more))

    def start(self, name: str, nodes: Sequence[Mapping[str, Any]], settings: Mapping[str, object]) -> None:
        """Starts an application; ``wait`` tells when it runs."""
        properties = {
            "application.id": name,
            "bootstrap.servers": self._servers,
            "state.dir": str(self._state),
            "processing.guarantee": "exactly_once_v2",
            "commit.interval.ms": "50",
            "statestore.cache.max.bytes": "0",
            "auto.offset.reset": "earliest",
            "session.timeout.ms": str(int(SESSION_S * 1000)),
            "heartbeat.interval.ms": "1000",
            "producer.transaction.timeout.ms": "5000",
            "producer.linger.ms": "5",
            "replication.factor": "1",
            "__emit.interval.ms.kstreams.windowed.aggregation__": "0",
            "__emit.interval.ms.kstreams.outer.join.spurious.results.fix__": "0",
            **{key: str(value) for key, value in settings.items()},
        }
        self._order({"do": "start", "name": name, "nodes": list(nodes), "properties": properties})

    def wait(self, what: str, names: Iterable[str]) -> None:
        """Waits until all of some applications have said something."""
        missing, deadline = set(names), time.monotonic() + _PATIENCE_S
        while missing:
            found, name, more = self._said.get(timeout=max(0.1, deadline - time.monotonic()))
            if found == "FAILED":
                message = f"Kafka Streams application {name} failed: {more}"
                raise AssertionError(message)
            if found == what:
                missing.discard(name)

    def close(self, names: Sequence[str]) -> None:
        """Closes applications, as a deployment would."""
        self._order({"do": "close", "names": list(names)})
        self.wait("CLOSED", names)

    def kill(self) -> None:
        """Ends the process without a warning."""
        self._process.kill()
        self._process.wait()
        self._listener.join()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                with suppress(BrokenPipeError):
                    pipe.close()

    def _order(self, order: Mapping[str, Any]) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(order) + "\n")
        self._process.stdin.flush()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.kill()

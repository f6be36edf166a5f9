"""A worker of Kafka Connect on this machine: one process, which keeps its connectors in its memory."""

from __future__ import annotations

import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import httpx

from headrace.devtools.kafka_broker.jars import connect_file_jars, connect_jars
from headrace.spark.java import find_java

_HOST = "127.0.0.1"
_START_TIMEOUT_S = 90.0
_JVM = ("-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xshare:auto")

# Alone, it has no topics of its own, which tests that want an empty broker would delete.
_PROPERTIES = """\
bootstrap.servers={broker}
listeners=http://{host}:{port}
key.converter=org.apache.kafka.connect.storage.StringConverter
value.converter=org.apache.kafka.connect.storage.StringConverter
offset.storage.file.filename={directory}/offsets
offset.flush.interval.ms=1000
plugin.path={plugins}
plugin.discovery=service_load
consumer.auto.offset.reset=earliest
consumer.metadata.max.age.ms=1000
"""
# Its standard input ends with the tests, also if they are killed.
_UNTIL_TESTS_END = '"$@" & worker=$!; cat >/dev/null; kill "$worker"; wait "$worker"'


@contextmanager
def connect_worker(broker: str, directory: Path) -> Iterator[str]:
    """Starts a worker for a broker; gives its address once it answers."""
    java = find_java().home / "bin" / "java"
    port = _free_port()
    properties = directory / "worker.properties"
    properties.write_text(
        _PROPERTIES.format(broker=broker, host=_HOST, port=port, directory=directory, plugins=connect_file_jars(java)),
        encoding="utf-8",
    )
    command = [
        str(java),
        *_JVM,
        "-cp",
        f"{connect_jars(java)}/*",
        "org.apache.kafka.connect.cli.ConnectStandalone",
        str(properties),
    ]
    output = directory / "worker.log"
    with (
        output.open("w", encoding="utf-8") as log,
        subprocess.Popen(
            ["/bin/sh", "-c", _UNTIL_TESTS_END, "sh", *command],
            stdin=subprocess.PIPE,
            stdout=log,
            stderr=log,
            start_new_session=True,
        ) as process,
    ):
        try:
            url = f"http://{_HOST}:{port}"
            _wait(url, output)
            yield url
        finally:
            assert process.stdin is not None
            process.stdin.close()


def _wait(url: str, output: Path) -> None:
    deadline = time.monotonic() + _START_TIMEOUT_S
    while time.monotonic() < deadline:
        try:
            httpx.get(f"{url}/connectors", trust_env=False, timeout=5).raise_for_status()
        except httpx.HTTPError:
            time.sleep(0.1)
        else:
            return
    said = output.read_text(encoding="utf-8", errors="replace")[-2000:]
    message = f"the Connect worker did not answer within {_START_TIMEOUT_S:.0f} s: {said}"
    raise RuntimeError(message)


def _free_port() -> int:
    with closing(socket.socket()) as probe:
        probe.bind((_HOST, 0))
        port: int = probe.getsockname()[1]
        return port

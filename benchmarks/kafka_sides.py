"""Who takes part in the benchmark on Kafka: Headrace, Kafka Streams itself, and a bare loop of the client.

Each is a process that runs until its input is closed, and reads the same topics. An observer sees how far it is.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from tempfile import gettempdir

from benchmarks.engine_run import Task
from benchmarks.process_tree import tree, wait_until_gone
from headrace.spark.java import find_java

JAVA_PROJECT = Path(__file__).parent / "kafka_streams"
_BUILT = Path(gettempdir()) / "headrace-kafka-streams-benchmark"
_STOP_SECONDS = 60.0


@dataclass(frozen=True)
class Side:
    """One of those that are compared."""

    name: str
    title: str
    guarantee: str
    tells: bool = False
    """Whether it prints what it has committed; otherwise the broker is asked for its offsets."""


HEADRACE = Side("headrace", "Headrace, exactly once", "exactly_once_v2", tells=True)
HEADRACE_ONCE_OR_MORE = Side("at-least-once", "Headrace, at least once", "at_least_once", tells=True)
KAFKA_STREAMS = Side("kafka-streams", "Kafka Streams, exactly once", "exactly_once_v2")
CLIENT = Side("client", "consume and produce, exactly once", "exactly_once_v2")
SIDES = {side.name: side for side in (HEADRACE, HEADRACE_ONCE_OR_MORE, KAFKA_STREAMS, CLIENT)}


def build_java() -> None:
    """Builds the programs on Kafka Streams with Maven."""
    if shutil.which("mvn") is None:
        message = (
            "Maven is needed to build the programs on Kafka Streams: install it, or leave kafka-streams out of --sides"
        )
        raise SystemExit(message)
    # Java does not follow TMPDIR.
    command = ["mvn", "-q", "-B", f"-Djava.io.tmpdir={gettempdir()}", "package"]
    subprocess.run(command, cwd=JAVA_PROJECT, check=True)


def _java_command(program: str, out: str, servers: str, application: str, directory: Path) -> list[str]:
    settings = {
        "bootstrap.servers": servers,
        "application.id": application,
        "processing.guarantee": KAFKA_STREAMS.guarantee,
        "num.stream.threads": "2",
        "state.dir": str(directory / "kafka-streams"),
        "auto.offset.reset": "earliest",
        # As large as Headrace's here: updates of a key within a commit interval are one.
        "statestore.cache.max.bytes": str(1 << 30),
    }
    file = directory / f"{application}.properties"
    file.write_text("".join(f"{name}={value}\n" for name, value in settings.items()))
    classpath = f"{_BUILT / 'classes'}:{_BUILT / 'lib'}/*"
    java = find_java().home / "bin" / "java"
    return [str(java), "-Xmx4g", "-cp", classpath, "headrace.Programs", program, out, str(file)]


def command(
    side: Side, application: str, program: str, inputs: Sequence[str], out: str, servers: str, directory: Path
) -> list[str]:
    """Returns the command that starts a side."""
    if side is KAFKA_STREAMS:
        return _java_command(program, out, servers, application, directory)
    if side is CLIENT:
        return [sys.executable, "-m", "benchmarks.kafka_loop", servers, application, out, *inputs]
    task = Task(
        program=program,
        application=application,
        directory=str(directory),
        out=out,
        until_end=False,
        bootstrap_servers=servers,
        guarantee=side.guarantee,
    )
    return [sys.executable, "-m", "benchmarks.engine_run", json.dumps(asdict(task))]


def application_of(side: Side, program: str, what: str) -> str:
    """Returns the id of an application: one per measurement, because its results and its state belong together."""
    return f"bench-{what}-{side.name}-{program}"


def records_told(output: Path) -> int:
    """Returns how many records a side has committed, by the lines that it has printed."""
    lines = output.read_text(errors="replace").splitlines(keepends=True)
    return sum(json.loads(line)["records_in"] for line in lines if line.startswith("{") and line.endswith("\n"))


@contextmanager
def started(arguments: Sequence[str], output: Path) -> Iterator[subprocess.Popen[bytes]]:
    """Runs a command for as long as the context lasts; what it prints goes to a file."""
    with output.open("wb") as file:
        process = subprocess.Popen(arguments, stdin=subprocess.PIPE, stdout=file, stderr=subprocess.STDOUT)
    try:
        yield process
    finally:
        processes = tree(process.pid)
        if process.stdin is not None:
            process.stdin.close()
        try:
            process.wait(_STOP_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
        wait_until_gone(processes)

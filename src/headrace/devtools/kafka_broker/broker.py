"""Starting and stopping the broker; its directory says how it is reached, so that another process can stop it."""

from __future__ import annotations

import contextlib
import json
import socket
import subprocess
import time
import uuid
from base64 import urlsafe_b64encode
from dataclasses import asdict, dataclass
from pathlib import Path

from headrace.devtools.background_process import end, is_running, last_lines, launch
from headrace.devtools.kafka_broker.jars import kafka_jars
from headrace.errors import LockError, LogError, StreamsError
from headrace.spark.java import find_java
from headrace.topics.kafka import KafkaLog

_HOST = "127.0.0.1"
_START_TIMEOUT_S = 90.0
_STOP_TIMEOUT_S = 30.0
_STEP_S = 0.1
_JVM = ("-Xmx256m", "-Xms64m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xshare:auto")

# One node that is its own controller, with internal topics of one partition, and no waiting for others. As in the
# embedded log nothing is forgotten unless a topic asks for it: samples with old timestamps would vanish before they are
# read.
_PROPERTIES = """\
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@{host}:{controller_port}
listeners=PLAINTEXT://{host}:{port},CONTROLLER://{host}:{controller_port}
advertised.listeners=PLAINTEXT://{host}:{port}
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT
controller.listener.names=CONTROLLER
inter.broker.listener.name=PLAINTEXT
log.dirs={data}
auto.create.topics.enable=false
log.retention.ms=-1
num.partitions=1
default.replication.factor=1
min.insync.replicas=1
offsets.topic.num.partitions=1
offsets.topic.replication.factor=1
transaction.state.log.num.partitions=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
share.coordinator.state.topic.num.partitions=1
share.coordinator.state.topic.replication.factor=1
share.coordinator.state.topic.min.isr=1
group.initial.rebalance.delay.ms=0
log.cleaner.dedupe.buffer.size=2097152
num.io.threads=2
num.network.threads=1
num.recovery.threads.per.data.dir=1
{more}"""


@dataclass(frozen=True)
class Broker:
    """A broker that runs."""

    bootstrap_servers: str
    pid: int
    directory: str


def start_broker(directory: Path, *, port: int = 0, settings: dict[str, str] | None = None) -> Broker:
    """Starts a broker that keeps its topics in a directory; returns once it answers.

    ``port`` 0 takes a free one; ``settings`` are added to ``server.properties``. It outlives this process.
    """
    running = find_broker(directory)
    if running is not None:
        message = (
            f"a broker runs in '{directory}' already, as process {running.pid} on {running.bootstrap_servers}; use "
            "it, or stop it with 'headrace kafka stop'"
        )
        raise LockError(message)
    directory = directory.expanduser().resolve()
    java = find_java().home / "bin" / "java"
    command = [str(java), *_JVM, "-cp", f"{kafka_jars(java)}/*"]
    directory.mkdir(parents=True, exist_ok=True)
    properties = directory / "server.properties"
    port, controller_port = (port or _free_port()), _free_port()
    properties.write_text(
        _PROPERTIES.format(
            host=_HOST,
            port=port,
            controller_port=controller_port,
            data=directory / "data",
            more="".join(f"{key}={value}\n" for key, value in (settings or {}).items()),
        ),
        encoding="utf-8",
    )
    output = directory / "broker.log"
    if not (directory / "data" / "meta.properties").exists():
        _format(command, properties)
    broker = Broker(f"{_HOST}:{port}", launch([*command, "kafka.Kafka", str(properties)], output), str(directory))
    (directory / "broker.json").write_text(json.dumps(asdict(broker)), encoding="utf-8")
    try:
        _wait(broker, output)
    except BaseException:
        stop_broker(directory)
        raise
    return broker


def stop_broker(directory: Path) -> Broker | None:
    """Stops the broker of a directory and waits until it is gone; None if there was none."""
    broker = find_broker(directory)
    if broker is None:
        return None
    end(broker.pid, _words(broker), patience_s=_STOP_TIMEOUT_S)
    (Path(broker.directory) / "broker.json").unlink(missing_ok=True)
    return broker


def find_broker(directory: Path) -> Broker | None:
    """Returns the broker that runs in a directory."""
    try:
        broker = Broker(**json.loads((directory / "broker.json").read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError):
        return None
    return broker if _is_ours(broker) else None


def _is_ours(broker: Broker) -> bool:
    return is_running(broker.pid, _words(broker))


def _words(broker: Broker) -> str:
    return f"kafka.Kafka {broker.directory}"


def _format(command: list[str], properties: Path) -> None:
    cluster = urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
    # A leading hyphen would look like an option.
    cluster = f"A{cluster[1:]}"
    done = subprocess.run(
        [*command, "kafka.tools.StorageTool", "format", "-t", cluster, "-c", str(properties)],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        message = f"the broker's directory could not be prepared: {last_lines(done.stdout + done.stderr)}"
        raise LogError(message)


def _wait(broker: Broker, output: Path) -> None:
    deadline = time.monotonic() + _START_TIMEOUT_S
    while time.monotonic() < deadline:
        time.sleep(_STEP_S)
        if _listens(broker.bootstrap_servers):
            with contextlib.suppress(StreamsError), KafkaLog(broker.bootstrap_servers) as log:
                log.topics()
                return
        if not _is_ours(broker):
            said = last_lines(output.read_text(encoding="utf-8", errors="replace"))
            message = f"the broker ended while it was starting: {said}"
            raise LogError(message)
    message = f"the broker did not answer within {_START_TIMEOUT_S:.0f} s; see '{output}'"
    raise LogError(message)


def _listens(address: str) -> bool:
    host, _, port = address.rpartition(":")
    with socket.socket() as probe:
        probe.settimeout(1)
        return probe.connect_ex((host, int(port))) == 0


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind((_HOST, 0))
        port: int = probe.getsockname()[1]
        return port

"""Starting and stopping the broker; its directory says how it is reached, so that another process can stop it."""

from __future__ import annotations

import contextlib
import socket
import subprocess
import uuid
from base64 import urlsafe_b64encode
from pathlib import Path

from headrace.devtools.background_process import Server, Service, last_lines
from headrace.devtools.kafka_broker.jars import kafka_jars
from headrace.errors import LogError, StreamsError
from headrace.spark.java import find_java
from headrace.topics.kafka import KafkaLog

_HOST = "127.0.0.1"
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


_BROKER = Service("broker", "headrace kafka", file="broker.json", start_timeout_s=90, stop_timeout_s=30)


def start_broker(directory: Path, *, port: int = 0, settings: dict[str, str] | None = None) -> Server:
    """Starts a broker that keeps its topics in a directory; returns once it answers.

    ``port`` 0 takes a free one; ``settings`` are added to ``server.properties``. It outlives this process.
    """
    _BROKER.check_none_runs(directory)
    _check_port(port)
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
    if not (directory / "data" / "meta.properties").exists():
        _format(command, properties)
    command += ["kafka.Kafka", str(properties)]
    address = f"{_HOST}:{port}"
    return _BROKER.start(
        command,
        directory,
        f"kafka.Kafka {properties}",
        directory / "broker.log",
        lambda: address if _answers(address) else None,
    )


def stop_broker(directory: Path) -> Server | None:
    """Stops the broker of a directory and waits until it is gone; None if there was none."""
    return _BROKER.stop(directory)


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


def _answers(address: str) -> bool:
    with socket.socket() as probe:
        probe.settimeout(1)
        # Before the client is asked, which would complain about a broker that does not listen yet.
        if probe.connect_ex((_HOST, int(address.rpartition(":")[2]))) != 0:
            return False
    with contextlib.suppress(StreamsError), KafkaLog(address) as log:
        log.topics()
        return True
    return False


def _check_port(port: int) -> None:
    """Raises for a port that is taken: whoever answers there would be taken for the new broker."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((_HOST, port))
        except OSError as error:
            message = (
                f"the broker cannot listen at {_HOST}:{port}: {error.strerror}; choose another port, or 0 for any that "
                "is free"
            )
            raise LogError(message) from error


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind((_HOST, 0))
        port: int = probe.getsockname()[1]
        return port

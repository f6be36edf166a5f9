"""A standalone cluster of Spark on this machine: a master, and workers that come and go."""

from __future__ import annotations

import os
import socket
import subprocess
import time
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Self

import pyspark

from headrace.spark.java import find_java
from tests.spark.faults.machines import MASTER_HOST, on_own_machine

_SPARK = Path(pyspark.__file__).parent
_PROJECT = Path(__file__).resolve().parents[3]
_WORKER = "org.apache.spark.deploy.worker.Worker"
_WORKER_OPTIONS = ("--cores", "1", "--memory", "1g", "--webui-port", "0")


class Standalone:
    """The scripts that start it are not in the package from PyPI, the classes are."""

    def __init__(self, directory: Path) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        self._directory = directory
        self._port = _free_port()
        self._processes: list[subprocess.Popen[bytes]] = []
        self._start("org.apache.spark.deploy.master.Master", "--port", str(self._port), "--webui-port", "0")
        self._wait()

    @property
    def address(self) -> str:
        return f"spark://127.0.0.1:{self._port}"

    @property
    def remote_address(self) -> str:
        """The master's address on machines of ``on_own_machine``."""
        return f"spark://{MASTER_HOST}:{self._port}"

    def add_worker(self) -> subprocess.Popen[bytes]:
        """Lets a worker with one core join; killing it lets it leave, with its executors."""
        work = self._directory / f"worker-{len(self._processes)}"
        return self._start(_WORKER, *_WORKER_OPTIONS, "--work-dir", str(work), self.address)

    def add_machine(self, directory: Path) -> subprocess.Popen[bytes]:
        """Lets a worker with one core join that shares no directory with anybody: ``directory`` is its own there.

        Killing it ends everything that runs on the machine at once.
        """
        host = f"127.0.0.{len(self._processes) + 1}"
        options = (*_WORKER_OPTIONS, "--work-dir", str(directory / "work"), self.address)
        return self._start(_WORKER, *options, host=host, machine=directory)

    def _start(
        self, name: str, *arguments: str, host: str = "127.0.0.1", machine: Path | None = None
    ) -> subprocess.Popen[bytes]:
        environment = {
            **os.environ,
            "JAVA_HOME": str(find_java().home),
            "SPARK_HOME": str(_SPARK),
            "SPARK_LOCAL_IP": host,
            # What the image of a cluster has besides Headrace: the modules of its applications.
            "PYTHONPATH": os.pathsep.join([str(_PROJECT), *filter(None, [os.environ.get("PYTHONPATH")])]),
            "SPARK_DAEMON_MEMORY": "256m",
            # They have little to do but to start.
            "SPARK_DAEMON_JAVA_OPTS": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
        }
        command = [str(_SPARK / "bin" / "spark-class"), name, "--host", host, *arguments]
        with (self._directory / "standalone.txt").open("ab") as output:
            process = subprocess.Popen(
                command if machine is None else on_own_machine(command, machine, ends_together=True),
                env=environment,
                stdout=output,
                stderr=subprocess.STDOUT,
            )
        self._processes.append(process)
        return process

    def _wait(self) -> None:
        deadline = time.monotonic() + 120
        while time.monotonic() < deadline:
            with suppress(OSError), socket.create_connection(("127.0.0.1", self._port), timeout=1):
                return
            time.sleep(0.1)
        message = f"the master does not answer: {(self._directory / 'standalone.txt').read_text()[-2000:]}"
        raise AssertionError(message)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for process in reversed(self._processes):
            # A machine would not listen to anything milder.
            process.kill()
            process.wait(60)


def _free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])

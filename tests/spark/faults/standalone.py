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

_SPARK = Path(pyspark.__file__).parent


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

    def add_worker(self) -> subprocess.Popen[bytes]:
        """Lets a worker with one core join; killing it lets it leave, with its executors."""
        work = self._directory / f"worker-{len(self._processes)}"
        options = ("--cores", "1", "--memory", "1g", "--webui-port", "0", "--work-dir", str(work))
        return self._start("org.apache.spark.deploy.worker.Worker", *options, self.address)

    def _start(self, name: str, *arguments: str) -> subprocess.Popen[bytes]:
        environment = {
            **os.environ,
            "JAVA_HOME": str(find_java().home),
            "SPARK_HOME": str(_SPARK),
            "SPARK_LOCAL_IP": "127.0.0.1",
            "SPARK_DAEMON_MEMORY": "256m",
        }
        with (self._directory / "standalone.txt").open("ab") as output:
            process = subprocess.Popen(
                [str(_SPARK / "bin" / "spark-class"), name, "--host", "127.0.0.1", *arguments],
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
            process.terminate()
            process.wait(60)


def _free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])

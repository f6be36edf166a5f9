"""``headrace sql server --registry``: AVRO without anything else to be started."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
from pathlib import Path

import httpx

from tests.sql.server.kit import SOON

STATEMENTS = (
    "CREATE STREAM s (k INT KEY, v VARCHAR) WITH (kafka_topic='s', partitions=1, value_format='avro');"
    "INSERT INTO s VALUES (1, 'a');"
)


def test_server_with_a_registry_of_its_own(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "headrace.cli", "sql", "server", "--engine", "process", "--registry", "0"]
    command += ["--listen", "localhost:0", "--state-dir", str(tmp_path)]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    try:
        assert process.stderr is not None
        told, answering = process.stderr.readline(), process.stderr.readline()
        assert "not for production" in told
        registry, server = (re.findall(r"http://[\w.]+:\d+", line)[0] for line in (told, answering))
        done = httpx.post(f"{server}/ksql", json={"ksql": STATEMENTS}, timeout=SOON.total_seconds(), trust_env=False)
        assert done.status_code == 200, done.text
        assert httpx.get(f"{registry}/subjects", trust_env=False).json() == ["s-value"]
    finally:
        process.send_signal(signal.SIGTERM)
        code = process.wait(SOON.total_seconds())
        assert process.stderr is not None
        process.stderr.close()
    assert code == 0

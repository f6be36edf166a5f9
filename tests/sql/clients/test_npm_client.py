"""The client for Node.js, ``ksqldb-client``, unchanged: the examples of its page."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from tests.sql.server.kit import SOON, Client

PACKAGE = "ksqldb-client@1.0.5"
SCRIPT = Path(__file__).parent / "readme.js"


@pytest.fixture(scope="module")
def modules(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The directory of the client, which npm has fetched."""
    if shutil.which("node") is None or shutil.which("npm") is None:
        pytest.skip("no Node.js here: the examples of ksqldb-client were left out; install node and npm")
    directory = tmp_path_factory.mktemp("npm")
    command = ["npm", "install", "--no-audit", "--no-fund", "--ignore-scripts", "--prefix", str(directory), PACKAGE]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=SOON.total_seconds())
    if done.returncode != 0:
        said = " ".join(done.stderr.split())[-300:]
        pytest.skip(f"npm could not fetch {PACKAGE}: the examples of ksqldb-client were left out: {said}")
    return directory / "node_modules"


def test_examples_of_its_page(client: Client, modules: Path) -> None:
    port = urlsplit(client.server.url).port
    done = subprocess.run(
        # By number: Node may take localhost for another address.
        ["node", str(SCRIPT), "http://127.0.0.1", str(port)],
        capture_output=True,
        text=True,
        check=False,
        timeout=SOON.total_seconds(),
        env={**os.environ, "NODE_PATH": str(modules)},
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert [json.loads(line) for line in done.stdout.splitlines()] == [
        ["streams", []],
        ["create", [200, None]],
        ["create as select", [200, None]],
        ["insert", [200, None]],
        ["insert", [200, None]],
        ["insert", [200, None]],
        ["push", [200, _rows(("tree", 1), ("wind", 1), ("tree", 2))]],
        ["pull", [200, ["WORD", "N"], _rows(("tree", 2), ("wind", 1))]],
        ["terminated", [200, None]],
        ["describe", ["WORDS", [["WORD", "STRING"]]]],
        ["wrong", [400, 40001]],
        ["drop", [200, None]],
    ]


def _rows(*rows: tuple[str, int]) -> list[dict[str, Any]]:
    return [{"WORD": word, "N": n} for word, n in rows]

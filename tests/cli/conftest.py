"""Commands run in this process, on a log and a state directory of the test's own."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from headrace.cli import main
from headrace.topics.embedded import EmbeddedLog


@dataclass(frozen=True)
class Done:
    """What a command has printed, and its exit code."""

    code: int
    out: str
    err: str

    @property
    def lines(self) -> list[str]:
        return self.out.splitlines()

    @property
    def json(self) -> Any:
        return json.loads(self.out)

    @property
    def rows(self) -> list[Any]:
        """Lines of JSON."""
        return [json.loads(line) for line in self.lines]


Command = Callable[..., Done]


@pytest.fixture
def state_dir(tmp_path: Path) -> Path:
    return tmp_path / "state"


@pytest.fixture
def headrace(state_dir: Path) -> Command:
    """Runs a command; `code` is what it must end with."""

    def run(*args: object, stdin: str | bytes | None = None, code: int = 0) -> Done:
        env = {"HEADRACE_STATE_DIR": str(state_dir), "HEADRACE_LOG_DIR": None, "HEADRACE_DEBUG": None}
        result = CliRunner(env=env).invoke(main, [str(arg) for arg in args], input=stdin)
        done = Done(result.exit_code, result.stdout, result.stderr)
        assert done.code == code, done
        assert "Traceback" not in done.err
        return done

    return run


@pytest.fixture
def log(state_dir: Path) -> Iterator[EmbeddedLog]:
    with EmbeddedLog(state_dir / "log") as log:
        yield log

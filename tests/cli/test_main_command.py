"""Rules for every command: help, exit codes, errors of one line."""

from __future__ import annotations

from pathlib import Path

import click
import pytest
from click.shell_completion import ShellComplete
from click.testing import CliRunner

from headrace import __version__
from headrace.cli import main
from headrace.topics.embedded import EmbeddedLog
from tests.cli.conftest import Command


def commands(group: click.Group, *path: str) -> list[tuple[str, ...]]:
    found: list[tuple[str, ...]] = []
    for name, command in group.commands.items():
        found.append((*path, name))
        if isinstance(command, click.Group):
            found += commands(command, *path, name)
    return found


def test_bare_command_prints_the_overview(headrace: Command) -> None:
    text = headrace().out
    assert "Exit codes" in text
    assert all(name in text for name in main.commands)
    assert "..." not in text.partition("Commands:\n")[2]


def test_version(headrace: Command) -> None:
    assert headrace("--version").out == f"headrace, version {__version__}\n"


@pytest.mark.parametrize("path", commands(main), ids=" ".join)
def test_every_command_and_option_is_explained(headrace: Command, path: tuple[str, ...]) -> None:
    text = headrace(*path, "--help").out
    assert "\\b" not in text
    command: click.Command = main
    for name in path:
        assert isinstance(command, click.Group)
        command = command.commands[name]
    assert command.help
    unexplained = [
        option.name
        for option in command.params
        if isinstance(option, click.Option) and not option.help and option.name not in ("partitions", "engine")
    ]
    assert unexplained == []
    # A group has a line for each of its commands.
    assert "..." not in text.partition("Commands:\n")[2]


@pytest.mark.parametrize(
    ("args", "code", "message"),
    [
        (("frobnicate",), 2, "error: No such command 'frobnicate'"),
        (("topics", "list", "--nonsense"), 2, "try 'headrace topics list --help'"),
        (("describe",), 2, "error: Missing argument 'MODULE:BUILD'"),
        (("describe", "examples.word_count:build", "--set", "comit.interval.ms=1"), 2, "did you mean"),
        (("consume", "orders"), 1, "there is no log in"),
        (("topics", "create", "two words"), 1, "a topic name has 1 to 249 letters"),
        (("describe", "docs/index.md"), 2, "'docs/index.md' is no file of Python, whose name ends with .py"),
        (("sql", "--file", "nowhere.sql"), 2, "try 'headrace sql --help'"),
    ],
)
def test_wrong_usage_is_one_line_and_an_exit_code(
    headrace: Command, args: tuple[str, ...], code: int, message: str
) -> None:
    done = headrace(*args, code=code)
    assert message in done.err
    assert done.err.startswith("error: ")
    assert done.out == ""


def test_debug_shows_the_traceback(state_dir: Path) -> None:
    result = CliRunner().invoke(main, ["--debug", "--state-dir", str(state_dir), "consume", "orders"])
    assert result.exit_code == 1
    assert result.stderr.startswith("Traceback")
    assert "error: there is no log" in result.stderr


def test_places_may_be_said_before_and_behind_the_command(headrace: Command, tmp_path: Path) -> None:
    headrace("--log-dir", tmp_path / "one", "topics", "create", "orders")
    headrace("topics", "create", "users", "--log-dir", tmp_path / "one")
    headrace("--log-dir", tmp_path / "other", "topics", "create", "users", "--log-dir", tmp_path / "two")
    assert [each["topic"] for each in headrace("topics", "list", "--json", "--log-dir", tmp_path / "one").json] == [
        "orders",
        "users",
    ]
    assert not (tmp_path / "other").exists()


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_script(headrace: Command, shell: str) -> None:
    assert "_HEADRACE_COMPLETE" in headrace("completion", shell).out


def test_topics_are_completed(headrace: Command, log: EmbeddedLog, state_dir: Path) -> None:
    log.create_topic("orders")
    log.create_topic("users")
    complete = ShellComplete(main, {}, "headrace", "_HEADRACE_COMPLETE")
    found = complete.get_completions(["--state-dir", str(state_dir), "consume"], "o")
    assert [item.value for item in found] == ["orders"]

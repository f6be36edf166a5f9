"""The session in the guide is true: its commands run in a shell and print what the page says."""

from __future__ import annotations

import doctest
import os
import re
import subprocess
import sys
from pathlib import Path

from headrace.cli import main

PAGE = Path(__file__).parents[2] / "docs" / "guide" / "command_line.md"
BLOCK = re.compile(r"^```console\n(.*?)^```$", re.DOTALL | re.MULTILINE)
MARK = "--- command {} ---"


def session() -> list[tuple[str, str]]:
    """Returns the commands of the page, each with what it prints."""
    found: list[tuple[str, str]] = []
    for block in BLOCK.findall(PAGE.read_text(encoding="utf-8")):
        for line in block.splitlines(keepends=True):
            if line.startswith("$ "):
                found.append((line[2:], ""))
            elif line.startswith("> "):
                found[-1] = (found[-1][0] + line[2:], "")
            else:
                found[-1] = (found[-1][0], found[-1][1] + line)
    return found


def test_commands_print_what_the_page_says(tmp_path: Path) -> None:
    commands = session()
    assert len(commands) > 12
    script = "".join(f"echo '{MARK.format(number)}'\n{command}" for number, (command, _) in enumerate(commands))
    (tmp_path / "headrace").write_text(f'#!/bin/sh\nexec "{sys.executable}" -m headrace.cli "$@"\n')
    (tmp_path / "headrace").chmod(0o755)
    env = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"}
    done = subprocess.run(
        ["bash", "-c", script], cwd=tmp_path, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False
    )
    printed = re.split(r"^--- command \d+ ---\n", done.stdout.decode(), flags=re.MULTILINE)[1:]
    checker = doctest.OutputChecker()
    for (command, expected), found in zip(commands, printed, strict=True):
        assert checker.check_output(expected, found, doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE), (
            f"$ {command}{found}instead of\n{expected}"
        )


def test_every_command_is_in_the_guide() -> None:
    text = PAGE.read_text(encoding="utf-8")
    assert [name for name in main.commands if not re.search(rf"headrace {name}\b|^`{name}`", text, re.MULTILINE)] == []

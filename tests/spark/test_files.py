"""Everything that commands and an application create on a machine: where it lies, and that nobody else gets there."""

from __future__ import annotations

import os
import re
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from tests.views.processes import wait_until

pytestmark = pytest.mark.spark

PAGE = Path(__file__).parents[2] / "docs" / "guide" / "security.md"
PROGRAM = """
from headrace import Consumed, Grouped, Produced, Serdes, StreamsBuilder

def build():
    builder, text = StreamsBuilder(), Serdes.string()
    words = builder.stream("words", Consumed(key_serde=text, value_serde=text))
    counts = words.group_by(lambda key, word: word, Grouped("by-word", text, text)).count()
    counts.to_stream().to("counts", Produced(key_serde=text, value_serde=Serdes.long()))
    return builder.build()
"""


class Machine:
    """A home and a directory for temporary files, both empty, in which commands run one after the other."""

    def __init__(self, directory: Path, *arguments: str) -> None:
        self.temporary, self.home = directory / "tmp", directory / "home"
        self._arguments = arguments
        for each in (self.temporary, self.home):
            each.mkdir()
        self._program = directory / "program.py"
        self._program.write_text(PROGRAM)
        path = os.pathsep.join(sys.path)
        dropped = ("XDG_CACHE_HOME", "HEADRACE_CACHE_DIR", "HEADRACE_STATE_DIR", "HEADRACE_LOG_DIR")
        kept = {name: value for name, value in os.environ.items() if name not in dropped}
        self._environment = {**kept, "TMPDIR": str(self.temporary), "HOME": str(self.home), "PYTHONPATH": path}

    def run(self, *arguments: str, said: str = "") -> None:
        command = [sys.executable, "-m", "headrace.cli", *arguments, *self._arguments]
        done = subprocess.run(
            command, env=self._environment, input=said, capture_output=True, text=True, timeout=120, umask=0o022
        )
        assert done.returncode == 0, done.stderr

    def use(self) -> None:
        """Does what a newcomer does."""
        self.run("topics", "create", "words")
        self.run("topics", "create", "counts")
        self.run("produce", "words", "--value-format", "string", said="to\nbe\nor\nnot\nto\nbe\n")
        self.run("run", f"{self._program}:build", "-a", "shop", "--until-end")


def documented(places: dict[str, list[Path]]) -> list[Path]:
    """Returns the directories of the guide's table, with names for what stands in angle brackets."""
    section = PAGE.read_text(encoding="utf-8").partition("\n## Files\n")[2].partition("\n## ")[0]
    cells = [line.split("|")[1] for line in section.splitlines() if line.startswith("| `")]
    names = [name for cell in cells for name in re.findall(r"`([^`]+)`", cell) if name in places]
    assert names, "the guide names the directories"
    return [place for name in names for place in places[name]]


def check(machine: Machine, places: dict[str, list[Path]], given: Path | None = None) -> None:
    directories = documented(places)
    for each in (directory for directory in directories if directory.exists()):
        found = each.lstat()
        assert (stat.filemode(found.st_mode), found.st_uid) == ("drwx------", os.geteuid()), each
    roots = [machine.temporary, machine.home, *([] if given is None else [given])]
    above = {parent for directory in directories for parent in directory.parents}

    def undocumented() -> list[Path]:
        paths = [path for path in created(roots) if path not in above]
        return [path for path in paths if not any(path.is_relative_to(each) for each in directories)]

    # The process that makes the class archive may just be starting, and a Python that starts tries with a file of one
    # moment whether it can write to the temporary directory. What stays there is documented.
    wait_until(lambda: not undocumented(), "everything that was created lies in a directory of the guide's table")
    assert {owner for path in created(roots) for owner in owners(path)} == {os.geteuid()}


def created(roots: list[Path]) -> list[Path]:
    # Not rglob: it raises an error if a directory is deleted meanwhile.
    found = [Path(above, name) for root in roots for above, inner, files in os.walk(root) for name in (*inner, *files)]
    assert found, "something was created"
    return found


def owners(path: Path) -> list[int]:
    """Returns who owns a file; nobody if it has been deleted since, as a JVM that ends deletes its own."""
    try:
        return [path.lstat().st_uid]
    except FileNotFoundError:
        return []


def test_default_directories_are_closed_to_others(tmp_path: Path) -> None:
    machine = Machine(tmp_path)
    machine.use()
    own = machine.temporary / f"headrace-{os.geteuid()}"
    assert (own / "state" / "log").exists()
    check(
        machine,
        {
            "<temporary>/headrace-<user id>": [own],
            "<temporary>/tmp…": list(machine.temporary.glob("tmp*")),
            "<cache>/headrace": [machine.home / ".cache" / "headrace"],
        },
    )


def test_given_state_directory_has_closed_directories(tmp_path: Path) -> None:
    given = tmp_path / "state"
    given.mkdir(mode=0o755)
    machine = Machine(tmp_path, "--state-dir", str(given))
    machine.use()
    check(
        machine,
        {
            "<state.dir>/log": [given / "log"],
            "<state.dir>/<application id>": [given / "shop"],
            "<temporary>/headrace-<user id>": [machine.temporary / f"headrace-{os.geteuid()}"],
            "<temporary>/tmp…": list(machine.temporary.glob("tmp*")),
            "<cache>/headrace": [machine.home / ".cache" / "headrace"],
        },
        given,
    )

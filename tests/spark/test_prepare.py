"""The class archive: made by ``headrace prepare``, by the first application in the background, and used by the next."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

pytestmark = pytest.mark.spark

APPLICATION = """
import sys, time
from pathlib import Path
from headrace.config import StreamsConfig
from headrace.spark import later_archive
from headrace.spark.context import close_context, open_context
later_archive._WAIT_S = 0.0
context = open_context(StreamsConfig.of({"spark.master": "local[1,4]"}), directory=Path(sys.argv[1]))
Path(sys.argv[1], "options").write_bytes(Path(f"/proc/{context._gateway.proc.pid}/cmdline").read_bytes())
print("open", flush=True)
sys.stdin.read()
"""


def environment(cache: Path) -> dict[str, str]:
    path = os.pathsep.join(os.path.abspath(entry) for entry in sys.path)
    return {**os.environ, "HEADRACE_CACHE_DIR": str(cache), "PYTHONPATH": path}


def archives(cache: Path) -> list[Path]:
    return list(cache.glob("classes/*/archive.jsa"))


def start(directory: Path, cache: Path) -> subprocess.Popen[str]:
    directory.mkdir()
    command = [sys.executable, "-c", APPLICATION, str(directory)]
    process = subprocess.Popen(
        command, env=environment(cache), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "open\n"
    return process


def test_archive_is_made_although_the_application_is_killed(tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    first = start(tmp_path / "first", cache)
    assert "SharedArchiveFile" not in (tmp_path / "first" / "options").read_text()
    # Its process for the archive has been started, and lives on.
    deadline = time.monotonic() + 400
    while not list(cache.glob("classes/*/lock")):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    first.kill()
    first.communicate()
    while not archives(cache):
        assert time.monotonic() < deadline
        time.sleep(0.1)
    second = start(tmp_path / "second", cache)
    assert f"-XX:SharedArchiveFile={archives(cache)[0]}" in (tmp_path / "second" / "options").read_text()
    second.communicate()


def test_command_makes_it_at_once_and_once(tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    command = [sys.executable, "-m", "headrace.cli", "prepare"]
    said = []
    for _ in range(2):
        done = subprocess.run(command, env=environment(cache), capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        (archive,) = archives(cache)
        assert str(archive) in done.stderr
        said.append((archive.stat().st_ino, archive.stat().st_size > 1_000_000))
    assert said[0] == said[1]


def test_command_says_what_is_wrong_with_the_cache_directory(tmp_path: Path) -> None:
    (tmp_path / "cache").mkdir()
    (tmp_path / "cache").chmod(0o777)
    command = [sys.executable, "-m", "headrace.cli", "prepare"]
    done = subprocess.run(command, env=environment(tmp_path / "cache"), capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "must belong to this user" in done.stderr
    assert "Traceback" not in done.stderr

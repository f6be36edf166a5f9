"""Process of a registry in the background; its directory says how it is reached, so that another one can stop it."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from urllib.error import URLError
from urllib.request import ProxyHandler, build_opener

from headrace.devtools.background_process import end, is_running, last_lines, launch
from headrace.errors import LockError, StreamsError

_START_TIMEOUT_S = 60.0
_STOP_TIMEOUT_S = 15.0
_STEP_S = 0.05
_FILE = "registry.json"


@dataclass(frozen=True)
class RunningRegistry:
    """A registry that runs."""

    url: str
    pid: int
    directory: str


def start_registry(directory: Path, options: Sequence[str], *, port: int = 0) -> RunningRegistry:
    """Starts a registry that outlives this process; returns once it answers.

    ``options`` are those of ``headrace registry run`` that say where the log is. ``port`` 0 takes a free one.
    """
    running = find_registry(directory)
    if running is not None:
        message = (
            f"a schema registry runs in '{directory}' already, as process {running.pid} on {running.url}; use it, or "
            "stop it with 'headrace registry stop'"
        )
        raise LockError(message)
    directory = directory.expanduser().resolve()
    directory.mkdir(parents=True, exist_ok=True)
    address, output = directory / "address", directory / "registry.log"
    address.unlink(missing_ok=True)
    command = [sys.executable, "-m", "headrace.cli", "registry", "run", "--port", str(port)]
    pid = launch([*command, "--address-file", str(address), *options], output)
    try:
        url = _wait(pid, address, output)
    except BaseException:
        if is_running(pid, str(address)):
            end(pid, str(address), patience_s=_STOP_TIMEOUT_S)
        raise
    started = RunningRegistry(url, pid, str(directory))
    (directory / _FILE).write_text(json.dumps(asdict(started)), encoding="utf-8")
    return started


def stop_registry(directory: Path) -> RunningRegistry | None:
    """Stops the registry of a directory and waits until it is gone; None if there was none."""
    running = find_registry(directory)
    if running is None:
        return None
    end(running.pid, _words(running), patience_s=_STOP_TIMEOUT_S)
    (Path(running.directory) / _FILE).unlink(missing_ok=True)
    return running


def find_registry(directory: Path) -> RunningRegistry | None:
    """Returns the registry that runs in a directory."""
    try:
        found = RunningRegistry(**json.loads((directory.expanduser() / _FILE).read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError):
        return None
    return found if is_running(found.pid, _words(found)) else None


def _words(running: RunningRegistry) -> str:
    return str(Path(running.directory) / "address")


def _wait(pid: int, address: Path, output: Path) -> str:
    deadline = time.monotonic() + _START_TIMEOUT_S
    while time.monotonic() < deadline:
        time.sleep(_STEP_S)
        if address.exists() and (url := address.read_text(encoding="utf-8").strip()) and _answers(url):
            return url
        if not is_running(pid, str(address)):
            said = last_lines(output.read_text(encoding="utf-8", errors="replace"))
            message = f"the schema registry ended while it was starting: {said}"
            raise StreamsError(message)
    message = f"the schema registry did not answer within {_START_TIMEOUT_S:.0f} s; see '{output}'"
    raise StreamsError(message)


def _answers(url: str) -> bool:
    try:
        # Straight to this machine, whatever proxy there is for others.
        with build_opener(ProxyHandler({})).open(f"{url}/subjects", timeout=5) as answer:
            return bool(answer.status == 200)
    except (URLError, OSError):
        return False

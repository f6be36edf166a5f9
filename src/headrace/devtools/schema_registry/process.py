"""Process of a registry in the background; its directory says how it is reached, so that another one can stop it."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from urllib.error import URLError
from urllib.request import ProxyHandler, build_opener

from headrace.devtools.background_process import Server, Service

_REGISTRY = Service("schema registry", "headrace registry", file="registry.json", start_timeout_s=60, stop_timeout_s=15)


def start_registry(directory: Path, options: Sequence[str], *, port: int = 0) -> Server:
    """Starts a registry that outlives this process; returns once it answers.

    ``options`` are those of ``headrace registry run`` that say where the log is. ``port`` 0 takes a free one.
    """
    _REGISTRY.check_none_runs(directory)
    directory = directory.expanduser().resolve()
    directory.mkdir(parents=True, exist_ok=True)
    file = directory / "address"
    file.unlink(missing_ok=True)
    command = [sys.executable, "-m", "headrace.cli", "registry", "run", "--port", str(port)]

    def find_address() -> str | None:
        url = file.read_text(encoding="utf-8").strip() if file.exists() else ""
        return url if url and _answers(url) else None

    command += ["--address-file", str(file), *options]
    return _REGISTRY.start(command, directory, str(file), directory / "registry.log", find_address)


def stop_registry(directory: Path) -> Server | None:
    """Stops the registry of a directory and waits until it is gone; None if there was none."""
    return _REGISTRY.stop(directory)


def _answers(url: str) -> bool:
    try:
        # Straight to this machine, whatever proxy there is for others.
        with build_opener(ProxyHandler({})).open(f"{url}/subjects", timeout=5) as answer:
            return bool(answer.status == 200)
    except (URLError, OSError):
        return False

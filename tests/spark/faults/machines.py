"""Machines of a cluster: processes in namespaces of their own, with a temporary and a state directory of their own.

What a cluster's image has is the same for all of them: Python, Headrace, Spark. Linux only, and only for root.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

MASTER_HOST = "headrace-cluster"
"""The name of the master's machine. A loopback address would be taken for this machine."""
_TEMPORARY = Path("/tmp")
"""Of Java, whatever the environment says."""

_START = """\
set -e
host=$1; directory=$2; shift 2
mount -t tmpfs -o mode=1777 headrace /tmp
mkdir -p "$directory"
mount -t tmpfs -o mode=0700 headrace "$directory"
cat /etc/hosts > /tmp/hosts
echo "127.0.0.1 $host" >> /tmp/hosts
mount --bind /tmp/hosts /etc/hosts
exec "$@"
"""


def on_own_machine(command: Sequence[str], directory: Path, *, ends_together: bool = False) -> list[str]:
    """Returns a command that runs another one where ``directory`` and the temporary directory are empty and its own.

    With ``ends_together`` its processes are killed with the child of the process that is started, all at once.
    """
    unshare = ["unshare", "--mount", *(["--pid", "--fork", "--mount-proc", "--kill-child"] if ends_together else [])]
    return [*unshare, "sh", "-c", _START, "sh", MASTER_HOST, str(directory), *command]


def why_there_are_none() -> str | None:
    """Returns why this system cannot have such machines; None if it can."""
    if not sys.platform.startswith("linux") or shutil.which("unshare") is None:
        return "there is no command 'unshare' here, which makes namespaces"
    if Path(tempfile.gettempdir()).resolve() != _TEMPORARY:
        return f"the temporary directory is '{tempfile.gettempdir()}', and machines have '{_TEMPORARY}' of their own"
    for needed in (Path(__file__).resolve(), Path(sys.prefix).resolve()):
        if needed.is_relative_to(_TEMPORARY):
            return f"'{needed}' would not be seen by machines that have '{_TEMPORARY}' of their own"
    command = on_own_machine(["true"], Path("/tmp/headrace-machine"), ends_together=True)
    tried = subprocess.run(command, capture_output=True, text=True, check=False)
    return f"this user may not make namespaces: {tried.stderr.strip()}" if tried.returncode else None

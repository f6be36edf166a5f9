"""The prompt in a real terminal: rows appear while a query runs, Ctrl-C ends it and not the session."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from headrace.cli.sql.client import SqlClient
from headrace.cli.sql.embedded import ServerConnection

_ESCAPES = re.compile(r"\x1b\[[0-9;?]*[a-zA-Z]")
_SECONDS = 60
_COLUMNS = 40


class Terminal:
    """A command in a terminal of its own."""

    def __init__(self, arguments: list[str], environment: dict[str, str]) -> None:
        self._master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 30, _COLUMNS, 0, 0))
        # The terminal has to be that of the process, or Ctrl-C would reach nobody.
        script = "import fcntl, os, sys, termios; os.setsid(); fcntl.ioctl(0, termios.TIOCSCTTY, 0)"
        script += "; os.execv(sys.executable, [sys.executable, *sys.argv[1:]])"
        command = [sys.executable, "-c", script, *arguments]
        self.process = subprocess.Popen(command, stdin=slave, stdout=slave, stderr=slave, env=environment)
        os.close(slave)
        self._seen = ""

    def type(self, text: str) -> None:
        os.write(self._master, text.encode())

    def wait_for(self, text: str) -> str:
        """Returns what was shown until the text was, that included."""
        deadline = time.monotonic() + _SECONDS
        while text not in self._seen:
            assert time.monotonic() < deadline, f"{text!r} was not shown, only {self._seen!r}"
            if select.select([self._master], [], [], 0.1)[0]:
                self._seen += _ESCAPES.sub("", os.read(self._master, 1 << 16).decode(errors="replace"))
        end = self._seen.index(text) + len(text)
        found, self._seen = self._seen[:end], self._seen[end:]
        return found

    def close(self) -> None:
        self.process.kill()
        self.process.wait()
        os.close(self._master)


@pytest.fixture
def terminal(server: ServerConnection, tmp_path: Path) -> Iterator[Terminal]:
    environment = {
        # These would be believed more than the terminal.
        **{name: value for name, value in os.environ.items() if name not in ("COLUMNS", "LINES")},
        "XDG_STATE_HOME": str(tmp_path),
        "TERM": "xterm",
        "PROMPT_TOOLKIT_NO_CPR": "1",
        "HEADRACE_SQL_TOKEN": server.token or "",
    }
    terminal = Terminal(["-m", "headrace.cli", "sql", server.address], environment)
    yield terminal
    terminal.close()


def test_a_query_is_watched_and_ended(terminal: Terminal, client: SqlClient) -> None:
    client.execute(
        "CREATE STREAM seen (k STRING KEY, v STRING) WITH (KAFKA_TOPIC='seen', PARTITIONS=1, VALUE_FORMAT='JSON');"
        f"INSERT INTO seen VALUES ('a', '{'long ' * 10}');"
    )
    terminal.wait_for("sql>")
    terminal.type("SET 'auto.offset.reset' = 'earliest';\rSELECT * FROM seen\rEMIT CHANGES;\r")
    shown = terminal.wait_for("Ctrl-C ends the query") + terminal.wait_for("long lo")
    assert "...>" in shown
    client.execute("INSERT INTO seen VALUES ('b', 'later');")
    lines = terminal.wait_for("later").splitlines()
    assert max(map(len, lines)) <= _COLUMNS
    terminal.type("\x03")
    terminal.wait_for("query ended")
    terminal.wait_for("sql>")
    terminal.type("SHOW STREAMS;\r")
    terminal.wait_for("SEEN")
    # Before the prompt is there again, the terminal itself would take it.
    terminal.wait_for("sql>")
    terminal.type("\x04")
    assert terminal.process.wait(_SECONDS) == 0

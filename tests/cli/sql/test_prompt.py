"""The prompt, typed into: statements of several lines, errors and Ctrl-C that end nothing, Ctrl-D that does."""

from __future__ import annotations

import re
import signal
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from prompt_toolkit.input import PipeInput, create_pipe_input
from prompt_toolkit.output import DummyOutput

from headrace.cli.sql.client import Answer, Piece
from headrace.cli.sql.prompt import Prompt
from tests.cli.sql.kit import Typed

ENTER, CTRL_C, CTRL_D, TAB = "\r", "\x03", "\x04", "\t"


@pytest.fixture
def keyboard() -> Iterator[PipeInput]:
    with create_pipe_input() as keyboard:
        yield keyboard


@pytest.fixture
def prompt(typed: Typed, keyboard: PipeInput, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Prompt:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    return Prompt(typed.session, source=keyboard, output=DummyOutput())


def test_a_session(prompt: Prompt, keyboard: PipeInput, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    keyboard.send_text(
        f"create stream s (k string key, v int){ENTER}with (kafka_topic='s', partitions=1, value_format='json');{ENTER}"
        f"help{ENTER}"
        f"selekt 1;{ENTER}"
        f"half a statement{CTRL_C}"
        f"{ENTER}"
        f"insert into s values ('x', 7);{ENTER}"
        f"select v from s emit changes limit 1;{ENTER}"
        f"run script 'no/such/file.sql'{ENTER}"
        f"{CTRL_D}"
    )
    prompt.run()
    captured = capsys.readouterr()
    lines = captured.out.splitlines()
    assert lines[0] == "Stream created"
    assert lines[-2:] == ["V", "7"]
    assert "Did you mean 'SELECT'?" in captured.err
    assert "'no/such/file.sql': No such file or directory" in captured.err
    history = (tmp_path / "headrace" / "sql_history").read_text(encoding="utf-8")
    assert "+with (kafka_topic='s'" in history
    assert not re.search("half a statement", history)


def test_ctrl_c_ends_a_query_that_waits(
    prompt: Prompt, keyboard: PipeInput, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    waiting = Answer.pieces

    def interrupted(answer: Answer) -> Iterator[list[Piece]]:
        found = waiting(answer)
        yield next(found)
        # As the terminal does it, while the prompt waits for the next row.
        main = threading.main_thread().ident
        assert main is not None
        signal.pthread_kill(main, signal.SIGINT)
        yield from found

    monkeypatch.setattr(Answer, "pieces", interrupted)
    stream = "create stream w (k string key) with (kafka_topic='w', partitions=1, value_format='json');"
    keyboard.send_text(f"{stream}{ENTER}select * from w emit changes;{ENTER}show streams;{ENTER}exit{ENTER}")
    prompt.run()
    captured = capsys.readouterr()
    assert "query ended" in captured.err
    assert "W " in captured.out

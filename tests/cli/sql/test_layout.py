"""Tables that fit the terminal."""

from __future__ import annotations

import pytest

from headrace.cli.sql.client import NumberText, Piece
from headrace.cli.sql.layout import lines, widths
from headrace.cli.sql.screen import LiveTable, Screen


@pytest.fixture
def screen(monkeypatch: pytest.MonkeyPatch) -> Screen:
    monkeypatch.setattr(Screen, "width", 20)
    return Screen()


def row(*columns: object, tombstone: bool = False) -> Piece:
    content = {"row": {"columns": list(columns), **({"tombstone": True} if tombstone else {})}}
    return Piece("", content)


def test_columns_that_are_too_wide_share_what_there_is() -> None:
    assert widths(["A", "B"], [["x" * 30, "y" * 30]], 23) == [10, 10]
    assert widths(["A", "B", "C"], [["1", "y" * 30, "z"]], 20) == [1, 12, 1]
    assert sum(widths(list("ABCDEFGH"), [["x" * 9] * 8], 20)) == 8 * 4


def test_wide_letters_take_two_places() -> None:
    assert list(lines(["日本語", "b"], [4, 1])) == ["日本   b", "語"]


def test_long_cells_go_on_below_or_are_cut(screen: Screen, capsys: pytest.CaptureFixture[str]) -> None:
    screen.table(["ID", "TEXT"], [[1, "a" * 20]])
    assert capsys.readouterr().out.splitlines() == ["ID   TEXT", " 1   " + "a" * 15, "     " + "a" * 5]
    screen.wrap = False
    screen.table(["ID", "TEXT"], [[1, "a" * 20]])
    assert capsys.readouterr().out.splitlines() == ["ID   TEXT", " 1   " + "a" * 14 + "…"]


def test_live_table_is_as_wide_as_its_content(
    screen: Screen, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(Screen, "width", 200)
    table = LiveTable(screen, ["ID", "TOTAL"])
    table.rows([row("a", 1), row("bcd", 22)])
    assert capsys.readouterr().out.splitlines() == ["ID    TOTAL", "a         1", "bcd      22"]


def test_live_table_gives_room_to_longer_rows_below_new_headings(
    screen: Screen, capsys: pytest.CaptureFixture[str]
) -> None:
    table = LiveTable(screen, ["ID", "N"])
    table.rows([row("a", NumberText("1.50"))])
    table.rows([row("longer", None), row("b", None, tombstone=True)])
    table.rows([row("c", None)])
    assert capsys.readouterr().out.splitlines() == [
        "ID      N",
        "a    1.50",
        "ID          N",
        "longer   null",
        "b        null   <tombstone>",
        "c        null",
    ]


def test_live_table_is_never_wider_than_the_terminal(screen: Screen, capsys: pytest.CaptureFixture[str]) -> None:
    table = LiveTable(screen, ["ID", "N"])
    table.rows([row("a", 1)])
    table.rows([row("x" * 30, 2)])
    table.rows([row("y" * 30, 3)])
    assert capsys.readouterr().out.splitlines() == [
        "ID   N",
        "a    1",
        "ID                 N",
        "x" * 16 + "   2",
        "x" * 14,
        "y" * 16 + "   3",
        "y" * 14,
    ]


def test_live_table_in_a_pipe_has_its_headings_once(
    screen: Screen, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(Screen, "width", None)
    table = LiveTable(screen, ["ID", "N"])
    table.rows([row("a", 1)])
    table.rows([row("longer", 2)])
    assert capsys.readouterr().out.splitlines() == ["ID   N", "a    1", "longer   2"]

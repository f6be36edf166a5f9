"""Tables that fit the terminal."""

from __future__ import annotations

import pytest

from headrace.cli.sql.client import NumberText, Piece
from headrace.cli.sql.layout import lines, spread, widths
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


def test_what_is_left_goes_to_all_columns() -> None:
    assert spread([2, 3], 28) == [12, 13]
    assert spread([2, 3], None) == [2, 3]


def test_wide_letters_take_two_places() -> None:
    assert list(lines(["日本語", "b"], [4, 1])) == ["日本   b", "語"]


def test_long_cells_go_on_below_or_are_cut(screen: Screen, capsys: pytest.CaptureFixture[str]) -> None:
    screen.table(["ID", "TEXT"], [[1, "a" * 20]])
    assert capsys.readouterr().out.splitlines() == ["ID   TEXT", " 1   " + "a" * 15, "     " + "a" * 5]
    screen.wrap = False
    screen.table(["ID", "TEXT"], [[1, "a" * 20]])
    assert capsys.readouterr().out.splitlines() == ["ID   TEXT", " 1   " + "a" * 14 + "…"]


def test_rows_that_come_later_keep_the_columns(screen: Screen, capsys: pytest.CaptureFixture[str]) -> None:
    table = LiveTable(screen, ["ID", "N"])
    table.rows([row("a", NumberText("1.50"))])
    table.rows([row("much longer", None), row("b", None, tombstone=True)])
    assert capsys.readouterr().out.splitlines() == [
        "ID                N",
        "a              1.50",
        "much lo        null",
        "nger",
        "b              null   <tombstone>",
    ]

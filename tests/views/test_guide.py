"""The functions of the guide do what it says, with an application that runs."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from tests.views.kit import Place

PAGE = Path(__file__).parents[2] / "docs" / "guide" / "queries.md"
BLOCK = re.compile(r"^```python\n(.*?)^```$", re.DOTALL | re.MULTILINE)


def test_functions_of_the_guide(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    names: dict[str, Any] = {}
    for code in BLOCK.findall(PAGE.read_text(encoding="utf-8")):
        if ">>>" not in code:
            exec(code, names)
    place = Place(tmp_path, orders=2)
    try:
        with place.streams(names["build"]) as streams:
            assert [names["order_and_look"](streams, place.log) for _ in range(3)] == [1, 2, 3]
            names["look"](streams)
    finally:
        place.close()
    assert capsys.readouterr().out == "alice 3\n[KeyValue(key=0, value=3)]\n"

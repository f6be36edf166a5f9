"""The guide to HTTP names every code that an error may have."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parent.parent
SOURCES = [path for package in ("console", "http", "views") for path in (ROOT / "src/headrace" / package).rglob("*.py")]
MAKERS = {"RequestError", "bad_request", "error_response", "unavailable"}
CODE = re.compile(r"[a-z]+(-[a-z]+)*")


def codes(source: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(source.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in MAKERS:
            texts = (each.value for each in node.args if isinstance(each, ast.Constant))
            yield from (text for text in texts if isinstance(text, str) and CODE.fullmatch(text))


def test_all_codes_of_errors_are_in_the_guide() -> None:
    guide = (ROOT / "docs/guide/http.md").read_text(encoding="utf-8")
    documented = set(re.findall(r"`([a-z-]+)`", guide.partition("## Errors")[2].partition("## ")[0]))
    used = {code for source in SOURCES for code in codes(source)}
    assert len(used) > 15
    assert used - documented == set()

"""Style of the source: the first line of a module is a noun phrase that says what the module is."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
QUESTION = re.compile(r"(What|How|Which|Who|Whose|Whom|Where|When|Why|Whether)\b")


def modules() -> Iterator[Path]:
    for folder in ("src/headrace", "conformance", "tools"):
        yield from sorted((ROOT / folder).rglob("*.py"))


def first_line(source: str) -> str:
    docstring = ast.get_docstring(ast.parse(source)) or ""
    return docstring.partition("\n")[0]


@pytest.mark.parametrize("path", modules(), ids=lambda path: str(path.relative_to(ROOT)))
def test_module_opens_with_a_noun_phrase(path: Path) -> None:
    line = first_line(path.read_text(encoding="utf-8"))
    assert line, f"{path}: give the module a docstring"
    assert not QUESTION.match(line), f"{path}: '{line}' is a clause; name what the module is, in a noun phrase"


@pytest.mark.parametrize(
    "source",
    ['"""What a task has written."""', '"""Who answers: an application."""', '"""Whether it is alive."""\n\nx = 1'],
)
def test_clause_is_recognised(source: str) -> None:
    assert QUESTION.match(first_line(source))


def test_noun_phrase_passes() -> None:
    assert not QUESTION.match(first_line('"""Session store: rows by key and window, whose rows expire."""'))

"""Style of the source: the first line of a module is a noun phrase that says what the module is."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
# A benchmark may open with the question that it answers.
FOLDERS = ("src", "tests", "conformance", "tools", "examples")
CLAUSE = re.compile(r"(What|How|Which|Who|Whose|Whom|Where|When|Why|Whether)\b")


def first_line(source: str) -> str:
    return (ast.get_docstring(ast.parse(source)) or "").partition("\n")[0]


@pytest.mark.parametrize("folder", FOLDERS)
def test_modules_open_with_a_noun_phrase(folder: str) -> None:
    paths = sorted((ROOT / folder).rglob("*.py"))
    assert paths
    lines = {str(path.relative_to(ROOT)): first_line(path.read_text(encoding="utf-8")) for path in paths}
    assert {name: line for name, line in lines.items() if CLAUSE.match(line)} == {}, "name what the module is"


@pytest.mark.parametrize("line", ["What a task has written.", "Who answers: an application.", "Whether it is alive."])
def test_clause_is_recognised(line: str) -> None:
    assert CLAUSE.match(first_line(f'"""{line}"""\n\nx = 1\n'))


def test_noun_phrase_passes() -> None:
    assert not CLAUSE.match(first_line('"""Session store: rows by key and window, whose rows expire."""'))

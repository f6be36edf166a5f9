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


MOST_MODULES = 12
# A module there is the command of its name; the others are what commands share.
COMMANDS = ("cli", "cli/sql")
PACKAGES = [
    str(path.parent.relative_to(ROOT / "src" / "headrace"))
    for path in sorted((ROOT / "src" / "headrace").rglob("__init__.py"))
    if len(list(path.parent.glob("*.py"))) - 1 > MOST_MODULES
]


@pytest.mark.parametrize("package", [name for name in PACKAGES if name not in COMMANDS])
def test_large_package_says_which_of_its_modules_is_which(package: str) -> None:
    folder = ROOT / "src" / "headrace" / package
    text = ast.get_docstring(ast.parse((folder / "__init__.py").read_text(encoding="utf-8"))) or ""
    table = "\n".join(line for line in text.splitlines() if line.startswith("|"))
    named = re.findall(r"`+(\w+)`+", table)
    parts = {path.stem for path in folder.glob("*.py")} - {"__init__", "__main__"}
    assert parts - set(named) == set(), "add them to the table in __init__.py"
    in_columns = re.findall(r"`+(\w+)`+", "\n".join(line.split("|")[1] for line in table.splitlines()))
    packages = {path.parent.name for path in folder.glob("*/__init__.py")}
    assert set(in_columns) - parts - packages == set(), "these are no modules"
    assert len(in_columns) == len(set(in_columns)), "each once"


@pytest.mark.parametrize("line", ["What a task has written.", "Who answers: an application.", "Whether it is alive."])
def test_clause_is_recognised(line: str) -> None:
    assert CLAUSE.match(first_line(f'"""{line}"""\n\nx = 1\n'))


def test_noun_phrase_passes() -> None:
    assert not CLAUSE.match(first_line('"""Session store: rows by key and window, whose rows expire."""'))

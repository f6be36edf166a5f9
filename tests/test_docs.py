"""The documentation is true: its code runs and prints what it says, its links lead somewhere, its tables are complete.

Every ``python`` block of a page is run, in order, in one namespace per page; pages that make a Spark session get a
process of their own. A block with ``>>>`` prompts is a doctest; any other block is executed as it stands; one that
begins with the name of a file can be imported by later ones. Of some pages the ``console`` blocks are run, too, in a
shell, in a directory with those files. ``sh`` blocks are not run.
"""

import doctest
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from tools.configuration_table import table

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
NAMES = [str(page.relative_to(ROOT)) for page in PAGES]
# Their console blocks are run. Some start applications on Spark.
SESSIONS = [
    pytest.param("README.md", marks=pytest.mark.spark),
    pytest.param("docs/quickstart.md", marks=pytest.mark.spark),
    pytest.param("docs/tutorials/first-application.md", marks=pytest.mark.spark),
    pytest.param("docs/tutorials/exactly-once.md", marks=pytest.mark.spark),
    "docs/sql/quickstart.md",
    "docs/sql/user-functions.md",
]
# They make a Spark session, as a user does: a process can have only one.
ON_SPARK = ("docs/guide/backfill.md", "docs/guide/dataframes.md")
BLOCK = re.compile(r"^```python\n(.*?)^```$", re.DOTALL | re.MULTILINE)
CONSOLE = re.compile(r"^```console\n(.*?)^```$", re.DOTALL | re.MULTILINE)
FILE = re.compile(r"# (\w+\.py)\n")
MARK = "--- command {} ---"
LINK = re.compile(r"\]\((?!\w+://)([^)#\s]*)(?:#([^)\s]+))?\)")
HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


def blocks(page: Path) -> Iterator[tuple[int, str]]:
    """Yields the code of each block with the number of lines before it."""
    text = page.read_text(encoding="utf-8")
    for match in BLOCK.finditer(text):
        yield text.count("\n", 0, match.start(1)), match.group(1)


def run(code: str, page: Path, lines_before: int, namespace: dict[str, object]) -> str:
    """Runs one block and returns the report of what went wrong in it."""
    if ">>> " not in code:
        # Errors then point at the page's own lines.
        exec(compile("\n" * lines_before + code, str(page), "exec"), namespace)
        return ""
    test = doctest.DocTestParser().get_doctest(code, {}, page.name, str(page), lines_before)
    test.globs = namespace
    report: list[str] = []
    doctest.DocTestRunner(optionflags=FLAGS).run(test, out=report.append, clear_globs=False)
    return "".join(report)


def run_page(page: Path, module: ModuleType) -> None:
    """Runs all blocks of a page in the working directory."""
    module.__file__ = str(Path.cwd() / f"{page.stem}.py")
    for lines_before, code in blocks(page):
        if name := FILE.match(code):
            Path(name.group(1)).write_text(code, encoding="utf-8")
            sys.modules.pop(Path(name.group(1)).stem, None)
        report = run(code, page, lines_before, vars(module))
        assert not report, report


@pytest.mark.parametrize("name", [name for name in NAMES if name not in ON_SPARK])
def test_code_of_the_page_runs(name: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    # Classes of a page need a module, for serdes and pickle look their types up there.
    module = ModuleType("snippets_of_" + Path(name).stem)
    monkeypatch.setitem(sys.modules, module.__name__, module)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    run_page(ROOT / name, module)


@pytest.mark.spark
@pytest.mark.parametrize("name", ON_SPARK)
def test_code_of_the_page_runs_in_a_process_of_its_own(name: str, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tests.test_docs", str(ROOT / name)],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout


def session(page: Path) -> Iterator[tuple[str, str]]:
    """Yields the commands of the console blocks, each with what it prints."""
    for block in CONSOLE.findall(page.read_text(encoding="utf-8")):
        for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            lines = part.splitlines(keepends=True)
            count = next((n for n, line in enumerate(lines) if n and not line.startswith("> ")), len(lines))
            yield "".join([lines[0], *(line[2:] for line in lines[1:count])]), "".join(lines[count:])


@pytest.mark.parametrize("page", SESSIONS)
def test_session_of_the_page_prints_what_it_says(page: str, tmp_path: Path) -> None:
    commands = list(session(ROOT / page))
    assert commands
    for _, code in blocks(ROOT / page):
        if name := FILE.match(code):
            (tmp_path / name.group(1)).write_text(code, encoding="utf-8")
    programs = tmp_path / "bin"
    programs.mkdir()
    for program, arguments in (("headrace", "-m headrace.cli"), ("python", "")):
        (programs / program).write_text(f'#!/bin/sh\nexec "{sys.executable}" {arguments} "$@"\n', encoding="utf-8")
        (programs / program).chmod(0o755)
    script = "".join(f"echo '{MARK.format(number)}'\n{typed}" for number, (typed, _) in enumerate(commands))
    done = subprocess.run(
        ["bash", "-c", script],
        cwd=tmp_path,
        # A session says what pytest prints, without anybody's options for it.
        env={**os.environ, "PATH": f"{programs}:{os.environ['PATH']}", "PYTEST_ADDOPTS": ""},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    printed = re.split(r"^--- command \d+ ---\n", done.stdout, flags=re.MULTILINE)[1:]
    for (typed, expected), found in zip(commands, printed, strict=True):
        assert doctest.OutputChecker().check_output(expected, found, FLAGS), f"$ {typed}{found}instead of\n{expected}"


def anchors(page: Path) -> set[str]:
    """Returns what a link can name on a page: its headings as GitHub spells them."""
    headings = HEADING.findall(page.read_text(encoding="utf-8"))
    return {re.sub(r"[^\w\- ]", "", heading).strip().lower().replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=NAMES)
def test_links_of_the_page_lead_somewhere(page: Path) -> None:
    for name, anchor in LINK.findall(page.read_text(encoding="utf-8")):
        target = page.parent / name if name else page
        assert target.exists(), f"{name} does not exist"
        assert not anchor or anchor in anchors(target), f"{name} has no heading for #{anchor}"


PLACE = re.compile(r"^\| (.+?) \| (.+?) \| `([\w.]+)` \|$", re.MULTILINE)


def places() -> list[tuple[str, list[str], str]]:
    """Returns the rows of the table from questions to files: the question, the files, the name to start with."""
    page = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    section = page.partition("\n## Where is what in the code\n")[2].partition("\n## ")[0]
    return [(what, re.findall(r"`([\w/]+\.py)`", files), name) for what, files, name in PLACE.findall(section)]


def test_places_in_the_code_exist() -> None:
    found = places()
    assert len(found) > 10
    for what, names, start in found:
        files = [ROOT / "src" / "headrace" / name for name in names]
        assert files, what
        assert [str(file) for file in files if not file.is_file()] == [], what
        code = "".join(file.read_text(encoding="utf-8") for file in files)
        for name in start.split("."):
            assert re.search(rf"^ *(def|class) {name}\b", code, re.MULTILINE), f"{what}: {names} have no '{name}'"


def test_every_row_of_places_is_read() -> None:
    page = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    section = page.partition("\n## Where is what in the code\n")[2].partition("\n## ")[0]
    assert section.count("\n| ") == len(places()) + 1


def test_every_guide_page_has_code_and_is_in_the_index() -> None:
    index = (ROOT / "docs" / "index.md").read_text(encoding="utf-8")
    guides = sorted((ROOT / "docs" / "guide").glob("*.md"))
    assert guides
    assert [page.name for page in guides if not list(blocks(page))] == []
    assert [page.name for page in guides if f"(guide/{page.name})" not in index] == []


def test_configuration_page_lists_every_setting() -> None:
    page = (ROOT / "docs" / "guide" / "configuration.md").read_text(encoding="utf-8")
    assert table() in page, "run `python -m tools.configuration_table --write`"


if __name__ == "__main__":
    run_page(Path(sys.argv[1]), sys.modules["__main__"])

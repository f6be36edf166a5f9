"""The documentation is true: its code runs and prints what it says, its links lead somewhere, its tables are complete.

Every ``python`` block of a page is run, in order, in one namespace per page. A block with ``>>>`` prompts is a doctest;
any other block is executed as it stands.
"""

import doctest
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from tools.configuration_table import table

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
NAMES = [str(page.relative_to(ROOT)) for page in PAGES]
BLOCK = re.compile(r"^```python\n(.*?)^```$", re.DOTALL | re.MULTILINE)
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


@pytest.mark.parametrize("page", PAGES, ids=NAMES)
def test_code_of_the_page_runs(page: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    # Classes of a page need a module, for serdes and pickle look their types up there.
    module = ModuleType("snippets_of_" + page.stem)
    monkeypatch.setitem(sys.modules, module.__name__, module)
    monkeypatch.chdir(tmp_path)
    for lines_before, code in blocks(page):
        report = run(code, page, lines_before, vars(module))
        assert not report, report


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


def test_every_guide_page_has_code_and_is_in_the_index() -> None:
    index = (ROOT / "docs" / "index.md").read_text(encoding="utf-8")
    guides = sorted((ROOT / "docs" / "guide").glob("*.md"))
    assert guides
    assert [page.name for page in guides if not list(blocks(page))] == []
    assert [page.name for page in guides if f"(guide/{page.name})" not in index] == []


def test_configuration_page_lists_every_setting() -> None:
    page = (ROOT / "docs" / "guide" / "configuration.md").read_text(encoding="utf-8")
    assert table() in page, "run `python -m tools.configuration_table --write`"

"""The documentation site builds strictly, needs nothing from elsewhere, and its reference is complete."""

import doctest
import importlib
import inspect
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import headrace
import headrace.spark
import headrace.views
from benchmarks.kafka_results import Result, keep, read_results
from tools.site.docstrings import fence
from tools.site.hooks import indent_lists, link
from tools.site.pictures import DIRECTORY, pictures

ROOT = Path(__file__).parent.parent
REFERENCE = ROOT / "docs" / "reference"
LOADED = re.compile(r"<(?:script|img|iframe|source)[^>]*\ssrc=[\"']?((?:https?:)?//[^\"'\s>]+)", re.IGNORECASE)
LINKED = re.compile(r"<link[^>]*>", re.IGNORECASE)
# What a browser fetches for a <link>; "canonical" and its kin only name a page.
FETCHED = re.compile(r"rel=[\"']?(?:stylesheet|icon|preconnect|preload|manifest)[^>]*href=[\"']?(?:https?:)?//")
IN_STYLES = re.compile(r"(?:@import\s+[\"']|url\([\"']?)(?:https?:)?//[^)]*")
PUBLIC = [
    f"{module.__name__}.{name}" for module in (headrace, headrace.views, headrace.spark) for name in module.__all__
]
FROM_SQL = {f"headrace.sql.{name}" for name in ("driver.SqlTestDriver",)} | {
    f"headrace.sql.functions.python.{name}" for name in ("udf", "udaf", "udtf")
}


def test_site_builds_strictly_and_loads_nothing_from_elsewhere(tmp_path: Path) -> None:
    # With --quiet strict mode would see no warnings.
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(tmp_path)],
        cwd=ROOT,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    pages = list(tmp_path.rglob("*.html"))
    found = {str(page): page.read_text(encoding="utf-8") for page in pages}
    assert len(found) > len(list((ROOT / "docs").rglob("*.md")))
    for page, text in found.items():
        assert LOADED.findall(text) == [], page
        assert [each for each in LINKED.findall(text) if FETCHED.search(each)] == [], page
    for style in tmp_path.rglob("*.css"):
        assert IN_STYLES.findall(style.read_text(encoding="utf-8")) == [], style
    index = json.loads((tmp_path / "search" / "search_index.json").read_text(encoding="utf-8"))
    places = {each["location"] for each in index["docs"]}
    for name in headrace.__all__:
        assert any(place.endswith(f"#headrace.{name}") for place in places), f"a search does not find {name}"


def test_reference_has_every_public_name_once() -> None:
    shown = [
        name
        for page in sorted(REFERENCE.glob("*.md"))
        for name in re.findall(r"^::: (\S+)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    ]
    assert len(shown) == len(set(shown))
    assert set(shown) == {*PUBLIC, *FROM_SQL}, "add `::: <name>` to a page of docs/reference, or take it away there"


@pytest.mark.parametrize("name", PUBLIC)
def test_every_public_method_and_property_has_a_docstring(name: str) -> None:
    module, _, last = name.rpartition(".")
    owner = getattr(sys.modules[module], last)
    members = inspect.getmembers(owner) if inspect.isclass(owner) else []
    ours = [
        (member, value)
        for member, value in members
        if not member.startswith("_")
        and member not in getattr(owner, "__dataclass_fields__", ())
        and (inspect.isroutine(value) or isinstance(value, property))
        and any(base.__module__.startswith("headrace") and member in vars(base) for base in owner.__mro__)
    ]
    assert [member for member, value in ours if not inspect.getdoc(value)] == []


@pytest.mark.parametrize("module", ["docstrings", "hooks"])
def test_examples_of_the_tools_run(module: str) -> None:
    results = doctest.testmod(importlib.import_module(f"tools.site.{module}"))
    assert results.attempted
    assert not results.failed


def test_example_of_a_docstring_is_a_block_of_code() -> None:
    text = "Adds.\n\n>>> 1 + 1\n2\n\n>>> 2\n2\n\nThat is all."
    assert fence(text) == "Adds.\n\n```python\n>>> 1 + 1\n2\n\n>>> 2\n2\n```\n\nThat is all."


@pytest.mark.parametrize(
    ("markdown", "expected"),
    [
        ("* a\n  b\n  - c\n* d", "* a\n    b\n    - c\n* d"),
        ("3. a\n   1. b\n\nText", "3. a\n    1. b\n\nText"),
        ("* a\n\n  ```sh\n  x\n  ```\n\nText", "* a\n\n    ```sh\n    x\n    ```\n\nText"),
        ("```\n* a\n  b\n```", "```\n* a\n  b\n```"),
    ],
)
def test_what_belongs_to_an_item_of_a_list_is_indented_by_four(markdown: str, expected: str) -> None:
    assert indent_lists(markdown) == expected


@pytest.mark.parametrize(
    ("markdown", "page", "expected"),
    [
        ("[b](../benchmarks/README.md#x)", "index.md", "[b](benchmarks.md#x)"),
        ("[b](../../benchmarks/README.md)", "guide/tuning.md", "[b](../benchmarks.md)"),
        ("[s](spark.md#levels)", "guide/kafka.md", "[s](spark.md#levels)"),
        ("![t](../docs/pictures/t.svg)", "benchmarks.md", "![t](pictures/t.svg)"),
        ("[word_count](word_count.py)", "examples.md", "`word_count.py`"),
        ("[the tests](../tests/examples)", "examples.md", "`tests/examples`"),
        ("[g](../docs/guide/spark.md)", "benchmarks.md", "[g](guide/spark.md)"),
        ("[o](https://kafka.apache.org/x)", "index.md", "[o](https://kafka.apache.org/x)"),
        ("```\n[b](../benchmarks/README.md)\n```", "index.md", "```\n[b](../benchmarks/README.md)\n```"),
    ],
)
def test_links_lead_to_pages_of_the_site(markdown: str, page: str, expected: str) -> None:
    assert link(markdown, page) == expected


@pytest.mark.parametrize("name", pictures())
def test_picture_is_what_is_drawn_from_the_figures_and_the_driver(name: str) -> None:
    assert (DIRECTORY / name).read_text(encoding="utf-8") == pictures()[name].svg(), "run `make docs`"


@pytest.mark.parametrize("result", read_results(), ids=lambda result: result.name)
def test_page_of_the_benchmarks_has_the_figures_of_the_plots(result: Result) -> None:
    text = (ROOT / "benchmarks" / "README.md").read_text(encoding="utf-8")
    section = text.partition("## `kafka.py`")[2].partition("\n## ")[0]
    rates, latencies = [line for line in section.splitlines() if line.startswith(f"| ({result.name})")]
    for side in (result.kafka_streams, result.headrace):
        assert f"{side.rate:,.0f} ({side.cpu:.1f})" in rates
        assert "tens of seconds" in latencies if side.p50 is None else f"| {side.p50:g}, {side.p99:g} |" in latencies
        assert f"| {side.cores:.2f} |" in latencies
    assert f"| {result.ratio:.2f} |" in rates
    assert ("**missed**" in rates) == (result.ratio < result.wanted_ratio)
    assert ("**missed**" in latencies) == bool(result.headrace.missed)


def test_plots_show_what_was_missed() -> None:
    missed = [result for result in read_results() if result.ratio < result.wanted_ratio]
    assert missed
    assert (DIRECTORY / "throughput.svg").read_text(encoding="utf-8").count("target missed") == len(missed)


def test_figures_of_a_run_are_kept_beside_those_of_others(tmp_path: Path) -> None:
    file = tmp_path / "results" / "kafka.json"
    for side in ("kafka-streams", "headrace"):
        keep(file, "b", "count by key", side, {"rate": 100.0, "cpu": 1.0})
        keep(file, "b", "count by key", side, {"p50": 5, "p99": 9, "cores": 0.7, "missed": ["0.6 cores"]})
    (result,) = read_results(file)
    assert (result.ratio, result.wanted_ratio, result.headrace.missed) == (1.0, 2.0, ("0.6 cores",))

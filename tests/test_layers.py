"""Modules import only from their own layer or the layers above, and third-party packages have one home each."""

import ast
import doctest
import re
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

from tools import layers
from tools.layers import HOMES, RANK, is_at_home, layer_of

SOURCE = Path(__file__).parent.parent / "src" / "headrace"

# Packages whose public names are at home in layers below: they load them when they are asked for.
FRONTS = ("spark",)

NOT_LOADED_BY_IMPORT = (
    "pyspark",
    "pandas",
    "pyarrow",
    "confluent_kafka",
    "fastavro",
    "httpx",
    "starlette",
    "uvicorn",
    "sqlglot",
    "lmdb",
    "rocksdict",
    "click",
    "rich",
    "prompt_toolkit",
)


def module_name(path: Path) -> str:
    parts = path.relative_to(SOURCE).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


@cache
def imported(path: Path) -> list[tuple[str, int]]:
    """Returns all modules that a file imports, anywhere in it, each with its line."""
    found: list[tuple[str, int]] = []
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found += ((alias.name, node.lineno) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            # `from headrace import errors` names the module only in its alias.
            names = [f"headrace.{alias.name}" for alias in node.names] if node.module == "headrace" else [node.module]
            found += ((name or "", node.lineno) for name in names)
    return found


FILES = {module_name(path): path for path in sorted(SOURCE.rglob("*.py"))}
MODULES = [name for name in FILES if name]


@pytest.mark.parametrize("name", MODULES)
def test_module_imports_only_from_its_layer_or_above(name: str) -> None:
    layer = layer_of(name)
    assert layer in RANK, f"{name}: give '{layer}' its place in LAYERS of tools/layers.py"
    for target, line in imported(FILES[name]):
        package, _, rest = target.partition(".")
        if package == "headrace":
            found = layer_of(rest)
            assert found in RANK, f"{name}:{line} imports {target}: import from the module that defines it"
            is_above = name in FRONTS or RANK[found] <= RANK[layer]
            assert is_above, f"{name}:{line} imports {target}, which is a layer below"


@pytest.mark.parametrize("name", MODULES)
def test_third_party_packages_stay_in_their_homes(name: str) -> None:
    for target, line in imported(FILES[name]):
        package = target.partition(".")[0]
        if package == "headrace" or package in sys.stdlib_module_names:
            continue
        homes = " and ".join(HOMES.get(package, ())) or "nowhere yet"
        assert is_at_home(name, package), f"{name}:{line} imports {package}, whose home is {homes}"


@pytest.mark.parametrize(("package", "home"), [(package, home) for package, homes in HOMES.items() for home in homes])
def test_home_of_a_third_party_package_imports_it(package: str, home: str) -> None:
    inside = [name for name in MODULES if layer_of(name) == layer_of(home) and f"{name}.".startswith(f"{home}.")]
    found = {target.partition(".")[0] for name in inside for target, _ in imported(FILES[name])}
    assert package in found, f"'{home}' does not import {package}: take it out of HOMES"


def test_every_layer_has_modules() -> None:
    assert sorted(RANK) == sorted({layer_of(name) for name in MODULES})


def test_architecture_page_has_the_table_of_layers() -> None:
    page = layers.PAGE.read_text(encoding="utf-8")
    expected = f"{layers.START}\n{layers.table()}\n{layers.STOP}"
    assert expected in page, "run `python -m tools.layers --write`"


def test_examples_of_the_layers_tool_are_right() -> None:
    results = doctest.testmod(layers)
    assert results.attempted > 0
    assert results.failed == 0


@pytest.mark.parametrize("name", ["", *MODULES])
def test_imports_are_absolute(name: str) -> None:
    tree = ast.parse(FILES[name].read_text(encoding="utf-8"))
    relative = [node.lineno for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and node.level > 0]
    assert relative == []


def test_import_headrace_loads_no_engine_client_or_web_framework() -> None:
    script = f"import sys, headrace; print(*[name for name in {NOT_LOADED_BY_IMPORT!r} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert done.stderr == ""
    assert done.stdout.split() == []


@pytest.mark.parametrize("package", ["batches", "spark"])
def test_large_package_says_what_its_modules_are_about(package: str) -> None:
    modules = {path.stem for path in (SOURCE / package).glob("*.py")} - {"__init__"}
    own = ast.get_docstring(ast.parse((SOURCE / package / "__init__.py").read_text(encoding="utf-8"))) or ""
    page = layers.PAGE.read_text(encoding="utf-8")
    for table in (own, page.partition(f"\n| module of `{package}` |")[2].partition("\n\n")[0]):
        cells = [line.split("|")[1] for line in table.splitlines() if line.startswith("| `")]
        named = [name for cell in cells for name in re.findall(r"`(\w+)`", cell)]
        assert sorted(named) == sorted(modules)

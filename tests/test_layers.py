"""Modules import only from their own layer or the layers above, and third-party packages have one home each."""

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

SOURCE = Path(__file__).parent.parent / "src" / "headrace"

# A line may import only from itself and the lines above it.
LAYERS = (
    {"errors", "arguments", "private_directory", "config"}
    | {"record", "timestamps", "serdes", "tabular", "windows", "handlers"},
    {"topics"},
    {"state"},
    {"processor"},
    {"topology"},
    {"dsl"},
    {"operators"},
    {"runtime"},
    {"testing"},
    {"metrics"},
    {"batches"},
    {"spark"},
    {"views"},
    {"http"},
    {"views.http"},
    {"console"},
    {"app"},
    {"clients"},
    {"change"},
    {"backfill"},
    {"sql"},
    {"spark.dataframes"},
    {"devtools"},
    {"cli"},
)
RANK = {name: rank for rank, names in enumerate(LAYERS) for name in names}
# Packages whose public names are at home in layers below: they load them when they are asked for.
FRONTS = ("spark",)

# Where each third-party package may be imported: modules, or packages with all that is in them.
HOMES = {
    "orjson": ("serdes",),
    # The rows of SQL have serdes of their own: formats on topics, and a layout for stores. Plans, task records and what
    # a working copy says of itself are structs.
    "msgspec": (
        "serdes",
        "topics",
        "runtime.memory",
        "batches",
        "change.seeding",
        "spark",
        "sql.formats",
        "sql.planning.running.row_serde",
    ),
    "sortedcontainers": ("state",),
    # Named for type checkers only, which bring it along.
    "typing_extensions": ("processor", "timestamps"),
    "lmdb": ("state.engines.lmdb", "topics.embedded"),
    "rocksdict": ("state.engines.rocksdb",),
    # The client of the log, and the clients of the schema registry.
    "confluent_kafka": ("topics.kafka", "serdes.registry"),
    # Rows of AVRO and PROTOBUF are made by schemas that are known only when a statement is run, which the registry's
    # own serializers cannot.
    "fastavro": ("sql.formats",),
    "google": ("devtools.schema_registry.schemas", "sql.formats"),
    "pyspark": ("spark",),
    "py4j": ("spark",),
    # What Spark and Python hand to each other; and tables for functions that want one, loaded where a schema is given.
    "pyarrow": ("spark", "operators.map_batches"),
    # Data frames for those who ask for one.
    "pandas": ("tabular",),
    "sqlglot": ("sql",),
    "click": ("cli",),
    "rich": ("cli",),
    "prompt_toolkit": ("cli.sql",),
    "pygments": ("cli.sql",),
    "anyio": ("console", "views.http"),
    "httpx": ("sql.connect", "views.http"),
    "h2": ("http",),
    "httptools": ("http",),
    "starlette": ("console", "devtools.schema_registry", "http", "sql", "views.http"),
    "uvicorn": ("http",),
    "uvloop": ("http",),
    "opentelemetry": ("metrics.opentelemetry",),
}

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


def layer_of(module: str) -> str:
    """Returns the layer of a module: the longest name that has a line."""
    parts = module.split(".")
    names = [".".join(parts[:count]) for count in range(len(parts), 0, -1)]
    return next((name for name in names if name in RANK), parts[0])


def module_name(path: Path) -> str:
    parts = path.relative_to(SOURCE).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imported(path: Path) -> Iterator[tuple[str, int]]:
    """Yields all modules that a file imports, anywhere in it, each with its line."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from ((alias.name, node.lineno) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            # `from headrace import errors` names the module only in its alias.
            names = [f"headrace.{alias.name}" for alias in node.names] if node.module == "headrace" else [node.module]
            yield from ((name or "", node.lineno) for name in names)


FILES = {module_name(path): path for path in sorted(SOURCE.rglob("*.py"))}
MODULES = [name for name in FILES if name]


@pytest.mark.parametrize("name", MODULES)
def test_module_imports_only_from_its_layer_or_above(name: str) -> None:
    layer = layer_of(name)
    assert layer in RANK, f"{name}: give '{layer}' its place in LAYERS"
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
        homes = HOMES.get(package, ())
        at_home = any(name == home or name.startswith(f"{home}.") for home in homes)
        assert at_home, f"{name}:{line} imports {package}, whose home is {' and '.join(homes) or 'nowhere yet'}"


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
    page = (SOURCE.parents[1] / "docs" / "architecture.md").read_text(encoding="utf-8")
    for table in (own, page.partition(f"\n| module of `{package}` |")[2].partition("\n\n")[0]):
        cells = [line.split("|")[1] for line in table.splitlines() if line.startswith("| `")]
        named = [name for cell in cells for name in re.findall(r"`(\w+)`", cell)]
        assert sorted(named) == sorted(modules)

"""Modules import only from their own layer or the layers above, and third-party packages have one home each."""

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

SOURCE = Path(__file__).parent.parent / "src" / "headrace"

# A line may import only from itself and the lines above it.
LAYERS = (
    {"errors", "arguments", "detached", "durations", "hints", "private_directory", "signatures", "settings", "config"}
    | {"record", "timestamps", "serdes", "windows", "handlers"},
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
    {"kafka_broker"},
    {"query"},
    {"web"},
    {"app"},
    {"change"},
    {"backfill"},
    {"sql"},
    {"registry_server"},
    {"demo"},
    {"cli"},
)
RANK = {name: rank for rank, names in enumerate(LAYERS) for name in names}

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
        "spark",
        "sql.formats",
        "sql.planning.running.row_serde",
    ),
    "sortedcontainers": ("state",),
    # Named for type checkers only, which bring it along.
    "typing_extensions": ("processor",),
    "lmdb": ("state.disk", "topics.embedded"),
    "rocksdict": ("state.rocksdb",),
    # The client of the log, and the clients of the schema registry.
    "confluent_kafka": ("topics.kafka", "serdes.registry"),
    # Rows of AVRO and PROTOBUF are made by schemas that are known only when a statement is run, which the registry's
    # own serializers cannot.
    "fastavro": ("sql.formats",),
    "google": ("sql.formats", "registry_server.schemas"),
    "pyspark": ("spark",),
    # What Spark and Python hand to each other.
    "pyarrow": ("spark",),
    "py4j": ("spark",),
    "sqlglot": ("sql",),
    "click": ("cli",),
    "rich": ("cli",),
    "prompt_toolkit": ("cli.sql",),
    "pygments": ("cli.sql",),
    "anyio": ("query.http", "web"),
    "httpx": ("query.http", "sql.connect"),
    "h2": ("web",),
    "httptools": ("web",),
    "starlette": ("query.http", "registry_server", "sql", "web"),
    "uvicorn": ("sql", "web"),
    "uvloop": ("web",),
    "opentelemetry": ("metrics.opentelemetry",),
}

# What users import from: like that of the package itself, it gathers names of all layers, and loads them when asked.
FRONT_DOORS = {"spark"}

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
    layer = name.split(".")[0]
    assert layer in RANK, f"{name}: give '{layer}' its place in LAYERS"
    for target, line in imported(FILES[name]):
        package, _, rest = target.partition(".")
        if package == "headrace":
            found = rest.split(".")[0]
            assert found in RANK, f"{name}:{line} imports {target}: import from the module that defines it"
            is_above = name in FRONT_DOORS or RANK[found] <= RANK[layer]
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

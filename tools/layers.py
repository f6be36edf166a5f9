"""The layers of the package and the homes of third-party packages, and the table of them in docs/architecture.md.

`tests/test_layers.py` enforces what stands here.

python -m tools.layers          # print the table
python -m tools.layers --write  # put it into the page
"""

from dataclasses import dataclass
from pathlib import Path

from tools.marked_part import print_or_write

PAGE = Path(__file__).parent.parent / "docs" / "architecture.md"
START, STOP = "<!-- layers: made by tools/layers.py -->", "<!-- end of layers -->"


@dataclass(frozen=True, slots=True)
class Layer:
    """Modules and packages that may import from each other and from the layers above."""

    names: tuple[str, ...]
    meaning: str


LAYERS = (
    Layer(
        (
            "errors",
            "arguments",
            "config",
            "record",
            "timestamps",
            "serdes",
            "tabular",
            "windows",
            "handlers",
            "private_directory",
        ),
        "the vocabulary: values; and what every layer needs of files",
    ),
    Layer(
        ("topics",),
        "the topic log: its protocol, the embedded one, Kafka, and how keys are spread over partitions",
    ),
    Layer(("state",), "`state.stores` above `state.rows` above `state.engines`"),
    Layer(("processor",), "the Processor API"),
    Layer(("topology",), "the graph as data: nodes, operations, checks, sub-topologies, levels, `describe()`"),
    Layer(("dsl",), "`StreamsBuilder`, `KStream`, `KTable`: immutable handles that add nodes; rewrites"),
    Layer(("operators",), "one small function per operation of the DSL"),
    Layer(("runtime",), "lowering of nodes to functions, and the task"),
    Layer(("testing",), "`TopologyTestDriver`"),
    Layer(("metrics",), "Kafka Streams' metrics of an application, for Prometheus and OpenTelemetry"),
    Layer(
        ("batches",),
        "micro-batches: layout, planner, task runner, state restore, the executor's seam, the loop",
    ),
    Layer(("spark",), "the executor on Spark: jobs, worker affinity, the JVM and its settings; data frames"),
    Layer(("views",), "views of stores, interactive queries, processes that share them"),
    Layer(("http",), "the server, security, errors and limits that views, console and SQL share"),
    Layer(("views.http",), "queries over HTTP"),
    Layer(("console",), "what an application shows of itself: health, metrics, the console in a browser"),
    Layer(("app",), "`Streams`: states, lock, directories, topics, fit of topology and state, reset"),
    Layer(("clients",), "`Producer` and `Consumer`, for scripts and tests"),
    Layer(
        ("change",),
        "changes of stopped applications, each of them a micro-batch: growing, another topology, seeds; snapshots",
    ),
    Layer(("backfill",), "a topology over data frames"),
    Layer(("sql",), "ksqlDB's dialect, compiled to topologies, and its server: [quickstart](sql/quickstart.md)"),
    Layer(("spark.dataframes",), "topics, stores and SQL tables as a data source of PySpark"),
    Layer(("devtools",), "a broker, a schema registry, load and a demo, for development"),
    Layer(("cli",), "the command `headrace`"),
)
RANK = {name: rank for rank, layer in enumerate(LAYERS) for name in layer.names}

# Where each third-party package may be imported: modules, or packages with all that is in them and in their layer.
HOMES = {
    "orjson": ("serdes",),
    # The rows of SQL have serdes of their own: formats on topics, and a layout for stores. Plans, task records and what
    # a working copy says of itself are structs.
    "msgspec": (
        "serdes",
        "topics",
        "runtime.task_memory",
        "batches",
        "change.seeding",
        "spark",
        "sql.formats",
        "sql.planning.record_functions.row_serde",
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
    "google": ("sql.formats", "devtools.schema_registry.schemas"),
    "pyspark": ("spark", "spark.dataframes"),
    "py4j": ("spark",),
    # What Spark and Python hand to each other; and tables for functions that want one, loaded where a schema is given.
    "pyarrow": ("spark", "spark.dataframes", "operators.map_batches"),
    # Sorts and hashes whole columns of a backfill.
    "numpy": ("spark",),
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

# Packages that are installed by another name than the one that is imported.
DISTRIBUTIONS = {"confluent_kafka": "confluent-kafka", "google": "protobuf", "prompt_toolkit": "prompt-toolkit"}


def layer_of(module: str) -> str:
    """Returns the name in `LAYERS` that a module belongs to: the longest one that it begins with.

    >>> layer_of("spark.dataframes.reader"), layer_of("spark.jobs"), layer_of("nowhere.at.all")
    ('spark.dataframes', 'spark', 'nowhere')
    """
    parts = module.split(".")
    names = [".".join(parts[:count]) for count in range(len(parts), 0, -1)]
    return next((name for name in names if name in RANK), parts[0])


def is_at_home(module: str, package: str) -> bool:
    """Tells whether a module may import a third-party package.

    >>> is_at_home("topics.embedded.writer", "lmdb"), is_at_home("topics.log", "lmdb")
    (True, False)
    """
    return any(
        layer_of(module) == layer_of(home) and f"{module}.".startswith(f"{home}.") for home in HOMES.get(package, ())
    )


def table() -> str:
    """Returns the table in Markdown."""
    lines = ["| layer | what it is | third-party |", "|---|---|---|"]
    lines += [f"| {code(layer.names)} | {layer.meaning} | {third_party(layer)} |" for layer in LAYERS]
    return "\n".join(lines)


def third_party(layer: Layer) -> str:
    """Returns the packages that a layer may import: those of the whole layer, then those with a home within it."""
    within: dict[tuple[str, ...], list[str]] = {}
    for package, homes in HOMES.items():
        here = tuple(home for home in homes if layer_of(home) in layer.names)
        if here:
            within.setdefault(here, []).append(DISTRIBUTIONS.get(package, package))
    whole = ", ".join(within.pop(layer.names, ()))
    parts = [f"{', '.join(packages)} in {code(homes)}" for homes, packages in within.items()]
    return "; ".join([whole, *parts] if whole else parts)


def code(names: tuple[str, ...]) -> str:
    return ", ".join(f"`{name}`" for name in names)


if __name__ == "__main__":
    print_or_write(PAGE, START, STOP, table())

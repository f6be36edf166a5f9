"""``headrace grow``: more partitions for the inputs of a stopped application, without losing its state."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import click

from headrace.app.directories import application_directory
from headrace.app.engine import missing_spark
from headrace.change.grow import grow_application
from headrace.change.parallel_work import ParallelMap, in_this_process
from headrace.cli.common_options import CommonOptions, common_options, complete_topic
from headrace.cli.printing import note
from headrace.cli.settings import read_settings, settings_options
from headrace.cli.targets import load_config, load_topology
from headrace.config import StreamsConfig
from headrace.topology.topology import Topology


class TopicPartitions(click.ParamType[tuple[str, int]]):
    """``TOPIC=PARTITIONS``."""

    name = "topic"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> tuple[str, int]:
        topic, _, number = str(value).rpartition("=")
        if not topic or not number.isdecimal() or not int(number):
            self.fail(f"write TOPIC=PARTITIONS, for example orders=12; found '{value}'", param, ctx)
        return topic, int(number)


@click.command(short_help="Give the inputs of an application more partitions.")
@click.argument("application_id")
@click.argument("target", metavar="MODULE:BUILD")
@click.option(
    "--topic",
    "topics",
    type=TopicPartitions(),
    multiple=True,
    metavar="TOPIC=PARTITIONS",
    shell_complete=complete_topic,
    help="An input, and how many partitions it is to have. May be repeated. [default: those that have grown already]",
)
@click.option(
    "--spark",
    "on_spark",
    is_flag=True,
    help="Look at rows and move them on Spark, as many tasks at once as it has cores.",
)
@settings_options
@common_options()
@click.pass_obj
def grow(
    common: CommonOptions,
    application_id: str,
    target: str,
    topics: tuple[tuple[str, int], ...],
    config_file: Path | None,
    assignments: tuple[str, ...],
    *,
    on_spark: bool,
) -> None:
    """Give the inputs of a stopped application more partitions, and split its tasks and its state.

    MODULE:BUILD is its topology, as for 'headrace run'. The new number must be a whole multiple of the old one, and
    inputs that are joined grow together. What is still to be read is read first; then every row of every store goes to
    the partition where its key goes from now on. Stores that cannot be split are named before anything is changed.

    It is refused while the application runs. Producers should be stopped, or restarted when it is done. If it is
    interrupted, the same command goes on.

    It runs in this process. For much state take --spark, with the Spark of the application: --set spark.master=….

    \b
      headrace grow orders shop.orders:build --topic orders=12 --topic users=12
      headrace grow orders shop.orders:build --topic orders=12 --topic users=12 --spark
    """
    config = load_config(target, common.settings() | read_settings(config_file, assignments), application_id)
    topology = load_topology(target, config)
    options = "".join(f" --topic {topic}={number}" for topic, number in topics)
    command = f"headrace grow {application_id} {target}{options}"
    with common.log(config=config) as log, _opened(topology, config, on_spark=on_spark) as parallel:
        grow_application(topology, config, log, dict(topics), command=command, tell=note, parallel=parallel)


@contextmanager
def _opened(topology: Topology, config: StreamsConfig, *, on_spark: bool) -> Iterator[ParallelMap]:
    if not on_spark:
        yield in_this_process
        return
    try:
        # Spark is optional.
        from headrace.spark.parallel_map import open_spark_map
    except ImportError as error:
        raise missing_spark(error) from error
    with open_spark_map(topology, config, application_directory(config)) as parallel:
        yield parallel

"""``headrace run``: a topology as an application on Spark, until Ctrl-C or the end of its input."""

from __future__ import annotations

from pathlib import Path

import click

from headrace.app.directories import open_log
from headrace.app.streams import Streams
from headrace.app.streams_state import StateListener, StreamsState
from headrace.cli.common_options import CommonOptions, common_options
from headrace.cli.printing import note, plural
from headrace.cli.run_progress import RunProgress
from headrace.cli.settings import read_settings, settings_options
from headrace.cli.targets import load_config, load_topology
from headrace.config import StreamsConfig
from headrace.topics.journal import DurableLog
from headrace.topology import Topology


@click.command()
@click.argument("target", metavar="MODULE:BUILD")
@click.option("--application-id", "-a", metavar="NAME", help="Name of the application. [default: that of the module]")
@settings_options
@click.option("--until-end", is_flag=True, help="Process what is in the topics now, and end.")
@click.option(
    "--create-topics",
    type=click.IntRange(min=1),
    metavar="PARTITIONS",
    help="Create the input topics that are missing, with so many partitions.",
)
@click.option(
    "--http", metavar="HOST:PORT", help="Serve stores, metrics and the console there; the same as http.listen."
)
@click.option("--console", "with_console", is_flag=True, help="Serve them at a free port, unless --http names one.")
@click.option("--quiet", "-q", is_flag=True, help="No progress line.")
@click.option("--json", "as_json", is_flag=True, help="Print each micro-batch as a line of JSON.")
@common_options()
@click.pass_obj
def run(
    common: CommonOptions,
    target: str,
    application_id: str | None,
    config_file: Path | None,
    assignments: tuple[str, ...],
    create_topics: int | None,
    http: str | None,
    *,
    with_console: bool,
    until_end: bool,
    quiet: bool,
    as_json: bool,
) -> None:
    """Run a topology on Spark.

    MODULE:BUILD is a function of a module, or of a file (path/to/file.py:build), as for 'headrace describe'. The
    application reads and writes topics of the embedded log, or of Kafka with --bootstrap-servers, and goes on where it
    stopped when it is started again under the same name. Its input topics must exist; those that it writes are
    created. Ctrl-C ends it cleanly, with exit code 0; a failure ends it with 1.

    The progress line shows the state, records per second, the records that wait (lag), how long a micro-batch takes,
    and the size of the state. It needs Java 17 or newer and the extra 'headrace[spark]'.

    \b
      headrace run examples/word_count.py:build --create-topics 1
      headrace run shop.orders:build --config orders.properties --set spark.master='local[2,4]'
    """
    settings = common.settings() | read_settings(config_file, assignments)
    if http is not None:
        settings["http.listen"] = http
    config = load_config(target, settings, application_id)
    if with_console and config.http_listen is None:
        config = config.replaced({"http.listen": "localhost:0"})
    topology = load_topology(target, config)
    log = open_log(config)
    try:
        if create_topics is not None:
            _create_sources(log, topology, create_topics)
        _run(topology, config, log, until_end=until_end, quiet=quiet, as_json=as_json)
    finally:
        log.close()


def _run(
    topology: Topology, config: StreamsConfig, log: DurableLog, *, until_end: bool, quiet: bool, as_json: bool
) -> None:
    streams = Streams(topology, config, log=log)
    with RunProgress(config.application_id, quiet=quiet, as_json=as_json) as progress:
        streams.add_batch_listener(progress.on_batch)
        streams.set_state_listener(_telling_address(streams, progress, quiet=quiet))
        streams.run(until_end=until_end)
    if not quiet:
        note(progress.summary())


def _telling_address(streams: Streams, progress: RunProgress, *, quiet: bool) -> StateListener:
    def on_state(new: StreamsState, old: StreamsState) -> None:
        if new is StreamsState.REBALANCING and old is StreamsState.CREATED and streams.http_address and not quiet:
            progress.note(f"console: {streams.http_address}/console/")
        progress.on_state(new, old)

    return on_state


def _create_sources(log: DurableLog, topology: Topology, partitions: int) -> None:
    """Creates the topics that are read and missing; the application itself creates those that it writes."""
    topics = [topic for node in topology.source_nodes for topic in node.topics if not topology.is_internal(topic)]
    for topic in dict.fromkeys(topics):
        if topic not in log.topics():
            log.create_topic(topic, partitions=partitions)
            note(f"created topic '{topic}' with {plural(partitions, 'partition')}")

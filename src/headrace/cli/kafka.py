"""``headrace kafka``: a broker for development, on this machine."""

from __future__ import annotations

from pathlib import Path

import click

from headrace.cli.common_options import CommonOptions, common_options
from headrace.cli.printing import note

_directory = click.option(
    "--data-dir",
    type=click.Path(path_type=Path, file_okay=False),
    metavar="DIR",
    help="Where the broker keeps its topics; by default 'kafka' in the state directory.",
)


@click.group()
@common_options()
def kafka() -> None:
    """Start and stop a Kafka broker for development and tests.

    It has one node, listens on this machine only, and keeps its topics in a directory. It needs Java; its jars are
    fetched once.
    """


@kafka.command("start")
@click.option("--port", type=click.IntRange(0, 65535), default=9092, show_default=True, help="0 takes a free one.")
@_directory
@common_options()
@click.pass_obj
def start(common: CommonOptions, port: int, data_dir: Path | None) -> None:
    """Start the broker, and print its address for --bootstrap-servers."""
    # Imported here: the client of Kafka is optional.
    from headrace.devtools.kafka_broker import start_broker

    broker = start_broker(_place(common, data_dir), port=port)
    note(f"the broker runs as process {broker.pid}; stop it with 'headrace kafka stop'")
    click.echo(broker.address)


@kafka.command("stop")
@_directory
@common_options()
@click.pass_obj
def stop(common: CommonOptions, data_dir: Path | None) -> None:
    """Stop the broker. Its topics stay, and are there again when it is started anew."""
    from headrace.devtools.kafka_broker import stop_broker

    directory = _place(common, data_dir)
    broker = stop_broker(directory)
    note(f"no broker runs in '{directory}'" if broker is None else f"the broker on {broker.address} is gone")


def _place(common: CommonOptions, data_dir: Path | None) -> Path:
    return data_dir or Path(common.config().state_dir) / "kafka"

"""``headrace grow``: more partitions for the inputs of a stopped application, without losing its state."""

from __future__ import annotations

from pathlib import Path

import click

from headrace.change.grow import grow_application
from headrace.cli.common_options import CommonOptions, common_options, complete_topic
from headrace.cli.printing import note
from headrace.cli.settings import read_settings, settings_options
from headrace.cli.targets import load_config, load_topology


class TopicPartitions(click.ParamType[tuple[str, int]]):
    """``TOPIC=PARTITIONS``."""

    name = "topic"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> tuple[str, int]:
        topic, _, number = str(value).rpartition("=")
        if not topic or not number.isdecimal() or not int(number):
            self.fail(f"write TOPIC=PARTITIONS, for example orders=12; found '{value}'", param, ctx)
        return topic, int(number)


@click.command()
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
) -> None:
    """Give the inputs of a stopped application more partitions, and split its tasks and its state.

    MODULE:BUILD is its topology, as for 'headrace run'. The new number must be a whole multiple of the old one, and
    inputs that are joined grow together. What is still to be read is read first; then every row of every store goes to
    the partition where its key goes from now on. Stores that cannot be split are named before anything is changed.

    It is refused while the application runs. Producers should be stopped, or restarted when it is done. If it is
    interrupted, the same command goes on.

    \b
      headrace grow orders shop.orders:build --topic orders=12 --topic users=12
    """
    config = load_config(target, common.settings() | read_settings(config_file, assignments), application_id)
    topology = load_topology(target, config)
    options = "".join(f" --topic {topic}={number}" for topic, number in topics)
    command = f"headrace grow {application_id} {target}{options}"
    with common.log(config=config) as log:
        grow_application(topology, config, log, dict(topics), command=command, tell=note)

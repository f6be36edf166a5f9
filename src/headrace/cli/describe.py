"""``headrace describe``: a topology as text or as a picture."""

from __future__ import annotations

from pathlib import Path

import click

from headrace.cli.common_options import CommonOptions, common_options
from headrace.cli.settings import read_settings, settings_options
from headrace.cli.targets import load_config, load_topology


@click.command()
@click.argument("target", metavar="MODULE:BUILD")
@click.option(
    "--format",
    "-f",
    "form",
    type=click.Choice(["text", "mermaid", "dot", "svg", "json"]),
    default="text",
    show_default=True,
    help="text is what Kafka Streams prints; mermaid, dot and svg are pictures.",
)
@click.option("--json", "as_json", is_flag=True, help="The same as --format json.")
@settings_options
@common_options()
@click.pass_obj
def describe(
    common: CommonOptions,
    target: str,
    form: str,
    config_file: Path | None,
    assignments: tuple[str, ...],
    *,
    as_json: bool,
) -> None:
    """Print the nodes, stores and topics of a topology.

    MODULE:BUILD is a function of a module, or of a file (path/to/file.py:build; ":build" may be left out). It takes a
    StreamsBuilder and adds to it, or takes nothing and returns a Topology or StreamsBuilder; a Topology or
    StreamsBuilder itself will do, too. Settings matter if they change the topology (topology.optimization=all).

    \b
      headrace describe examples/word_count.py
      headrace describe shop.orders:build --format svg > orders.svg
    """
    config = load_config(target, common.settings() | read_settings(config_file, assignments), is_named=False)
    description = load_topology(target, config).describe()
    match "json" if as_json else form:
        case "mermaid":
            click.echo(description.to_mermaid())
        case "dot":
            click.echo(description.to_dot())
        case "svg":
            click.echo(description.to_svg())
        case "json":
            click.echo(description.to_json())
        case _:
            click.echo(str(description).rstrip())

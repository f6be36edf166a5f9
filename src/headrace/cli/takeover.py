"""``headrace takeover`` and ``headrace hand-back``: from Kafka Streams to Headrace with state, and back."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any, TypeVar

import click

from headrace.change.takeover.handing_back import HandBack, hand_back
from headrace.change.takeover.taking_over import Takeover, examine, take_over
from headrace.cli.common_options import CommonOptions, common_options
from headrace.cli.printing import note, plural, print_table
from headrace.cli.settings import read_settings, settings_options, together
from headrace.cli.targets import load_config, load_topology
from headrace.config import StreamsConfig
from headrace.topics.consumer_group import GroupOffset, OffsetMetadata
from headrace.topics.log import TopicPartition

F = TypeVar("F", bound=Callable[..., Any])

_WAIT_S = 60


def _move_options(*, dry_run: str) -> Callable[[F], F]:
    """Adds what both commands take; ``dry_run`` is the help for it."""
    return together(
        click.argument("application_id"),
        click.argument("target", metavar="MODULE:BUILD"),
        click.option(
            "--wait",
            type=click.IntRange(min=0),
            default=_WAIT_S,
            metavar="SECONDS",
            show_default=True,
            help="How long members of the consumer group, and open transactions, are waited for.",
        ),
        click.option("--dry-run", is_flag=True, help=dry_run),
        click.option("--yes", "-y", is_flag=True, help="Do not ask."),
        settings_options,
        common_options(),
    )


@click.command(short_help="Go on with an application of Kafka Streams, with its state.")
@click.option(
    "--describe",
    "description",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    metavar="FILE",
    help="What Topology.describe() prints in Java: it must be the same topology.",
)
@click.option("--lose", "lost", multiple=True, metavar="STORE", help="Begin with an empty store that has no changelog.")
@_move_options(dry_run="Only check, and show what would be done.")
@click.pass_obj
def takeover(
    common: CommonOptions,
    application_id: str,
    target: str,
    description: Path | None,
    lost: tuple[str, ...],
    wait: int,
    config_file: Path | None,
    assignments: tuple[str, ...],
    *,
    dry_run: bool,
    yes: bool,
) -> None:
    """Go on with a stopped application of Kafka Streams, with its state, under the same application.id.

    MODULE:BUILD is the same topology in Headrace. Everything is checked first: that no instance runs, that no
    transaction is open, that the internal topics are those of the topology, that every key in the changelogs can be
    read and written by its serdes. Then the offsets become Headrace's positions; changelogs stay as they are. After
    that the application is started with 'headrace run'. Nothing is changed before all checks have passed, and it can be
    repeated if it was interrupted.

    \b
      headrace takeover orders shop.orders:build --bootstrap-servers kafka:9092 --dry-run
      headrace takeover orders shop.orders:build --describe orders-topology.txt --yes
    """
    config = _config(common, target, application_id, config_file, assignments)
    topology = load_topology(target, config)
    text = None if description is None else description.read_text(encoding="utf-8")
    with common.log(config=config) as log:
        found = examine(
            topology,
            config,
            log,
            wait=timedelta(seconds=wait),
            lost=lost,
            description=text,
            tell=note,
        )
        if found is None:
            note("a takeover was begun, and is finished now")
        else:
            _show(found)
        if dry_run:
            return note("nothing was done (--dry-run)")
        if not yes:
            click.confirm(f"take over '{application_id}'?", abort=True, err=True)
        take_over(topology, config, log, found)
    note(f"application '{application_id}' is Headrace's; start it: headrace run {target} -a {application_id}")


@click.command("hand-back", short_help="Leave an application to Kafka Streams, with its state.")
@_move_options(dry_run="Only check, and show what would be done; other instances are stopped.")
@click.pass_obj
def hand_back_command(
    common: CommonOptions,
    application_id: str,
    target: str,
    wait: int,
    config_file: Path | None,
    assignments: tuple[str, ...],
    *,
    dry_run: bool,
    yes: bool,
) -> None:
    """Leave a stopped application to Kafka Streams, with its state, under the same application.id.

    Repartition topics are created if they are missing, and the consumer group gets the offsets of everything that the
    topology reads, with the times that Kafka Streams keeps there. Headrace refuses to run the application from then on;
    'headrace takeover' brings it back.

    \b
      headrace hand-back orders shop.orders:build --bootstrap-servers kafka:9092
    """
    config = _config(common, target, application_id, config_file, assignments)
    topology = load_topology(target, config)
    with common.log(config=config) as log:
        if not dry_run and not yes:
            click.confirm(f"hand '{application_id}' back to Kafka Streams?", abort=True, err=True)
        found = hand_back(topology, config, log, wait=timedelta(seconds=wait), dry_run=dry_run, tell=note)
        _show_hand_back(found)
    if dry_run:
        return note("nothing was done (--dry-run)")
    note(f"application '{application_id}' is left to Kafka Streams; start it there")


def _config(
    common: CommonOptions, target: str, application_id: str, config_file: Path | None, assignments: tuple[str, ...]
) -> StreamsConfig:
    config = load_config(target, common.settings() | read_settings(config_file, assignments), application_id)
    if config.bootstrap_servers is None:
        message = "Kafka Streams keeps everything in Kafka; say where that is with --bootstrap-servers"
        raise click.UsageError(message)
    return config


def _show(found: Takeover) -> None:
    for store, records in found.records.items():
        click.echo(f"store '{store}': {plural(records, 'record')} in its changelog, which stays as it is")
    for (topic, partition), records in sorted(found.legacy.unread.items()):
        click.echo(f"{topic}/{partition}: {plural(records, 'offset')} not read yet: these come first")
    _print_offsets(found.legacy.offsets)


def _show_hand_back(found: HandBack) -> None:
    for topic in found.new_topics:
        click.echo(f"repartition topic '{topic}' was missing: it is created")
    for store, records in found.waiting.items():
        click.echo(
            f"store '{store}': {plural(records, 'record')} wait for a table; Kafka Streams 4.1 cannot read them again "
            "after a restart"
        )
    _print_offsets(found.offsets)


def _print_offsets(offsets: Mapping[TopicPartition, GroupOffset]) -> None:
    rows = []
    for (topic, partition), each in sorted(offsets.items()):
        metadata = OffsetMetadata.decode(each.metadata) or OffsetMetadata()
        emitted = ", ".join(f"{store} up to {time_ms}" for store, time_ms in metadata.emitted_ms.items())
        rows.append((topic, partition, each.offset, str(metadata.time_ms), emitted))
    print_table(("input", "partition", "position", "time (ms)", "windows emitted"), rows)

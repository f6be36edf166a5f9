"""``headrace snapshot``, ``headrace restore`` and ``headrace snapshots``: copies of applications under a name."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import click

from headrace.change.snapshot import delete_snapshot, list_snapshots, take_snapshot
from headrace.change.snapshot_restore import restore_snapshot
from headrace.cli.common_options import CommonOptions, common_options
from headrace.cli.printing import json_option, note, print_json, print_table
from headrace.cli.settings import read_settings, settings_options
from headrace.config import StreamsConfig


@click.command(short_help="Copy the state of an application under a name.")
@click.argument("application_id")
@click.argument("name")
@common_options()
@click.pass_obj
def snapshot(common: CommonOptions, application_id: str, name: str) -> None:
    """Copy the state of an application under a name, while it runs or not.

    State, positions and what tasks remember are those after one micro-batch, exactly. The copy lies in topics of the
    same log, which begin with NAME-snapshot. 'headrace restore' makes another application of it.

    \b
      headrace snapshot orders before-release
    """
    with common.log() as log:
        take_snapshot(application_id, log, name, tell=note)


@click.command(short_help="Make an application of a snapshot.")
@click.argument("name")
@click.option("--as", "application_id", required=True, metavar="APPLICATION_ID", help="Name of the new application.")
@settings_options
@common_options()
@click.pass_obj
def restore(
    common: CommonOptions, name: str, application_id: str, config_file: Path | None, assignments: tuple[str, ...]
) -> None:
    """Make an application of a snapshot, which goes on where the first one was.

    It reads the same inputs, from where the first one had read to when the snapshot was taken, and writes to the topics
    that its topology names: give it others, unless both shall write to the same ones. If it is interrupted, the same
    command goes on.

    \b
      headrace restore before-release --as orders-test
      headrace run shop.orders:build_test --application-id orders-test
    """
    settings = common.settings() | read_settings(config_file, assignments) | {"application.id": application_id}
    config = StreamsConfig.of(settings)
    with common.log(config=config) as log:
        restore_snapshot(name, config, log, tell=note)


@click.group()
def snapshots() -> None:
    """List and delete snapshots of applications."""


@snapshots.command("list")
@json_option
@common_options()
@click.pass_obj
def list_command(common: CommonOptions, *, as_json: bool) -> None:
    """List the snapshots in the log."""
    with common.log() as log:
        found = list_snapshots(log)
    if as_json:
        fields = ("name", "application", "batch_id", "taken_ms")
        return print_json([{field: getattr(each, field) for field in fields} for each in found])
    rows = [
        (
            each.name,
            each.application,
            each.batch_id,
            datetime.fromtimestamp(each.taken_ms / 1000, UTC).isoformat(timespec="seconds"),
        )
        for each in found
    ]
    print_table(("name", "application", "batch", "taken"), rows)


@snapshots.command("delete")
@click.argument("name")
@common_options()
@click.pass_obj
def delete_command(common: CommonOptions, name: str) -> None:
    """Delete a snapshot; applications that were restored from it stay."""
    with common.log() as log:
        delete_snapshot(log, name)
    note(f"snapshot '{name}' was deleted")

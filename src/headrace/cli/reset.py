"""``headrace reset``: an application starts over, from the beginning of its input or from somewhere else."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import click

from headrace.app.directories import application_directory
from headrace.app.lock import applications_in, locked
from headrace.app.reset import reset_application, topics_of_views
from headrace.app.topics import topics_in_name_of
from headrace.cli.common_options import CommonOptions, common_options, complete_topic, known_topic
from headrace.cli.printing import note, print_table
from headrace.cli.settings import read_settings, settings_options
from headrace.cli.times import Moment
from headrace.config import StreamsConfig
from headrace.errors import did_you_mean
from headrace.topics.log import Offsets, TopicLog


@dataclass(frozen=True)
class Start:
    """New start positions of the inputs; at most one is given."""

    earliest: bool
    latest: bool
    time_ms: int | None
    offset: int | None
    shift: int | None

    @property
    def is_given(self) -> bool:
        given = (self.earliest, self.latest, self.time_ms is not None, self.offset is not None, self.shift is not None)
        if sum(given) > 1:
            message = "--to-earliest, --to-latest, --to-datetime, --to-offset and --shift-by exclude each other"
            raise click.UsageError(message)
        return any(given)

    def positions(self, log: TopicLog, current: Offsets) -> Offsets:
        """Returns the new positions of all partitions that have one; they stay within what the log has."""
        begins, ends = log.begin_offsets(current), log.end_offsets(current)
        if self.time_ms is not None:
            found = log.offsets_for_time(dict.fromkeys(current, self.time_ms))
            return {target: ends[target] if at is None else at for target, at in found.items()}
        wanted = {
            target: self.offset if self.offset is not None else position + (self.shift or 0)
            for target, position in current.items()
        }
        wanted = ends if self.latest else begins if self.earliest else wanted
        return {target: max(begins[target], min(at, ends[target])) for target, at in wanted.items()}


@click.command(short_help="Let an application start over.")
@click.argument("application_id")
@click.option("--to-earliest", is_flag=True, help="Read the inputs from their first records.")
@click.option("--to-latest", is_flag=True, help="Read only what is written from now on.")
@click.option("--to-datetime", type=Moment(), metavar="TIME", help="Read from the first record of this time or later.")
@click.option("--to-offset", type=click.IntRange(min=0), metavar="N", help="Read every partition from this offset.")
@click.option("--shift-by", type=int, metavar="N", help="Move the positions by so many offsets, back if negative.")
@click.option(
    "--input-topic",
    "inputs",
    multiple=True,
    metavar="TOPIC",
    shell_complete=complete_topic,
    help="Inputs whose positions are set. May be repeated. [default: all that the application has read]",
)
@click.option("--dry-run", is_flag=True, help="Only show what would be done.")
@click.option("--yes", "-y", is_flag=True, help="Do not ask.")
@settings_options
@common_options()
@click.pass_obj
def reset(
    common: CommonOptions,
    application_id: str,
    to_datetime: int | None,
    to_offset: int | None,
    shift_by: int | None,
    inputs: tuple[str, ...],
    config_file: Path | None,
    assignments: tuple[str, ...],
    *,
    to_earliest: bool,
    to_latest: bool,
    dry_run: bool,
    yes: bool,
) -> None:
    """Let an application start over: delete its state, positions, views and internal topics.

    Topics that it reads and writes stay as they are, so its results are written a second time. The next start reads the
    inputs from where the topology says (the beginning, unless its sources say otherwise), or from where one of the
    --to options or --shift-by says. It is refused while the application runs.

    \b
      headrace reset word_count --dry-run
      headrace reset orders --to-datetime 2024-05-01T00:00:00Z --yes
    """
    start = Start(to_earliest, to_latest, to_datetime, to_offset, shift_by)
    settings = common.settings() | read_settings(config_file, assignments) | {"application.id": application_id}
    config = StreamsConfig.of(settings)
    directory = application_directory(config)
    with common.log(config=config) as log:
        internal = _internal_topics(log, application_id, directory)
        if not directory.exists() and log.last_batch(application_id) is None and not internal:
            known = applications_in(directory.parent)
            there = f"; known are {', '.join(known)}" if known else ""
            message = (
                f"nothing is known of an application '{application_id}' in '{directory.parent}'"
                f"{did_you_mean(application_id, known) or there}; say where it is with --state-dir"
            )
            raise click.ClickException(message)
        if directory.exists():
            with locked(directory, application_id):
                # Refused at once if somebody runs it, and not after the question.
                pass
        before = log.positions(application_id)
        after = _new_positions(common, log, before, internal, inputs, start)
        _show(directory, internal, before, after)
        if dry_run:
            return note("nothing was done (--dry-run)")
        if not yes:
            click.confirm(f"reset '{application_id}'?", abort=True, err=True)
        reset_application(config, log, internal)
        if after:
            log.begin_at(application_id, after)
    note(f"application '{application_id}' was reset")


def _internal_topics(log: TopicLog, application_id: str, directory: Path) -> list[str]:
    internal = topics_in_name_of(application_id, log, applications_in(directory.parent))
    return [*internal, *topics_of_views(application_id, log)]


def _new_positions(
    common: CommonOptions, log: TopicLog, before: Offsets, internal: list[str], inputs: tuple[str, ...], start: Start
) -> Offsets:
    if not start.is_given:
        if inputs:
            message = "--input-topic needs one of --to-earliest, --to-latest, --to-datetime, --to-offset, --shift-by"
            raise click.UsageError(message)
        return {}
    topics = inputs or tuple(dict.fromkeys(topic for topic, _ in before if topic not in internal))
    if not topics:
        message = "the application has not read anything yet; name its inputs with --input-topic"
        raise click.UsageError(message)
    targets = [
        (topic, partition)
        for topic in topics
        for partition in range(known_topic(log, topic, common, is_wanted=False).partitions)
    ]
    begins = log.begin_offsets(targets)
    return start.positions(log, {target: before.get(target, begins[target]) for target in targets})


def _show(directory: Path, internal: list[str], before: Offsets, after: Offsets) -> None:
    click.echo(f"working copies:       {directory}{'' if directory.exists() else ' (not there)'}")
    click.echo(f"internal topics:      {', '.join(internal) or 'none'}")
    targets = sorted({*before, *after})
    if not targets:
        return click.echo("positions:            none")
    elsewhere = "as the topology says"
    rows = [
        (topic, partition, str(before.get((topic, partition), "")), str(after.get((topic, partition), elsewhere)))
        for topic, partition in targets
        if topic not in internal
    ]
    print_table(("input", "partition", "position", "new position"), rows)

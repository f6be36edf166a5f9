"""``headrace topics``: list, create, describe, delete."""

from __future__ import annotations

from typing import Any

import click

from headrace.cli.common_options import CommonOptions, common_options, complete_topic, known_topic
from headrace.cli.printing import Size, json_option, note, plural, print_json, print_table
from headrace.topics.embedded import EmbeddedLog
from headrace.topics.log import TopicLog


@click.group()
@common_options()
def topics() -> None:
    """List, create, describe and delete topics."""


@topics.command("list")
@json_option
@common_options()
@click.pass_obj
def list_topics(common: CommonOptions, *, as_json: bool) -> None:
    """List all topics with their partitions, records and sizes."""
    found: list[dict[str, Any]] = []
    if common.has_log:
        with common.log() as log:
            found = [_summary(log, name) for name in log.topics()]
    if as_json:
        return print_json(found)
    if not found:
        return note(f"no topics in {common.where}; make one with 'headrace topics create NAME'")
    rows = [(each["topic"], each["partitions"], each["records"], _size(each), _configs(each)) for each in found]
    print_table(("topic", "partitions", "records", "size", "settings"), rows)


@topics.command("create")
@click.argument("names", metavar="TOPIC...", nargs=-1, required=True)
@click.option("--partitions", "-p", type=click.IntRange(min=1), default=1, show_default=True)
@click.option(
    "--config",
    "-c",
    "configs",
    metavar="KEY=VALUE",
    multiple=True,
    help="A setting with Kafka's name, such as cleanup.policy=compact or retention.ms=86400000. May be repeated.",
)
@click.option("--if-not-exists", is_flag=True, help="Leave a topic alone that is there already.")
@common_options()
@click.pass_obj
def create_topics(
    common: CommonOptions, names: tuple[str, ...], partitions: int, configs: tuple[str, ...], *, if_not_exists: bool
) -> None:
    """Create topics.

    Keys are spread over the partitions by Kafka's hash. Inputs that are joined need the same number of partitions.
    """
    settings = dict(_setting(each) for each in configs)
    with common.log(create=True) as log:
        for name in names:
            if if_not_exists and name in log.topics():
                note(f"topic '{name}' is there already")
                continue
            log.create_topic(name, partitions=partitions, configs=settings)
            note(f"created topic '{name}' with {plural(partitions, 'partition')}")


@topics.command("describe", short_help="Show the settings, offsets and sizes of a topic.")
@click.argument("name", metavar="TOPIC", shell_complete=complete_topic)
@json_option
@common_options()
@click.pass_obj
def describe_topic(common: CommonOptions, name: str, *, as_json: bool) -> None:
    """Show the settings of a TOPIC, and the offsets and sizes of its partitions.

    "end" is the offset of the next record; records that compaction has removed leave gaps, so there may be fewer
    records than offsets.
    """
    with common.log() as log:
        known_topic(log, name, common, is_wanted=False)
        summary = _summary(log, name)
    if as_json:
        return print_json(summary)
    click.echo(f"topic {name}: {plural(summary['partitions'], 'partition')}, {_configs(summary) or 'default settings'}")
    rows = [(each["partition"], each["begin"], each["end"], _size(each)) for each in summary["offsets"]]
    print_table(("partition", "begin", "end", "size"), rows)


@topics.command("delete")
@click.argument("names", metavar="TOPIC...", nargs=-1, required=True, shell_complete=complete_topic)
@click.option("--yes", "-y", is_flag=True, help="Do not ask.")
@common_options()
@click.pass_obj
def delete_topics(common: CommonOptions, names: tuple[str, ...], *, yes: bool) -> None:
    """Delete topics with all their records."""
    with common.log() as log:
        for name in names:
            known_topic(log, name, common, is_wanted=False)
        if not yes:
            click.confirm(f"delete {', '.join(names)} with all records?", abort=True, err=True)
        for name in names:
            log.delete_topic(name)
            note(f"deleted topic '{name}'")
        while isinstance(log, EmbeddedLog) and log.clean().more:
            # The room of the deleted records can be used again from here on.
            pass


def _summary(log: TopicLog, name: str) -> dict[str, Any]:
    topic = log.describe_topic(name)
    targets = [(name, partition) for partition in range(topic.partitions)]
    begins, ends = log.begin_offsets(targets), log.end_offsets(targets)
    # Brokers do not tell the client.
    sizes = log.sizes(targets) if isinstance(log, EmbeddedLog) else {}
    offsets = [
        {"partition": target[1], "begin": begins[target], "end": ends[target], "bytes": sizes.get(target)}
        for target in targets
    ]
    return {
        "topic": name,
        "partitions": topic.partitions,
        "records": sum(ends[target] - begins[target] for target in targets),
        "bytes": sum(sizes.values()) if sizes else None,
        "configs": dict(topic.configs),
        "offsets": offsets,
    }


def _size(summary: dict[str, Any]) -> Size | str:
    return "" if summary["bytes"] is None else Size(summary["bytes"])


def _configs(summary: dict[str, Any]) -> str:
    return " ".join(f"{key}={value}" for key, value in summary["configs"].items())


def _setting(text: str) -> tuple[str, str]:
    key, equals, value = text.partition("=")
    if not equals or not key:
        message = f"'{text}' is no setting; write KEY=VALUE, for example cleanup.policy=compact"
        raise click.BadParameter(message, param_hint="--config")
    return key.strip(), value.strip()

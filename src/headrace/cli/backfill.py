"""``headrace backfill``: a topology over files, as a Spark job."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import click

from headrace.app.directories import application_directory
from headrace.cli.common_options import CommonOptions, common_options
from headrace.cli.printing import note, plural
from headrace.cli.settings import read_settings, settings_options
from headrace.cli.targets import load_topology, short_name
from headrace.cli.times import Moment
from headrace.config import StreamsConfig
from headrace.errors import missing_package
from headrace.topics.log import TopicPartition

F = TypeVar("F", bound=Callable[..., Any])


class Assignment(click.ParamType[tuple[str, str]]):
    """``NAME=VALUE``; where a value is for all topics, ``VALUE`` alone.

    >>> Assignment().convert("orders=user", None, None), Assignment(for_all=True).convert("user", None, None)
    (('orders', 'user'), ('', 'user'))
    """

    name = "assignment"

    def __init__(self, *, for_all: bool = False) -> None:
        self._for_all = for_all

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> tuple[str, str]:
        name, equals, text = str(value).partition("=")
        if not equals and self._for_all and name:
            return "", name
        if not name or not text:
            self.fail(f"write NAME=VALUE, for example orders=history/orders; found '{value}'", param, ctx)
        return name, text


class CutPoint(click.ParamType[Any]):
    """A moment, or ``TOPIC/PARTITION=OFFSET``.

    >>> CutPoint().convert("orders/1=1200", None, None)
    (('orders', 1), 1200)
    """

    name = "cut"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        place, equals, offset = str(value).partition("=")
        if not equals:
            return Moment().convert(value, param, ctx)
        topic, _, partition = place.rpartition("/")
        if not topic or not partition.isdecimal() or not offset.isdecimal():
            self.fail(f"write TOPIC/PARTITION=OFFSET, for example orders/0=1200; found '{value}'", param, ctx)
        return (topic, int(partition)), int(offset)


def _columns(name: str, help_text: str) -> Callable[[F], F]:
    kind = Assignment(for_all=True)
    return click.option(
        f"--{name}", f"{name}_columns", type=kind, multiple=True, metavar="[TOPIC=]COLUMN", help=help_text
    )


@click.command(short_help="Run a topology over files, such as years of history.")
@click.argument("target", metavar="MODULE:BUILD")
@click.option("--application-id", "-a", metavar="NAME", help="Name of the application. [default: that of the module]")
@click.option(
    "--input", "inputs", type=Assignment(), multiple=True, required=True, metavar="TOPIC=PATH", help="Files of a topic."
)
@click.option("--without-history", multiple=True, metavar="TOPIC", help="A topic that has no files. May be repeated.")
@click.option("--format", "form", default="parquet", show_default=True, help="Format of the files, as Spark names it.")
@click.option("--option", "options", type=Assignment(), multiple=True, metavar="NAME=VALUE", help="Of Spark's reader.")
@_columns("key", "Column of the key. [default: key, if there is one]")
@_columns("value", "Column of the value, or several: a,b,c. [default: value, or all of a row]")
@_columns("timestamp", "Column of the time. [default: timestamp]")
@_columns("headers", "Column of the headers. [default: headers, if there is one]")
@click.option("--output", metavar="PATH", help="Folder for the results; each topic gets a folder in it.")
@click.option("--output-format", default="parquet", show_default=True, help="Format of the results.")
@click.option("--to-topics", is_flag=True, help="Write the results to their topics.")
@click.option("--tasks", type=click.IntRange(min=1), help="Tasks of a sub-topology. [default: as many as run at once]")
@click.option("--close-windows", is_flag=True, help="Emit in the end what waits for later records.")
@click.option("--seed", is_flag=True, help="Leave state behind, so that the application goes on from the cut.")
@click.option(
    "--cut",
    "cuts",
    type=CutPoint(),
    multiple=True,
    metavar="TIME|TOPIC/PARTITION=OFFSET",
    help="Where the topics go on: a time, or an offset for every partition.",
)
@settings_options
@common_options()
@click.pass_obj
def backfill(common: CommonOptions, /, target: str, application_id: str | None, **given: Any) -> None:
    """Run a topology over files, such as years of history in Parquet, to their end.

    MODULE:BUILD is the topology, as for 'headrace run'. Each topic that it reads needs an --input, in any format that
    Spark reads, or is named by --without-history; rows are sorted by time. The results go to a folder, to their topics,
    or both. With --seed the application, which must not have run, goes on from the cut when it is started.

    \b
      headrace backfill shop.orders:build --input orders=s3a://lake/orders --key user --timestamp at --output results
      headrace backfill shop.orders:build --input orders=history --timestamp at --seed --cut 2026-01-01T00:00:00Z
    """
    settings = common.settings() | read_settings(given["config_file"], given["assignments"])
    if application_id is not None or not {"application.id", "application_id"} & settings.keys():
        settings["application.id"] = application_id or short_name(target)
    config = StreamsConfig.of(settings)
    topology = load_topology(target, config)
    if not (given["output"] or given["to_topics"] or given["seed"]):
        message = "nobody would see the results; name a folder with --output, or give --to-topics or --seed"
        raise click.UsageError(message)
    if given["seed"] != bool(given["cuts"]):
        message = (
            "--seed needs --cut, which says where the application goes on: a time, such as 2026-01-01T00:00:00Z, or "
            "TOPIC/PARTITION=OFFSET for every partition"
            if given["seed"]
            else "--cut says where a seeded application goes on; give --seed, too"
        )
        raise click.UsageError(message)
    try:
        # What it needs is optional.
        from headrace.backfill import backfill as run_backfill
        from headrace.spark.bounded.input_rows import InputRows
        from headrace.spark.bounded.session import open_session
    except ImportError as error:
        raise missing_package(error, "a backfill", "dataframes") from error
    topics = dict(given["inputs"])
    twice = sorted(topics.keys() & set(given["without_history"]))
    if twice:
        message = f"'{twice[0]}' has an --input, and is said to be without history; give one of both"
        raise click.UsageError(message)
    columns = {name: _by_topic(given[f"{name}_columns"], topics, name) for name in ("key", "timestamp", "headers")}
    values = _by_topic(given["value_columns"], topics, "value")
    with open_session(config, application_directory(config)) as session:
        rows: dict[str, InputRows | None] = dict.fromkeys(given["without_history"])
        rows |= {
            topic: InputRows(
                rows=session.read(path, given["form"], dict(given["options"])),
                value=_split(values.get(topic)),
                **{name: chosen.get(topic) for name, chosen in columns.items()},
            )
            for topic, path in topics.items()
        }
        with run_backfill(
            topology,
            rows,
            config,
            tasks=given["tasks"],
            close_windows=given["close_windows"],
            to_topics=given["to_topics"],
            seed=given["seed"],
            cut=_cut(given["cuts"]),
            command=shlex.join(["headrace", *sys.argv[1:]]),
        ) as done:
            for topic, count in sorted(done.counts.items()):
                note(f"{topic}: {plural(count, 'record')}")
                if given["output"]:
                    path = f"{given['output'].rstrip('/')}/{topic}"
                    session.write(done.output(topic), path, given["output_format"])
    if given["seed"]:
        note(f"application '{config.application_id}' goes on from the cut when it is started")


def _by_topic(given: tuple[tuple[str, str], ...], topics: Mapping[str, str], name: str) -> dict[str, str]:
    """Returns columns by topic; one that names no topic is for all that have none of their own."""
    unknown = [topic for topic, _ in given if topic and topic not in topics]
    if unknown:
        message = f"--{name} names '{unknown[0]}', for which there is no --input"
        raise click.UsageError(message)
    usual = dict(given).get("")
    found = {topic: dict(given).get(topic, usual) for topic in topics}
    return {topic: column for topic, column in found.items() if column is not None}


def _split(columns: str | None) -> str | list[str] | None:
    return columns.split(",") if columns is not None and "," in columns else columns


def _cut(cuts: tuple[Any, ...]) -> int | dict[TopicPartition, int] | None:
    if not cuts:
        return None
    times = [cut for cut in cuts if isinstance(cut, int)]
    if times and len(cuts) > 1:
        message = "--cut takes one time, or an offset for every partition; found both, or several times"
        raise click.UsageError(message)
    return times[0] if times else dict(cuts)

"""``headrace state``: what an application keeps, task by task."""

from __future__ import annotations

import re
from typing import Any

import click

from headrace.app.places import application_directory
from headrace.batches.working_copy import describe
from headrace.cli.places import Places, common_options
from headrace.cli.printing import Size, json_option, note, print_json, print_table
from headrace.errors import StreamsError, did_you_mean

_TASK = re.compile(r"\d+_\d+")


@click.command()
@click.argument("application_id")
@json_option
@common_options()
@click.pass_obj
def state(places: Places, application_id: str, *, as_json: bool) -> None:
    """Show the tasks of an application with their stores, rows and sizes.

    A task is SUBTOPOLOGY_PARTITION. A working copy of its stores lies in a folder of the state directory; what changed
    in the last seconds may be missing there, and is in the changelogs. Below are the positions up to which the topics
    have been read. The application may run meanwhile.
    """
    config = places.config(application_id)
    directory = application_directory(config)
    if not directory.is_dir():
        parent = directory.parent
        known = [path.name for path in parent.iterdir() if (path / "lock").exists()] if parent.is_dir() else []
        there = f"; there are {', '.join(sorted(known))}" if known else ""
        message = (
            f"there is no state of an application '{application_id}' in '{parent}'"
            f"{did_you_mean(application_id, known) or there}; say where it is with --state-dir"
        )
        raise click.ClickException(message)
    folders = sorted(
        (path for path in directory.iterdir() if _TASK.fullmatch(path.name) and path.is_dir()),
        key=lambda path: tuple(map(int, path.name.split("_"))),
    )
    tasks: list[dict[str, Any]] = []
    for folder in folders:
        try:
            found = describe(folder, config)
        except StreamsError as error:
            # The next batch makes it anew.
            tasks.append({"task": folder.name, "bytes": 0, "stores": {}, "error": str(error)})
            continue
        tasks.append({"task": found.task, "bytes": found.size, "stores": dict(found.stores)})
    positions: list[dict[str, Any]] = []
    if places.has_log:
        with places.log() as log:
            at = log.positions(application_id)
            known_topics = set(log.topics())
            ends = log.end_offsets([target for target in at if target[0] in known_topics])
            positions = [
                {"topic": topic, "partition": partition, "position": offset, "lag": max(0, ends[target] - offset)}
                for target, offset in sorted(at.items())
                if target in ends
                for topic, partition in [target]
            ]
    if as_json:
        return print_json(
            {"application_id": application_id, "directory": str(directory), "tasks": tasks, "positions": positions}
        )
    _print(tasks, positions)


def _print(tasks: list[dict[str, Any]], positions: list[dict[str, Any]]) -> None:
    if not tasks:
        note("no task has stores here")
    rows = [
        (each["task"], store, count, Size(each["bytes"]))
        for each in tasks
        for store, count in (each["stores"] or {each.get("error", "no stores"): 0}).items()
    ]
    if rows:
        print_table(("task", "store", "rows", "size of the task"), rows)
    if positions:
        click.echo()
        print_table(
            ("topic", "partition", "position", "lag"),
            [(each["topic"], each["partition"], each["position"], each["lag"]) for each in positions],
        )

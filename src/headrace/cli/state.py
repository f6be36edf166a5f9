"""``headrace state``: what an application keeps, task by task."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import click

from headrace.app.directories import application_directory
from headrace.app.lock import applications_in
from headrace.batches.working_copy import describe
from headrace.cli.common_options import CommonOptions, common_options
from headrace.cli.printing import Size, json_option, note, print_json, print_table
from headrace.config import StreamsConfig
from headrace.errors import StreamsError, did_you_mean
from headrace.runtime.task import TaskId

_TASK = re.compile(r"\d+_\d+")


@click.command(short_help="Show the tasks of an application with their stores.")
@click.argument("application_id")
@json_option
@common_options()
@click.pass_obj
def state(common: CommonOptions, application_id: str, *, as_json: bool) -> None:
    """Show the tasks of an application with their stores, rows and sizes.

    A task is SUBTOPOLOGY_PARTITION. Rows are those of its last commit, as the log knows them: keys, windows, sessions,
    versions. The size is that of the working copy in the state directory, into which rows come some seconds later.
    Below are the positions up to which the topics have been read. The application may run meanwhile.
    """
    config = common.config(application_id)
    directory = application_directory(config)
    if not directory.is_dir():
        known = applications_in(directory.parent)
        there = f"; known are {', '.join(known)}" if known else ""
        message = (
            f"there is no state of an application '{application_id}' in '{directory.parent}'"
            f"{did_you_mean(application_id, known) or there}; say where it is with --state-dir"
        )
        raise click.ClickException(message)
    committed: dict[str, dict[str, int]] = {}
    uncounted: set[str] = set()
    positions: list[dict[str, Any]] = []
    if common.has_log:
        with common.log() as log:
            cut = log.cut_application(application_id, {})
            if cut is not None:
                committed = {task: record.rows for task, record in cut.records.items() if record.rows}
                uncounted = cut.records.keys() - committed.keys()
            at = log.positions(application_id)
            known_topics = set(log.topics())
            ends = log.end_offsets([target for target in at if target[0] in known_topics])
            positions = [
                {"topic": topic, "partition": partition, "position": offset, "lag": max(0, ends[target] - offset)}
                for target, offset in sorted(at.items())
                if target in ends
                for topic, partition in [target]
            ]
    folders = [path.name for path in directory.iterdir() if _TASK.fullmatch(path.name) and path.is_dir()]
    names = sorted({*folders, *committed}, key=TaskId.parse)
    tasks = [_task(directory / name, config, committed.get(name)) for name in names]
    # A batch counts the rows of all stores. A change does not, and its tasks may have other stores than are here.
    changed = [each for each in tasks if each["task"] in uncounted and each["stores"]]
    for each in changed:
        each["stores"] = {}
    if as_json:
        return print_json(
            {"application_id": application_id, "directory": str(directory), "tasks": tasks, "positions": positions}
        )
    if not tasks:
        note("no task has stores here")
    if changed:
        note("the application was changed and has not run since; the next batch counts the rows of its stores")
    _print([each for each in tasks if each not in changed], positions)


def _task(folder: Path, config: StreamsConfig, rows: dict[str, int] | None) -> dict[str, Any]:
    """Returns the figures of a task: from its last commit, and from its working copy, if that is here."""
    found: dict[str, Any] = {"task": folder.name, "bytes": 0, "stores": dict(sorted((rows or {}).items()))}
    try:
        info = describe(folder, config)
    except StreamsError as error:
        # The next batch makes it anew.
        return found if rows else found | {"error": str(error)}
    return found | {"bytes": info.size} | ({} if rows else {"stores": dict(info.stores)})


def _print(tasks: list[dict[str, Any]], positions: list[dict[str, Any]]) -> None:
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

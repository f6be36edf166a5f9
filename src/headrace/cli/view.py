"""``headrace view``: a process that keeps views of an application's stores, alone or sharing them with others."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from datetime import timedelta
from importlib import import_module
from pathlib import Path
from typing import Any

import click

from headrace.app.directories import application_directory, open_log
from headrace.app.lock import locked
from headrace.app.signals import closing_on_signals
from headrace.cli.common_options import CommonOptions, common_options
from headrace.cli.printing import note, plural
from headrace.cli.settings import read_settings, settings_options
from headrace.cli.targets import load_config, load_topology
from headrace.config import StreamsConfig
from headrace.errors import UnknownTopicError
from headrace.topics.log import TopicLog
from headrace.topology import Topology
from headrace.views.metadata import HostInfo
from headrace.views.view_node import Lease, ViewNode

_LOOK_S = 0.5


@click.command(short_help="Keep copies of an application's stores, for queries.")
@click.argument("target", metavar="MODULE:BUILD")
@click.option("--application-id", "-a", metavar="NAME", help="Name of the application. [default: that of the module]")
@settings_options
@click.option(
    "--name", metavar="NAME", help="Name of this process; its folder bears it. [default: view]", default="view"
)
@click.option("--http", metavar="HOST:PORT", help="Serve stores and metrics there; the same as http.listen.")
@click.option("--standbys", type=click.IntRange(min=0), metavar="NUMBER", help="Further copies of each partition.")
@click.option("--advertise", metavar="HOST:PORT", help="Where others reach this process. [default: where it serves]")
@click.option(
    "--server", metavar="MODULE:FUNCTION", help="What serves the views: it gets the node, and returns HOST:PORT."
)
@click.option(
    "--heartbeat",
    type=click.FloatRange(min=0.05),
    default=1.0,
    metavar="SECONDS",
    show_default=True,
    help="How often it says that it is alive.",
)
@click.option(
    "--lease",
    type=click.FloatRange(min=0.1),
    default=5.0,
    metavar="SECONDS",
    show_default=True,
    help="After how long a silence others take over.",
)
@click.option("--json", "as_json", is_flag=True, help="Print each change of its share as a line of JSON.")
@common_options()
@click.pass_obj
def view(
    common: CommonOptions,
    target: str,
    application_id: str | None,
    config_file: Path | None,
    assignments: tuple[str, ...],
    name: str,
    http: str | None,
    standbys: int | None,
    advertise: str | None,
    server: str | None,
    heartbeat: float,
    lease: float,
    *,
    as_json: bool,
) -> None:
    """Keep views of an application's stores, so that they can be queried while it runs, or does not.

    MODULE:BUILD is the topology that 'headrace run' runs, under the same application id. A view is a copy of a store
    on the disk of this machine, kept from the store's changelog topic. Several processes with different names share
    the partitions; each partition has one active copy and as many standbys as num.standby.replicas says. Each
    process sends heartbeats to the topic APPLICATION-views; after a silence of --lease seconds the others take over.
    Started again, a process continues from its files.

    \b
      headrace view shop.orders:build --name one --set num.standby.replicas=1
      headrace view shop.orders:build --name two --set num.standby.replicas=1 --http localhost:8080
    """
    settings = common.settings() | read_settings(config_file, assignments)
    if http is not None:
        settings["http.listen"] = http
    if standbys is not None:
        settings["num.standby.replicas"] = standbys
    if heartbeat * 2 > lease:
        message = f"--lease must be at least twice --heartbeat; they are {lease:g} and {heartbeat:g} seconds"
        raise click.UsageError(message)
    config = load_config(target, settings, application_id)
    topology = load_topology(target, config)
    if server is None and config.http_listen is not None:
        server = "headrace.console.view_server:serve"
    serve = None if server is None else _server(server)
    log = open_log(config)
    try:
        directory = application_directory(config) / "views" / name
        times = Lease(timedelta(seconds=heartbeat), timedelta(seconds=lease))
        with closing_on_signals(lambda: True) as received, locked(directory, config.application_id):
            node = _node(topology, config, log, directory, name, times, received)
            if node is not None:
                _serve(node, serve, advertise)
                _run(node, received, as_json=as_json)
    finally:
        log.close()


def _node(
    topology: Topology, config: StreamsConfig, log: TopicLog, directory: Path, name: str, lease: Lease, received: Any
) -> ViewNode | None:
    """Makes the node as soon as the application has made its topics."""
    told = False
    while not received:
        try:
            return ViewNode(topology, config, log, directory, name=name, lease=lease)
        except UnknownTopicError as error:
            if not told:
                note(f"waiting for application '{config.application_id}' to start: {error}")
                told = True
            time.sleep(_LOOK_S)
    return None


def _serve(node: ViewNode, serve: Callable[[ViewNode], Any] | None, advertise: str | None) -> None:
    at = None if serve is None else serve(node)
    if isinstance(at, str):
        at = HostInfo.build_from_endpoint(at)
    node.host = HostInfo.build_from_endpoint(advertise or "") or at or node.host
    if at is not None:
        note(f"{node.id}: answers at {at.address}")


def _run(node: ViewNode, received: Any, *, as_json: bool) -> None:
    seen: Any = None

    def look(_node: ViewNode) -> None:
        nonlocal seen
        if received:
            node.stop()
        found = (sorted(node.assigned), sorted(node.members()), sorted(node.ready_tasks()))
        if found != seen:
            seen = found
            tasks, members, ready = found
            if as_json:
                click.echo(json.dumps({"name": node.id, "tasks": tasks, "ready": ready, "members": members}))
            else:
                note(f"{node.id}: {plural(len(tasks), 'task')}, {len(ready)} up to date; alive: {', '.join(members)}")

    try:
        node.run(look)
    finally:
        node.close()


def _server(target: str) -> Callable[[ViewNode], Any]:
    module, _, name = target.partition(":")
    try:
        found: Callable[[ViewNode], Any] = getattr(import_module(module), name)
    except (ImportError, AttributeError, ValueError) as error:
        message = f"--server must be MODULE:FUNCTION; '{target}' cannot be used: {error}"
        raise click.UsageError(message) from error
    return found

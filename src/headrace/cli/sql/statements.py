"""``headrace sql``: the prompt, and statements from the command line or a file."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click

from headrace.cli.common_options import CommonOptions, common_options
from headrace.cli.settings import read_settings, settings_options
from headrace.cli.sql.client import SqlClient
from headrace.cli.sql.client_options import client_options
from headrace.cli.sql.embedded import ServerConnection, embedded_server
from headrace.cli.sql.screen import Screen
from headrace.errors import missing_package

if TYPE_CHECKING:
    from headrace.cli.sql.session import Session


@click.command("prompt", hidden=True)
@click.argument("server", metavar="[SERVER]", required=False)
@click.option("--execute", "-e", metavar="SQL", multiple=True, help="Carry out these statements, and end.")
@click.option(
    "--file",
    "-f",
    "file",
    type=click.Path(exists=True, dir_okay=False, allow_dash=True, path_type=Path),
    metavar="FILE",
    help="Carry out the statements of this file, and end.",
)
@click.option(
    "--output",
    type=click.Choice(["table", "json", "tabular"], case_sensitive=False),
    default="table",
    show_default=True,
    help="How results are printed; with json, a line for each part of a query's answer.",
)
@click.option("--define", "-d", "definitions", metavar="NAME=VALUE", multiple=True, help="Define a variable.")
@click.option(
    "--spool", type=click.Path(dir_okay=False, path_type=Path), metavar="FILE", help="Also write results here."
)
@client_options
@click.option(
    "--engine",
    type=click.Choice(["process", "spark"]),
    default="process",
    show_default=True,
    help="Without SERVER: what runs persistent queries, this process or Spark.",
)
@settings_options
@common_options()
@click.pass_obj
def prompt(
    common: CommonOptions,
    server: str | None,
    execute: tuple[str, ...],
    file: Path | None,
    output: str,
    definitions: tuple[str, ...],
    spool: Path | None,
    token: str | None,
    user: str | None,
    authority: Path | None,
    engine: str,
    config_file: Path | None,
    assignments: tuple[str, ...],
) -> None:
    """Carry out statements, of the command line, of a file, or of the prompt."""
    # Imported here: the packages for SQL are optional.
    try:
        from headrace.cli.sql.session import Session
    except ImportError as error:
        raise missing_package(error, "SQL", "sql") from error
    settings = read_settings(config_file, assignments, with_environment=False)
    if server is not None:
        # Of this end; all others are for the server.
        authority = authority or settings.pop("http.tls.authority", None)
    screen = Screen(as_json=output.lower() == "json")
    if spool is not None:
        screen.spool(spool)
    interactive = not execute and file is None and sys.stdin.isatty()
    try:
        with _reach_server(server, common.settings() | settings, engine) as reached:
            client = SqlClient(reached.address, token=token or reached.token, user=user, authority=authority)
            session = Session(client, screen)
            if server is not None:
                session.settings.update(settings)
            for name, value in map(read_definition, definitions):
                session.define(name, value)
            if interactive:
                _interactive(session, server)
                return
            # The statements of a script see what those before them have caused.
            session.settle = reached.settle
            for text in execute:
                session.run(text)
            if file is not None and str(file) != "-":
                session.run_script(file)
            elif file is not None or not execute:
                session.run(sys.stdin.read())
            reached.settle()
    finally:
        screen.end_spool()


def _interactive(session: Session, server: str | None) -> None:
    try:
        from headrace.cli.sql.prompt import Prompt
    except ImportError as error:
        raise missing_package(error, "SQL", "sql") from error
    info = session.client.info()
    where = f"server {session.client.url}" if server is not None else "a server in this process"
    session.screen.note(f"Headrace SQL, {where}, service {info.get('ksqlServiceId')}. Type help, or exit.")
    Prompt(session).run()


@contextmanager
def _reach_server(server: str | None, settings: dict[str, object], engine: str) -> Iterator[ServerConnection]:
    if server is None:
        # CREATE FUNCTION finds modules beside the user.
        sys.path.insert(0, str(Path.cwd()))
        with embedded_server(settings, engine) as reached:
            yield reached
        return
    if not any(mark in server for mark in ("/", ":", ".")) and server != "localhost":
        message = f"'{server}' is neither a command nor the address of a server, such as http://localhost:8088"
        raise click.UsageError(message)
    # A server goes on without this process.
    yield ServerConnection(server)


def read_definition(text: str) -> tuple[str, str]:
    """Returns name and value of a variable, as ``--define`` takes them."""
    name, equals, value = text.partition("=")
    if not equals or not name.strip():
        message = f"'{text}' defines nothing; write NAME=VALUE"
        raise click.BadParameter(message, param_hint="--define")
    return name.strip(), value

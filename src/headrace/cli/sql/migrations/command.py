"""The commands: create, apply, info, validate."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import click

from headrace.cli.common_options import CommonOptions, common_options
from headrace.cli.printing import json_option, note, plural, print_json, print_table
from headrace.cli.settings import together
from headrace.cli.sql.answers import print_answer
from headrace.cli.sql.client import SqlClient, SqlRequestError
from headrace.cli.sql.client_options import client_options
from headrace.cli.sql.embedded import embedded_server
from headrace.cli.sql.migrations.files import Migration, MigrationError, migrations_in, new_migration
from headrace.cli.sql.migrations.metadata import FAILED, MIGRATED, RUNNING, Applied, Metadata
from headrace.cli.sql.screen import Screen
from headrace.cli.sql.statements import read_definition

F = TypeVar("F", bound=Callable[..., Any])


@click.group()
def migrations() -> None:
    """Carry out files of statements once, in order.

    A migration is a file V000001__some_words.sql in a directory. Which of them were carried out is kept in the log, in
    the stream HEADRACE_MIGRATIONS. All statements of a file are checked before the first is carried out.

    \b
      headrace sql migrations create "orders and their counts"
      headrace sql migrations apply
      headrace sql migrations info
    """


def _directory_option(function: F) -> F:
    return click.option(
        "--directory",
        type=click.Path(file_okay=False, path_type=Path),
        default=Path("migrations"),
        show_default=True,
        metavar="DIR",
        help="Where the files are.",
    )(function)


_server_options = together(
    click.option(
        "--server", metavar="URL", help="The server; without it one is started in this process, on the local log."
    ),
    client_options,
)


@contextmanager
def _client(
    common: CommonOptions, server: str | None, token: str | None, user: str | None, authority: Path | None
) -> Iterator[SqlClient]:
    if server is not None:
        yield SqlClient(server, token=token, user=user, authority=authority)
        return
    with embedded_server(common.settings(), "process") as reached:
        yield SqlClient(reached.address, token=reached.token)


@migrations.command()
@click.argument("words")
@click.option("--version", type=click.IntRange(min=1), metavar="N", help="Its number. [default: the next one]")
@_directory_option
def create(words: str, version: int | None, directory: Path) -> None:
    """Make an empty migration; WORDS say what it does."""
    click.echo(new_migration(directory, words, version))


@migrations.command(short_help="Carry out the migrations that were not yet.")
@click.option("--until", type=click.IntRange(min=1), metavar="N", help="Stop after this version.")
@click.option("--next", "only_next", is_flag=True, help="Only the next one.")
@click.option("--again", is_flag=True, help="Carry out one again that was begun and never ended.")
@click.option("--dry-run", is_flag=True, help="Only say what would be carried out.")
@click.option("--define", "-d", "definitions", metavar="NAME=VALUE", multiple=True, help="Define a variable.")
@_directory_option
@_server_options
@common_options()
@click.pass_obj
def apply(
    common: CommonOptions,
    until: int | None,
    definitions: tuple[str, ...],
    directory: Path,
    server: str | None,
    token: str | None,
    user: str | None,
    authority: Path | None,
    *,
    only_next: bool,
    again: bool,
    dry_run: bool,
) -> None:
    """Carry out the migrations that were not, in the order of their versions.

    One that fails ends it, with exit code 1; mend its file and apply again. A file that was carried out must not be
    changed.
    """
    variables = dict(map(read_definition, definitions))
    found = migrations_in(directory)
    with _client(common, server, token, user, authority) as client:
        metadata = Metadata(client)
        applied = metadata.applied()
        _check(found, applied)
        waiting = _select_pending(found, applied, again=again)
        if until is not None:
            waiting = [each for each in waiting if each.version <= until]
        for migration in waiting[:1] if only_next else waiting:
            note(f"{migration.version}: {migration.name}")
            if not dry_run:
                _carry_out(migration, client, metadata, variables)
        if not waiting:
            note("there is nothing to do")


@migrations.command()
@_directory_option
@json_option
@_server_options
@common_options()
@click.pass_obj
def info(
    common: CommonOptions,
    directory: Path,
    server: str | None,
    token: str | None,
    user: str | None,
    authority: Path | None,
    *,
    as_json: bool,
) -> None:
    """List the migrations, and what became of them."""
    found = {each.version: each for each in migrations_in(directory)}
    with _client(common, server, token, user, authority) as client:
        applied = Metadata(client).applied()
    rows = []
    for version in sorted({*found, *applied}):
        done = applied.get(version)
        name = found[version].name if version in found else f"{applied[version].name} (no file)"
        state = "PENDING" if done is None else done.state
        rows.append([version, name, state, (done and done.completed) or "", (done and done.problem) or ""])
    names = ["version", "name", "state", "completed", "problem"]
    if as_json:
        print_json([dict(zip(names, row, strict=True)) for row in rows])
    else:
        print_table([name.capitalize() for name in names], rows)


@migrations.command(short_help="Check the files of migrations that were carried out.")
@_directory_option
@_server_options
@common_options()
@click.pass_obj
def validate(
    common: CommonOptions,
    directory: Path,
    server: str | None,
    token: str | None,
    user: str | None,
    authority: Path | None,
) -> None:
    """Check that the files of migrations that were carried out are there, and as they were."""
    found = migrations_in(directory)
    with _client(common, server, token, user, authority) as client:
        applied = Metadata(client).applied()
    _check(found, applied)
    count = sum(each.state == MIGRATED for each in applied.values())
    click.echo(f"{plural(count, 'migration')} carried out, all as their files say")


def _check(found: list[Migration], applied: dict[int, Applied]) -> None:
    files = {each.version: each for each in found}
    for done in applied.values():
        if done.state != MIGRATED:
            continue
        file = files.get(done.version)
        if file is None:
            message = f"migration {done.version} ('{done.name}') was carried out, and its file is gone; bring it back"
            raise MigrationError(message)
        if file.checksum != done.checksum:
            message = f"'{file.path}' was changed after it was carried out; bring it back, and make another migration"
            raise MigrationError(message)


def _select_pending(found: list[Migration], applied: dict[int, Applied], *, again: bool) -> list[Migration]:
    last = max((each.version for each in applied.values() if each.state == MIGRATED), default=0)
    waiting: list[Migration] = []
    for migration in found:
        done = applied.get(migration.version)
        if done is not None and done.state == MIGRATED:
            continue
        if done is not None and done.state == RUNNING and not again:
            message = (
                f"migration {migration.version} was begun at {done.started} and has not ended; if nobody carries it "
                "out now, look at what it has done, and say --again"
            )
            raise MigrationError(message)
        if migration.version < last and (done is None or done.state != FAILED):
            message = f"'{migration.path}' comes before version {last}, which was carried out; give it a higher number"
            raise MigrationError(message)
        waiting.append(migration)
    return waiting


def _carry_out(migration: Migration, client: SqlClient, metadata: Metadata, variables: dict[str, str]) -> None:
    begun = metadata.begin(migration)
    try:
        entities = client.execute(migration.text, variables=variables)
    except SqlRequestError as error:
        metadata.end(begun, str(error))
        message = f"migration {migration.version}, '{migration.path}': {error}"
        raise MigrationError(message) from error
    metadata.end(begun, None)
    screen = Screen()
    for entity in entities:
        print_answer(entity, screen)

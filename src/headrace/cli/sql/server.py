"""``headrace sql server``: statements over HTTP, or those of a file."""

from __future__ import annotations

from contextlib import ExitStack, closing
from pathlib import Path

import click

from headrace.app.directories import open_log
from headrace.app.signals import closing_on_signals
from headrace.cli.common_options import CommonOptions, common_options
from headrace.cli.printing import note
from headrace.cli.settings import read_settings, settings_options
from headrace.cli.sql.embedded import engine_of
from headrace.config import StreamsConfig
from headrace.errors import missing_package
from headrace.topics.log import TopicLog


@click.command()
@click.option("--listen", default="localhost:8088", metavar="HOST:PORT", show_default=True, help="Where it answers.")
@click.option("--token", metavar="TEXT", envvar="HEADRACE_SQL_TOKEN", help="What clients have to send as bearer token.")
@click.option(
    "--user",
    metavar="NAME:PASSWORD",
    envvar="HEADRACE_SQL_USER",
    help="What clients have to send as Basic authentication.",
)
@click.option(
    "--queries-file",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Run the statements of this file and take no others: headless mode.",
)
@click.option(
    "--engine",
    type=click.Choice(["spark", "process"]),
    default="spark",
    show_default=True,
    help="What runs persistent queries: Spark, or this process.",
)
@click.option(
    "--registry",
    type=click.IntRange(0, 65535),
    is_flag=False,
    flag_value=8081,
    metavar="[PORT]",
    help="Run a schema registry for development in this process as well, at port 8081 or another one.",
)
@settings_options
@common_options()
@click.pass_obj
def server(
    common: CommonOptions,
    listen: str,
    token: str | None,
    user: str | None,
    queries_file: Path | None,
    engine: str,
    registry: int | None,
    config_file: Path | None,
    assignments: tuple[str, ...],
) -> None:
    """Run a server that clients of ksqlDB can talk to.

    Statements go to a command topic in the log: a server that is started again knows everything that was created, and
    servers with the same ksql.service.id on one log agree. The console, a page to type statements into and to watch
    queries, is at the same address. Ctrl-C ends it cleanly; queries go on where they were at the next start.

    \b
      headrace sql server
      headrace sql server --listen localhost:9088 --set ksql.service.id=shop_
      headrace sql server --queries-file orders.sql
      headrace sql server --registry
      headrace sql server --listen 0.0.0.0:8088 --set http.tls.certificate=cert.pem --set http.tls.key=key.pem
    """
    # Imported here: the packages for serving are optional.
    try:
        from headrace.sql.catalog.schema_inference import REGISTRY_URL
        from headrace.sql.hosting.streams_host import streams_settings
        from headrace.sql.server.headless import run_file
        from headrace.sql.server.sql_server import SqlServer
    except ImportError as error:
        raise missing_package(error, "SQL", "sql") from error
    settings = common.settings() | read_settings(config_file, assignments, with_environment=False)
    if user is not None and ":" not in user:
        message = "--user must be NAME:PASSWORD"
        raise click.UsageError(message)
    with ExitStack() as held:
        log = None
        if registry is not None:
            log = held.enter_context(closing(open_log(StreamsConfig.of(streams_settings(settings)))))
            settings[REGISTRY_URL] = _start_registry(log, registry, held)
        running = SqlServer(
            settings,
            listen=listen,
            log=log,
            engine=engine_of(engine),
            token=token,
            user=user,
            accepts_statements=queries_file is None,
        )
        held.callback(running.stop)
        if queries_file is not None:
            run_file(running.service, queries_file)
        running.start()
        note(f"answering at {running.url}; its console is {running.url}/console/")
        with closing_on_signals(running.ask_to_stop):
            running.wait()


def _start_registry(log: TopicLog, port: int, held: ExitStack) -> str:
    """Starts a schema registry on the log; returns its address."""
    from headrace.devtools.schema_registry import RegistryServer
    from headrace.devtools.schema_registry.server import NOT_FOR_PRODUCTION

    started = held.enter_context(RegistryServer(log, port=port))
    note(f"a schema registry answers at {started.url}; {NOT_FOR_PRODUCTION}")
    return started.url

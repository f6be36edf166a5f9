"""``headrace registry``: a schema registry for development, on this machine."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from threading import Event

import click

from headrace.app.directories import open_log
from headrace.app.signals import closing_on_signals
from headrace.cli.common_options import CommonOptions, common_options
from headrace.cli.printing import note
from headrace.errors import missing_package

_port = click.option(
    "--port", type=click.IntRange(0, 65535), default=8081, show_default=True, help="0 takes a free one."
)


@click.group()
@common_options()
def registry() -> None:
    """Start and stop a schema registry for development and tests.

    It answers as Confluent's does, on this machine only, and keeps schemas in a topic of the log: the embedded one, or
    Kafka with --bootstrap-servers. It is not for production: it has no users, no copies and no modes, and knows rules
    of compatibility for Avro only.

    \b
      headrace registry start
      headrace sql server --set ksql.schema.registry.url=http://localhost:8081
    """


@registry.command("start", short_help="Start the registry in the background.")
@_port
@common_options()
@click.pass_obj
def start(common: CommonOptions, port: int) -> None:
    """Start the registry in the background, and print its address for ksql.schema.registry.url."""
    _check_installed()
    from headrace.devtools.schema_registry.process import start_registry

    started = start_registry(_place(common), _options(common), port=port)
    _warn()
    note(f"the schema registry runs as process {started.pid}; stop it with 'headrace registry stop'")
    click.echo(started.address)


@registry.command("stop")
@common_options()
@click.pass_obj
def stop(common: CommonOptions) -> None:
    """Stop the registry. Its schemas stay, and are there again when it is started anew."""
    _check_installed()
    from headrace.devtools.schema_registry.process import stop_registry

    directory = _place(common)
    stopped = stop_registry(directory)
    said = (
        f"no schema registry runs in '{directory}'" if stopped is None else f"the registry on {stopped.address} is gone"
    )
    note(said)


@registry.command("run")
@_port
@click.option("--address-file", type=click.Path(path_type=Path), metavar="FILE", help="Where to write its address.")
@common_options()
@click.pass_obj
def run(common: CommonOptions, port: int, address_file: Path | None) -> None:
    """Run the registry in the foreground, until Ctrl-C."""
    _check_installed()
    from headrace.devtools.schema_registry import RegistryServer

    asked = Event()
    with closing(open_log(common.config())) as log, RegistryServer(log, port=port) as server:
        _warn()
        note(f"the schema registry answers at {server.url}")
        if address_file is not None:
            address_file.write_text(server.url, encoding="utf-8")
        with closing_on_signals(asked.set):
            asked.wait()


def _warn() -> None:
    from headrace.devtools.schema_registry.server import NOT_FOR_PRODUCTION

    note(f"warning: {NOT_FOR_PRODUCTION}")


def _place(common: CommonOptions) -> Path:
    return Path(common.config().state_dir) / "registry"


def _options(common: CommonOptions) -> list[str]:
    """Returns the options that lead another process to the same log, wherever it is started."""
    named = {
        "--state-dir": Path(common.config().state_dir).expanduser().resolve(),
        "--log-dir": None if common.log_dir is None else Path(common.log_dir).expanduser().resolve(),
        "--bootstrap-servers": common.bootstrap_servers,
        "--client-config": None if common.client_config is None else Path(common.client_config).resolve(),
    }
    return [part for option, value in named.items() if value is not None for part in (option, str(value))]


def _check_installed() -> None:
    try:
        import headrace.devtools.schema_registry  # noqa: F401 - what it imports is optional
    except ImportError as error:
        raise missing_package(error, "the schema registry", "registry,sql") from error

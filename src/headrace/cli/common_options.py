"""Options that all commands share: where the log and the state of applications are."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import click
from click.shell_completion import CompletionItem

from headrace.app.directories import log_directory, open_log
from headrace.cli.settings import read_file, together
from headrace.config import StreamsConfig
from headrace.errors import StreamsError, UnknownTopicError, did_you_mean
from headrace.topics.journal import DurableLog
from headrace.topics.log import Topic, TopicLog

F = TypeVar("F", bound=Callable[..., Any])

_FILE = "data.mdb"


@dataclass
class CommonOptions:
    """Values of the options before and behind a command's name; every command gets them as its first argument."""

    state_dir: str | None = None
    log_dir: str | None = None
    bootstrap_servers: str | None = None
    client_config: str | None = None
    debug: bool = False

    def settings(self) -> dict[str, Any]:
        """Returns the given options, by the names of the configuration."""
        given = {"state.dir": self.state_dir, "log.dir": self.log_dir, "bootstrap.servers": self.bootstrap_servers}
        of_clients = {} if self.client_config is None else read_file(Path(self.client_config))
        return of_clients | {key: value for key, value in given.items() if value is not None}

    def config(self, application_id: str | None = None) -> StreamsConfig:
        """Returns a configuration with these options, for an application if one is named."""
        named = {} if application_id is None else {"application.id": application_id}
        return StreamsConfig.of(self.settings() | named)

    @property
    def log_directory(self) -> Path:
        return log_directory(self.config())

    @property
    def has_log(self) -> bool:
        return self.config().bootstrap_servers is not None or (self.log_directory / _FILE).exists()

    @property
    def where(self) -> str:
        """The log, as messages call it."""
        servers = self.config().bootstrap_servers
        return f"the log '{self.log_directory}'" if servers is None else f"Kafka at '{servers}'"

    @contextmanager
    def log(self, *, create: bool = False, config: StreamsConfig | None = None) -> Iterator[DurableLog]:
        """Opens the log: that of a configuration, or the one that was named on the command line.

        Only who writes something new may ``create`` an embedded one: a reader has probably mistaken the place.
        """
        config = config or self.config()
        if not create and config.bootstrap_servers is None and not (log_directory(config) / _FILE).exists():
            message = (
                f"there is no log in '{log_directory(config)}'; create a topic there with 'headrace topics create', or "
                "say where the log is with --log-dir, --state-dir or --bootstrap-servers"
            )
            raise click.ClickException(message)
        with closing(open_log(config)) as log:
            yield log


def known_topic(log: TopicLog, name: str, common: CommonOptions, *, is_wanted: bool = True) -> Topic:
    """Returns a topic, or says where to look for it, and if it is wanted with which command it is made."""
    try:
        return log.describe_topic(name)
    except UnknownTopicError:
        made = f"create it with 'headrace topics create {name} --partitions 1'"
        remedy = made if is_wanted else "see 'headrace topics list'"
        message = (
            f"there is no topic '{name}' in {common.where}{did_you_mean(name, log.topics())}; {remedy}, or choose "
            "another log with --log-dir, --state-dir or --bootstrap-servers"
        )
        raise click.ClickException(message) from None


def _remember(context: click.Context, parameter: click.Parameter, value: Any) -> Any:
    # Behind the command's name an option overrides what was said before it.
    if value and parameter.name is not None:
        setattr(context.ensure_object(CommonOptions), parameter.name, value)
    return value


def common_options(*, from_environment: bool = False) -> Callable[[F], F]:
    """Adds the options that say where everything is; the environment is asked once, before the command's name."""

    def variable(name: str) -> str | None:
        return name if from_environment else None

    return together(
        click.option(
            "--state-dir",
            metavar="DIR",
            envvar=variable("HEADRACE_STATE_DIR"),
            expose_value=False,
            callback=_remember,
            help="State of applications, and the log unless --log-dir is given. [env HEADRACE_STATE_DIR]",
        ),
        click.option(
            "--log-dir",
            metavar="DIR",
            envvar=variable("HEADRACE_LOG_DIR"),
            expose_value=False,
            callback=_remember,
            help="The embedded log; by default 'log' in the state directory. [env HEADRACE_LOG_DIR]",
        ),
        click.option(
            "--bootstrap-servers",
            metavar="HOST:PORT",
            envvar=variable("HEADRACE_BOOTSTRAP_SERVERS"),
            expose_value=False,
            callback=_remember,
            help="Brokers of Kafka, instead of the embedded log. [env HEADRACE_BOOTSTRAP_SERVERS]",
        ),
        click.option(
            "--client-config",
            type=click.Path(exists=True, dir_okay=False),
            metavar="FILE",
            envvar=variable("HEADRACE_CLIENT_CONFIG"),
            expose_value=False,
            callback=_remember,
            help="Settings of Kafka's clients, such as security.protocol. [env HEADRACE_CLIENT_CONFIG]",
        ),
        click.option(
            "--debug",
            is_flag=True,
            envvar=variable("HEADRACE_DEBUG"),
            expose_value=False,
            callback=_remember,
            help="Show the traceback of an error. [env HEADRACE_DEBUG]",
        ),
    )


def complete_topic(context: click.Context, _parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Offers the topics of the log to the shell."""
    common = context.find_object(CommonOptions) or CommonOptions()
    try:
        if not common.has_log:
            return []
        with common.log() as log:
            return [CompletionItem(name) for name in log.topics() if name.startswith(incomplete)]
    except StreamsError:
        # The shell asks while one types: there is nobody to read an error.
        return []

"""Where a command finds the log and the state of applications: the options that all commands share."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import click
from click.shell_completion import CompletionItem

from headrace.app.places import log_directory
from headrace.config import StreamsConfig
from headrace.errors import StreamsError, UnknownTopicError, did_you_mean
from headrace.topics.embedded import EmbeddedLog
from headrace.topics.log import Topic, TopicLog

F = TypeVar("F", bound=Callable[..., Any])

_FILE = "data.mdb"


@dataclass
class Places:
    """What the options before and behind a command's name have said; every command gets it as its first argument."""

    state_dir: str | None = None
    log_dir: str | None = None
    debug: bool = False

    def settings(self) -> dict[str, Any]:
        """Returns what was said, by the names of the configuration."""
        given = {"state.dir": self.state_dir, "log.dir": self.log_dir}
        return {key: value for key, value in given.items() if value is not None}

    def config(self, application_id: str | None = None) -> StreamsConfig:
        """Returns a configuration with these places, for an application if one is named."""
        named = {} if application_id is None else {"application.id": application_id}
        return StreamsConfig.of(self.settings() | named)

    @property
    def log_directory(self) -> Path:
        return log_directory(self.config())

    @property
    def has_log(self) -> bool:
        return (self.log_directory / _FILE).exists()

    @contextmanager
    def log(self, *, create: bool = False) -> Iterator[EmbeddedLog]:
        """Opens the log. Only who writes something new may ``create`` it: a reader has probably mistaken the place."""
        if not create and not self.has_log:
            message = (
                f"there is no log in '{self.log_directory}'; create a topic there with 'headrace topics create', or "
                "say where the log is with --log-dir or --state-dir"
            )
            raise click.ClickException(message)
        with EmbeddedLog(self.log_directory) as log:
            yield log


def known_topic(log: TopicLog, name: str, directory: Path) -> Topic:
    """Returns a topic, or says with which command it is made."""
    try:
        return log.describe_topic(name)
    except UnknownTopicError:
        message = (
            f"there is no topic '{name}' in the log '{directory}'{did_you_mean(name, log.topics())}; create it with "
            f"'headrace topics create {name} --partitions 1', or choose another log with --log-dir or --state-dir"
        )
        raise click.ClickException(message) from None


def _remember(context: click.Context, parameter: click.Parameter, value: Any) -> Any:
    # Behind the command's name an option overrides what was said before it.
    if value and parameter.name is not None:
        setattr(context.ensure_object(Places), parameter.name, value)
    return value


def common_options(*, from_environment: bool = False) -> Callable[[F], F]:
    """Adds ``--state-dir``, ``--log-dir`` and ``--debug``; the environment is asked once, before the command's name."""

    def variable(name: str) -> str | None:
        return name if from_environment else None

    options = (
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
            "--debug",
            is_flag=True,
            envvar=variable("HEADRACE_DEBUG"),
            expose_value=False,
            callback=_remember,
            help="Show the traceback of an error. [env HEADRACE_DEBUG]",
        ),
    )

    def decorate(function: F) -> F:
        for option in reversed(options):
            function = option(function)
        return function

    return decorate


def complete_topic(context: click.Context, _parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Offers the topics of the log to the shell."""
    places = context.find_object(Places) or Places()
    try:
        if not places.has_log:
            return []
        with places.log() as log:
            return [CompletionItem(name) for name in log.topics() if name.startswith(incomplete)]
    except StreamsError:
        # The shell asks while one types: there is nobody to read an error.
        return []

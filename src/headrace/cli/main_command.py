"""The command itself: its options, its overview, and its error messages."""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Sequence
from typing import Any, NoReturn

import click

from headrace.cli.backfill import backfill
from headrace.cli.common_options import CommonOptions, common_options
from headrace.cli.completion import completion
from headrace.cli.console import console
from headrace.cli.consume import consume
from headrace.cli.demo import demo
from headrace.cli.describe import describe
from headrace.cli.doctor import doctor
from headrace.cli.generate import generate
from headrace.cli.grow import grow
from headrace.cli.kafka import kafka
from headrace.cli.plan_change import plan_change
from headrace.cli.prepare import prepare
from headrace.cli.produce import produce
from headrace.cli.registry import registry
from headrace.cli.reset import reset
from headrace.cli.run import run
from headrace.cli.snapshots import restore, snapshot, snapshots
from headrace.cli.sql import sql
from headrace.cli.state import state
from headrace.cli.takeover import hand_back_command, takeover
from headrace.cli.test import test
from headrace.cli.topics import topics
from headrace.cli.view import view
from headrace.errors import ConfigError, StreamsError

FAILED, WRONG_USAGE, INTERRUPTED = 1, 2, 130

_EPILOG = """\
Exit codes: 0 all went well; 1 the command, the application or a case failed; 2 wrong usage: an option, a setting or a
name on the command line; 130 interrupted.
"""


class Application(click.Group):
    """A group whose errors are one line on stderr and an exit code."""

    # Any: whatever a command returns.
    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except BrokenPipeError:
            # Before click sees it, for whom it is a failure.
            return _reader_is_gone()

    def main(
        self,
        args: Sequence[str] | None = None,
        prog_name: str | None = None,
        complete_var: str | None = None,
        standalone_mode: bool = True,  # noqa: FBT001, FBT002 - click's signature
        **extra: Any,
    ) -> NoReturn:
        common = extra.setdefault("obj", CommonOptions())
        try:
            result = super().main(args, prog_name or "headrace", complete_var, standalone_mode=False, **extra)
            sys.stdout.flush()
        # Everything is answered here: what a user has done wrong must never be a traceback.
        except (Exception, KeyboardInterrupt) as error:
            if common.debug:
                traceback.print_exc()
            sys.exit(_tell(error))
        sys.exit(result if isinstance(result, int) else 0)


def _tell(error: BaseException) -> int:
    """Says what went wrong and returns the exit code."""
    match error:
        case BrokenPipeError():
            return _reader_is_gone()
        case KeyboardInterrupt() | click.Abort():
            return _say("interrupted", INTERRUPTED)
        case click.exceptions.NoArgsIsHelpError():
            click.echo(error.format_message(), err=True)
            return WRONG_USAGE
        case click.UsageError(ctx=context):
            # A hidden command is typed without its name.
            shown = context.parent if context is not None and context.command.hidden else context
            hint = "" if shown is None else f"\ntry '{shown.command_path} --help'"
            return _say(f"{error.format_message()}{hint}", WRONG_USAGE)
        case click.ClickException():
            return _say(error.format_message(), error.exit_code)
        case ConfigError():
            return _say(str(error), WRONG_USAGE)
        case StreamsError():
            return _say(str(error), FAILED)
        case OSError(filename=str() as path, strerror=str() as reason):
            return _say(f"'{path}': {reason}", FAILED)
    return _say(f"unexpected {type(error).__name__}: {error}; run it again with --debug to see where", FAILED)


def _reader_is_gone() -> int:
    """Ends quietly: the reader, `head` for instance, has seen enough. Python would complain at its last flush."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 0


def _say(message: str, code: int) -> int:
    click.echo(f"error: {message}", err=True)
    return code


@click.group(
    "headrace",
    cls=Application,
    invoke_without_command=True,
    epilog=_EPILOG,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110},
)
@common_options(from_environment=True)
@click.version_option(package_name="headrace", prog_name="headrace")
@click.pass_context
def main(context: click.Context) -> None:
    """Topologies of Kafka Streams in Python: run them, look at them, and work with their topics.

    Topics live in the embedded log, a directory of this machine, or in Kafka with --bootstrap-servers; any number of
    commands and applications may use them at once. Every command explains itself with --help.

    \b
    Start here:
      headrace topics create lines
      echo 'to be or not to be' | headrace produce lines --value-format string
      headrace describe examples/word_count.py:build
      headrace run examples/word_count.py:build --until-end
      headrace consume word-counts --key-format string --value-format long
    """
    if context.invoked_subcommand is None:
        click.echo(context.get_help())


COMMANDS = (
    *(demo, run, backfill, console, view, describe, topics, produce),
    *(consume, generate, reset, grow, plan_change, snapshot, restore, snapshots, takeover, hand_back_command),
    *(state, test, sql, kafka, registry, doctor, prepare, completion),
)
for command in COMMANDS:
    main.add_command(command)

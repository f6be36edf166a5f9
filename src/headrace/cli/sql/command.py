"""``headrace sql``: the group of its commands; without one of them, the prompt."""

from __future__ import annotations

import click

from headrace.cli.sql.migrations import migrations
from headrace.cli.sql.server import server
from headrace.cli.sql.statements import prompt
from headrace.cli.sql.test import test


class SqlGroup(click.Group):
    """A group whose arguments are those of the prompt unless they begin with the name of a command."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Puts the name of the prompt's command before what is meant for it."""
        helps = bool(args) and args[0] in ctx.help_option_names
        if not helps and (not args or args[0] not in self.commands):
            args = [str(prompt.name), *args]
        return super().parse_args(ctx, args)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Shows the options of the prompt, then the commands."""
        with click.Context(prompt, info_name=ctx.info_name, parent=ctx.parent) as inner:
            prompt.format_options(inner, formatter)
        self.format_commands(ctx, formatter)


@click.group(cls=SqlGroup, subcommand_metavar="[SERVER | COMMAND [ARGS]...]")
def sql() -> None:
    """Streams and tables in SQL, in ksqlDB's dialect.

    Opens a prompt, or carries out the statements of -e, of -f, or of what is piped into it. SERVER is the address of
    'headrace sql server', or of ksqlDB; without it a server is started in this process, on the local log, and what was
    created is there again the next time.

    \b
      headrace sql
      headrace sql -e "SHOW STREAMS;" -e "SELECT * FROM counts;"
      headrace sql http://localhost:8088 -f orders.sql --output json
    """


for command in (prompt, server, test, migrations):
    sql.add_command(command)

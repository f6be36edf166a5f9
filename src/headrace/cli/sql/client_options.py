"""Options of commands that talk to a server: who asks, and which certificates are accepted."""

from __future__ import annotations

from pathlib import Path

import click

from headrace.cli.settings import together

client_options = together(
    click.option(
        "--token", metavar="TEXT", envvar="HEADRACE_SQL_TOKEN", help="What the server asks for as bearer token."
    ),
    click.option(
        "--user", "-u", metavar="NAME:PASSWORD", envvar="HEADRACE_SQL_USER", help="For a server that asks for it."
    ),
    click.option(
        "--authority",
        type=click.Path(exists=True, dir_okay=False, path_type=Path),
        metavar="FILE",
        envvar="HEADRACE_HTTP_TLS_AUTHORITY",
        help="Certificates of the authorities that sign the server's, instead of those of this machine; the same as "
        "http.tls.authority.",
    ),
)

"""``headrace console``: where the console of a running application is."""

from __future__ import annotations

import webbrowser

import click

from headrace.app.application_server import served_at
from headrace.app.directories import application_directory
from headrace.cli.common_options import CommonOptions, common_options
from headrace.cli.printing import json_option, note, print_json


@click.command()
@click.argument("application_id")
@click.option("--open", "opens", is_flag=True, help="Open it in the browser.")
@json_option
@common_options()
@click.pass_obj
def console(common: CommonOptions, application_id: str, *, opens: bool, as_json: bool) -> None:
    """Print the address of an application's console.

    The console is part of the application: it is served by its process as long as that runs with http.listen set, as
    'headrace run --console' does. The address is kept in the application's folder of the state directory.

    \b
      headrace run examples/word_count.py:build --create-topics 1 --console
      headrace console word_count --open
    """
    found = served_at(application_directory(common.config(application_id)))
    if found is None:
        message = (
            f"application '{application_id}' is not served now; start it with 'headrace run --console', or set "
            "http.listen, and say where its state is with --state-dir"
        )
        raise click.ClickException(message)
    if as_json:
        print_json(found)
    else:
        click.echo(f"{found['url']}/console/")
        if found.get("needs_token"):
            note("it asks for the token that the application has as http.token")
    if opens:
        webbrowser.open(f"{found['url']}/console/")

"""``headrace completion``: what a shell needs to complete commands, options and topics."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class


@click.command()
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
def completion(context: click.Context, shell: str) -> None:
    """Print the completion script for a SHELL.

    \b
    bash:  eval "$(headrace completion bash)"      in ~/.bashrc
    zsh:   eval "$(headrace completion zsh)"       in ~/.zshrc
    fish:  headrace completion fish | source       in ~/.config/fish/config.fish
    """
    found = get_completion_class(shell)
    if found is None:
        message = f"there is no completion for {shell}"
        raise click.ClickException(message)
    click.echo(found(context.find_root().command, {}, "headrace", "_HEADRACE_COMPLETE").source())

"""The command ``headrace``: topics, records, topologies and applications from the shell.

``main_command`` is the front door with the options of all commands; each command is a file of its own. Nothing here is
loaded by ``import headrace``.
"""

from headrace.cli.main_command import main

__all__ = ["main"]

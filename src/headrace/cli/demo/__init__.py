"""``headrace demo``: ``command`` is its course, ``show`` how it looks; the rest is in ``headrace.devtools.demo``."""

from headrace.cli.demo.command import demo

__all__ = ["demo"]

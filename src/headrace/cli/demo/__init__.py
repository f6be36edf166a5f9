"""``headrace demo``: ``command`` is its course, ``tills`` its input, ``results`` its output, ``show`` how it looks."""

from headrace.cli.demo.command import demo

__all__ = ["demo"]

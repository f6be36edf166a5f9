"""Docstrings for the site: examples with prompts become blocks of code."""

from __future__ import annotations

import re
from typing import Any

import griffe

_EXAMPLE = re.compile(r"(?:^|(?<=\n))(>>> .*?)(?=\n\s*\n(?!>>> )|\Z)", re.DOTALL)


def fence(text: str) -> str:
    r"""Returns a docstring whose examples stand between fences, as Markdown wants them.

    >>> fence("Adds.\n\n>>> 1 + 1\n2\n\nThat is all.")
    'Adds.\n\n```python\n>>> 1 + 1\n2\n```\n\nThat is all.'
    """
    return _EXAMPLE.sub(lambda found: f"```python\n{found.group(1).rstrip()}\n```", text)


class Examples(griffe.Extension):
    """Rewrites the docstrings of everything that is loaded."""

    def on_instance(self, *, obj: griffe.Object, **arguments: Any) -> None:
        """Puts the examples of one docstring between fences."""
        if obj.docstring is not None and ">>> " in obj.docstring.value:
            obj.docstring.value = fence(obj.docstring.value)

"""Writes the table of settings in docs/guide/configuration.md, from the fields of ``StreamsConfig``.

python -m tools.configuration_table          # print it
python -m tools.configuration_table --write  # put it into the page
"""

import ast
import inspect
import tempfile
import textwrap
from dataclasses import fields
from datetime import timedelta
from pathlib import Path
from typing import Any

from headrace import StreamsConfig
from tools.marked_part import print_or_write

PAGE = Path(__file__).parent.parent / "docs" / "guide" / "configuration.md"
START, STOP = "<!-- settings: made by tools/configuration_table.py -->", "<!-- end of settings -->"


def table() -> str:
    """Returns the table in Markdown."""
    explained = docstrings()
    lines = ["| setting | Kafka's name | default | meaning |", "|---|---|---|---|"]
    for field in fields(StreamsConfig):
        known = field.metadata.get("setting")
        key = known.key if known is not None else field.name.replace("_", ".")
        default = {} if field.name == "extras" else field.default
        dotted = "" if field.name == "extras" else f"`{key}`"
        lines.append(f"| `{field.name}` | {dotted} | {shown(default)} | {explained[field.name]} |")
    return "\n".join(lines)


def shown(default: Any) -> str:
    """Returns a default as a reader would write it."""
    if isinstance(default, timedelta):
        return f"`{duration(default)}`"
    if isinstance(default, str) and default.startswith(tempfile.gettempdir()):
        return "`headrace-<user id>/state` in the directory for temporary files"
    if type(default).__name__.endswith("Serde"):
        return f"`Serdes.{type(default).__name__.removesuffix('Serde').lower()}()`"
    return f"`{default!r}`"


def duration(value: timedelta) -> str:
    units = {"days": 86_400_000, "minutes": 60_000, "seconds": 1000, "milliseconds": 1}
    amount = value // timedelta(milliseconds=1)
    unit = next(unit for unit, size in units.items() if amount % size == 0 and (amount >= size or size == 1))
    return f"timedelta({unit}={amount // units[unit]})" if amount else "timedelta(0)"


def docstrings() -> dict[str, str]:
    """Returns the first paragraph of the string under each field."""
    (definition,) = ast.parse(textwrap.dedent(inspect.getsource(StreamsConfig))).body
    assert isinstance(definition, ast.ClassDef)
    found = {}
    for statement, below in zip(definition.body, definition.body[1:], strict=False):
        if isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name):
            assert isinstance(below, ast.Expr)
            assert isinstance(below.value, ast.Constant)
            text = " ".join(inspect.cleandoc(str(below.value.value)).split())
            found[statement.target.id] = text.replace("``", "`").replace("|", "\\|")
    return found


if __name__ == "__main__":
    print_or_write(PAGE, START, STOP, table())

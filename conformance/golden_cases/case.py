"""Files of golden cases: the cases, their functions, and the reasons for leaving some out."""

from __future__ import annotations

import gzip
import importlib.util
import json
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

# A case and its nodes are the parsed JSON itself: the format's README is their only definition.
Case = dict[str, Any]
GoldenNode = dict[str, Any]

_HERE = Path(__file__).resolve().parent
_OWN_FUNCTIONS = _HERE.parent.parent / "tests" / "golden" / "functions.py"
_LEFT_OUT = _HERE.parent / "left_out.json"


def case_lines(path: Path) -> Iterator[str]:
    """Yields the cases of a ``.jsonl`` or ``.jsonl.gz`` file, unparsed."""
    data = path.read_bytes()
    text = (gzip.decompress(data) if path.suffix == ".gz" else data).decode()
    # Not splitlines(): a value may hold any of Unicode's other line separators.
    yield from (f"{line}\n" for line in text.split("\n") if line)


def parse(line: str) -> Case:
    case: Case = json.loads(line)
    return case


def functions_path(cases: Path) -> Path:
    """Returns the ``functions.py`` beside a file of cases, or else the project's own copy."""
    beside = cases.resolve().parent / "functions.py"
    return beside if beside.exists() else _OWN_FUNCTIONS


@cache
def load_functions(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location("golden_functions", path)
    if spec is None or spec.loader is None:
        message = f"cannot import the functions of the golden cases from {path}"
        raise FileNotFoundError(message)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def left_out() -> dict[str, str]:
    """Returns the ids of the cases that are not run, each with the reason."""
    reasons: dict[str, str] = json.loads(_LEFT_OUT.read_text(encoding="utf-8"))
    return reasons

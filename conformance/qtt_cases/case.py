"""Cases as they are read from a file."""

from __future__ import annotations

import json
from decimal import Decimal
from pathlib import Path
from typing import Any

# A case is the parsed JSON itself: the corpus' own description is its only definition.
Case = dict[str, Any]

_LEFT_OUT = Path(__file__).resolve().parent.parent / "qtt_left_out.json"


def parse(line: str) -> Case:
    """Returns a case with its numbers exactly as written: records are compared by the scale of their decimals."""
    case: Case = json.loads(line, parse_float=Decimal)
    return case


def case_lines(path: Path) -> list[str]:
    # Not splitlines(): a value may hold any of Unicode's other line separators.
    return [line for line in path.read_text(encoding="utf-8").split("\n") if line]


def left_out() -> dict[str, str]:
    """Returns the ids of the cases that are not run, each with the reason."""
    reasons: dict[str, str] = json.loads(_LEFT_OUT.read_text(encoding="utf-8"))
    return reasons

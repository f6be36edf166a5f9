"""Writes the golden cases that the project carries: all scenarios, every tenth random case, all that once failed.

python conformance/sample.py ../shared/golden
"""

from __future__ import annotations

import gzip
import shutil
import sys
from pathlib import Path

from golden_cases.case import case_lines

_TARGET = Path(__file__).resolve().parent.parent / "tests" / "golden"
_EVERY = {"scenarios.jsonl": 1, "cases.jsonl": 10, "found.jsonl": 1}


def main(source: Path) -> None:
    _TARGET.mkdir(exist_ok=True)
    shutil.copyfile(source / "functions.py", _TARGET / "functions.py")
    for name, every in _EVERY.items():
        kept = "".join(list(case_lines(source / name))[::every])
        # Without a timestamp the same cases give the same file.
        (_TARGET / f"{name}.gz").write_bytes(gzip.compress(kept.encode(), mtime=0))


if __name__ == "__main__":
    main(Path(sys.argv[1]))

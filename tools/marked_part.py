"""Part of a page between two marks, which a tool writes."""

import re
import sys
from pathlib import Path


def print_or_write(page: Path, start: str, stop: str, content: str) -> None:
    """Prints the content; with the argument ``--write`` it puts it between the marks of the page instead."""
    if "--write" not in sys.argv:
        print(content)
        return
    pattern = re.compile(re.escape(start) + ".*?" + re.escape(stop), re.DOTALL)
    text = page.read_text(encoding="utf-8")
    page.write_text(pattern.sub(lambda _: f"{start}\n{content}\n{stop}", text), encoding="utf-8")

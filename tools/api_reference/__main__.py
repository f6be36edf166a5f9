"""Writes ``docs/api.md``: ``python -m tools.api_reference``, from the project's directory."""

import sys
from pathlib import Path

from tools.api_reference.mapping import MappingError
from tools.api_reference.reference import PAGE, reference


def main(page: Path = PAGE) -> int:
    """Writes the page; returns 1, and changes nothing, if the mapping does not fit the package."""
    try:
        text = reference()
    except MappingError as error:
        print(f"tools/api_reference/mapping.toml:\n{error}", file=sys.stderr)
        return 1
    page.parent.mkdir(exist_ok=True)
    page.write_text(text, encoding="utf-8")
    print(f"{page}: {text.count(chr(10))} lines")
    return 0


if __name__ == "__main__":
    sys.exit(main())

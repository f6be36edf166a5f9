"""Hooks of MkDocs: pages that live outside of ``docs``, and links that lead there."""

from __future__ import annotations

import posixpath
import re
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).parent.parent.parent
OUTSIDE = {
    "benchmarks/README.md": "benchmarks.md",
    "examples/README.md": "examples.md",
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changelog.md",
}
"""Files of the project that are pages of the site, by their path there."""
WIDE = {"index.md": ["navigation", "toc"], "comparison.md": ["toc"]}
"""Pages that need more of the width, and what they hide for it."""
_HOMES = {page: path for path, page in OUTSIDE.items()}
_ITEM = re.compile(r"(?:[-*]|\d+\.) ")
_FENCE = re.compile(r"^```.*?^```$", re.DOTALL | re.MULTILINE)


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Adds the pages that live outside of ``docs``, and the console's icon."""
    icon = next((ROOT / "src" / "headrace").rglob("static/icon.svg"))
    for page, path in [*((page, ROOT / path) for path, page in OUTSIDE.items()), ("icon.svg", icon)]:
        files.append(File.generated(config, page, content=path.read_text(encoding="utf-8")))
    return files


def on_page_markdown(markdown: str, *, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Lets links lead to pages of the site, where the project's own are others, and gives wide pages room."""
    if page.file.src_uri in WIDE:
        page.meta["hide"] = WIDE[page.file.src_uri]
    return indent_lists(link(markdown, page.file.src_uri))


def indent_lists(markdown: str) -> str:
    r"""Returns a page in which what belongs to an item of a list is indented by four, as Python's Markdown wants it.

    >>> indent_lists("* One\n  - inner\n\n1. Two\n   more\n\nText\n  as it is")
    '* One\n    - inner\n\n1. Two\n    more\n\nText\n  as it is'
    """
    lines, width, fenced = [], 0, False
    for line in markdown.split("\n"):
        item = None if fenced else _ITEM.match(line)
        if item is not None:
            width = len(item.group())
        elif line and not line.startswith(" " * max(width, 1)):
            width = 0
            fenced ^= line.startswith("```")
        lines.append(" " * (4 - width) + line if width and item is None and line else line)
    return "\n".join(lines)


def link(markdown: str, page: str) -> str:
    """Returns a page with its links as the site needs them; what the site does not have becomes plain text.

    >>> link("See [the benchmarks](../../benchmarks/README.md#kafka).", "guide/tuning.md")
    'See [the benchmarks](../benchmarks.md#kafka).'
    >>> link("Run [word_count](word_count.py).", "examples.md")
    'Run `word_count.py`.'
    """
    outside = [(found.start(), found.end()) for found in _FENCE.finditer(markdown)]

    def replaced(found: re.Match[str]) -> str:
        return found.group() if any(start <= found.start() < end for start, end in outside) else _relinked(found, page)

    return re.sub(r"\[([^\]]*)\]\((?!\w+:)([^)#\s]+)(#[^)\s]*)?\)", replaced, markdown)


def _relinked(found: re.Match[str], page: str) -> str:
    text, target, anchor = found.group(1), found.group(2), found.group(3) or ""
    home = _HOMES.get(page, f"docs/{page}")
    path = posixpath.normpath(posixpath.join(posixpath.dirname(home), target))
    if path in OUTSIDE:
        inside = OUTSIDE[path]
    elif path.startswith("docs/"):
        inside = path.removeprefix("docs/")
    else:
        name = posixpath.basename(path)
        return f"`{name if name.startswith(text) else path}`"
    return f"[{text}]({posixpath.relpath(inside, posixpath.dirname(page) or '.')}{anchor})"

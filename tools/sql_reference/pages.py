"""The pages, by the names of their files."""

from __future__ import annotations

from pathlib import Path

from tools.sql_reference.functions import functions_page
from tools.sql_reference.settings import settings_page
from tools.sql_reference.statements import statements_page

DIRECTORY = Path(__file__).parents[2] / "docs" / "sql"


def pages() -> dict[str, str]:
    """Returns the text of each page."""
    return {"statements.md": statements_page(), "functions.md": functions_page(), "settings.md": settings_page()}

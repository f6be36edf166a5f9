"""Puts the page together."""

from __future__ import annotations

from pathlib import Path

from tools.api_reference import checklist, mapping, page, settings

PAGE = Path(__file__).parents[2] / "docs" / "api.md"


def reference() -> str:
    """Returns the page; raises ``MappingError`` if list, mapping and package do not fit."""
    listed = checklist.load()
    sections = mapping.load()
    of_settings = sections.pop("settings", {})
    return page.render(mapping.Mapping(sections).judge(listed), settings.judge(listed.settings, of_settings))

"""Functions with regular expressions, in Java's dialect."""

from __future__ import annotations

from headrace.sql.functions.definitions import overload, scalar
from headrace.sql.functions.java_regex import pattern_of, replacement_of

CATEGORY = "Regular expression"


def extracted(pattern: str, text: str, group: int = 0) -> str | None:
    """Returns the first match of a pattern, or of one of its groups; NULL if there is none."""
    compiled = pattern_of(pattern)
    found = compiled.search(text)
    return found[group] if found is not None and 0 <= group <= compiled.groups else None


def all_extracted(pattern: str, text: str, group: int = 0) -> list[str | None] | None:
    """Returns all matches of a pattern, or of one of its groups; NULL if the pattern has no such group."""
    compiled = pattern_of(pattern)
    if not 0 <= group <= compiled.groups:
        return None
    return [found[group] for found in compiled.finditer(text)]


def replaced(text: str, pattern: str, replacement: str) -> str:
    """Returns the text with every match of a pattern replaced."""
    return pattern_of(pattern).sub(replacement_of(replacement), text)


def split(text: str, pattern: str) -> list[str]:
    """Returns the parts between matches of a pattern; an empty pattern splits after each character."""
    if not pattern:
        return list(text) or [text]
    parts: list[str] = []
    start = 0
    for found in pattern_of(pattern).finditer(text):
        if found.end() == 0 or (found.start() == found.end() == len(text)):
            continue
        parts.append(text[start : found.start()])
        start = found.end()
    return [*parts, text[start:]]


FUNCTIONS = (
    scalar(
        "regexp_extract",
        "Returns the first part of a text that matches a pattern, or one of its groups; NULL if there is none.",
        CATEGORY,
        [("REGEXP_EXTRACT('(.*) (.*)', 'hello there', 2)", "'there'")],
        overload("(pattern STRING, text STRING) STRING", extracted),
        overload("(pattern STRING, text STRING, group INT) STRING", extracted),
    ),
    scalar(
        "regexp_extract_all",
        "Returns all parts of a text that match a pattern, or one of its groups.",
        CATEGORY,
        [("REGEXP_EXTRACT_ALL('[0-9]+', 'a1b23')", "ARRAY['1', '23']")],
        overload("(pattern STRING, text STRING) ARRAY<STRING>", all_extracted),
        overload("(pattern STRING, text STRING, group INT) ARRAY<STRING>", all_extracted),
    ),
    scalar(
        "regexp_replace",
        "Returns the text with every match of a pattern replaced; $1 in the replacement is the first group.",
        CATEGORY,
        [("REGEXP_REPLACE('a1b23', '[0-9]+', '#')", "'a#b#'")],
        overload("(text STRING, pattern STRING, replacement STRING) STRING", replaced),
    ),
    scalar(
        "regexp_split_to_array",
        "Returns the parts of a text between matches of a pattern.",
        CATEGORY,
        [("REGEXP_SPLIT_TO_ARRAY('a1b2c', '[0-9]')", "ARRAY['a', 'b', 'c']")],
        overload("(text STRING, pattern STRING) ARRAY<STRING>", split),
    ),
)

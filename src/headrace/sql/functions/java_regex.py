"""Regular expressions as Java writes them, translated to Python's."""

from __future__ import annotations

import re
from functools import lru_cache

_CLASSES = {
    "Lower": "a-z",
    "Upper": "A-Z",
    "ASCII": r"\x00-\x7f",
    "Alpha": "a-zA-Z",
    "Digit": "0-9",
    "Alnum": "a-zA-Z0-9",
    "Punct": r"!-/:-@\[-`{-~",
    "Graph": "!-~",
    "Print": " -~",
    "Blank": r" \t",
    "Cntrl": r"\x00-\x1f\x7f",
    "XDigit": "0-9a-fA-F",
    "Space": r" \t\n\x0b\f\r",
    "L": r"^\W\d_",
    "Lu": "A-ZÀ-ÖØ-Þ",
    "Ll": "a-zß-öø-ÿ",
    "N": r"\d",
    "Nd": r"\d",
    "P": r"!-/:-@\[-`{-~",
    "IsAlphabetic": r"^\W\d_",
    "IsDigit": r"\d",
    "IsLetter": r"^\W\d_",
    "IsPunctuation": r"!-/:-@\[-`{-~",
    "IsWhite_Space": r"\s",
}
_PROPERTY = re.compile(r"\\([pP])(?:\{\^?(\w+)\}|(\w))")
_GROUP_NAME = re.compile(r"\(\?<([A-Za-z]\w*)>")
_GROUP_USE = re.compile(r"\\k<([A-Za-z]\w*)>")


@lru_cache(maxsize=1024)
def pattern_of(text: str) -> re.Pattern[str]:
    r"""Returns a Java pattern compiled for Python; digits, spaces and words mean ASCII, as they do in Java.

    >>> pattern_of(r"(?<year>\d{4})-\p{Alpha}+").match("1999-May").groupdict()
    {'year': '1999'}
    """
    return re.compile(_translated(text), re.ASCII if text.isascii() and not _PROPERTY.search(text) else 0)


def _translated(text: str) -> str:
    text = _quoted_literally(text)
    text = _GROUP_USE.sub(r"(?P=\1)", _GROUP_NAME.sub(r"(?P<\1>", text))
    result: list[str] = []
    start_of_class = -1
    index = 0
    while index < len(text):
        in_class = start_of_class >= 0
        one = text[index]
        found = _PROPERTY.match(text, index)
        if found:
            result.append(_property(found, in_class=in_class))
            index = found.end()
            continue
        if one == "\\" and index + 1 < len(text):
            result.append(_escape(text[index + 1], in_class=in_class))
            index += 2
            continue
        if one == "[" and in_class:
            one = "\\["
        elif one == "[":
            start_of_class = index
        elif one == "]" and in_class and text[start_of_class + 1 : index] not in ("", "^"):
            start_of_class = -1
        result.append(one)
        index += 1
    return "".join(result)


def _escape(letter: str, *, in_class: bool) -> str:
    special = {"h": r" \t\xa0", "R": r"(?:\r\n|[\n\x0b\f\r])", "z": r"\Z", "e": r"\x1b"}
    if letter == "h":
        return special["h"] if in_class else f"[{special['h']}]"
    if letter in special and not in_class:
        return special[letter]
    if letter == "Z":
        return r"(?=\n?\Z)"
    return "\\" + letter


def _property(found: re.Match[str], *, in_class: bool) -> str:
    name = found[2] or found[3]
    if name not in _CLASSES:
        message = f"Unknown character property name {{{name}}} in the pattern {found.string}"
        raise ValueError(message)
    inner = _CLASSES[name]
    if in_class and not inner.startswith("^") and found[1] == "p":
        return inner
    negated = (found[1] == "P") != inner.startswith("^")
    return f"[{'^' if negated else ''}{inner.removeprefix('^')}]"


def _quoted_literally(text: str) -> str:
    return re.sub(r"\\Q(.*?)(?:\\E|$)", lambda found: re.escape(found[1]), text, flags=re.DOTALL)


def replacement_of(text: str) -> str:
    r"""Returns a Java replacement, with ``$1`` and ``${name}`` for groups, as Python writes it.

    >>> replacement_of(r"$1-\$")
    '\\g<1>-$'
    """
    result: list[str] = []
    index = 0
    while index < len(text):
        one = text[index]
        if one == "\\" and index + 1 < len(text):
            index += 1
            result.append("\\\\" if text[index] == "\\" else text[index])
        elif one == "$" and (found := re.compile(r"(\d)|\{(\w+)\}").match(text, index + 1)):
            result.append(rf"\g<{found[1] or found[2]}>")
            index = found.end() - 1
        elif one == "$":
            message = f"Illegal group reference in the replacement '{text}'"
            raise ValueError(message)
        else:
            result.append(one)
        index += 1
    return "".join(result)

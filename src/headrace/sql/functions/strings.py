"""Functions on text, and on bytes where they mean the same."""

from __future__ import annotations

import hashlib
import re
import uuid
from collections.abc import Callable
from typing import Any

from headrace.sql.functions.definitions import CallSite, overload, scalar
from headrace.sql.functions.sizes import MOST_CHARACTERS, check_size

CATEGORY = "String"
_CODE = re.compile(r"\\u([0-9a-fA-F]{4})")
# What Java's trim removes: the space and everything in front of it.
_BLANKS = "".join(map(chr, range(33)))


def lower_case(text: str) -> str:
    """Returns the text in lower case."""
    return text.lower()


def upper_case(text: str) -> str:
    """Returns the text in upper case."""
    return text.upper()


def trimmed(text: str) -> str:
    """Returns the text without blanks and control characters around it."""
    return text.strip(_BLANKS)


def character(code: int) -> str | None:
    """Returns the character of a code, NULL if there is none."""
    return chr(code) if 0 <= code <= 0x10FFFF else None


def character_of_escape(text: str) -> str | None:
    r"""Returns the text with each escape such as ``\u0041`` as its character, NULL if it does not begin with one."""
    if _CODE.match(text) is None:
        return None
    units = _CODE.sub(lambda found: chr(int(found[1], 16)), text)
    return units.encode("utf-16-be", "surrogatepass").decode("utf-16-be")


def concatenated(*texts: str | None) -> str:
    """Returns all texts in one; NULL adds nothing."""
    return "".join(text for text in texts if text is not None)


def concatenated_bytes(*parts: bytes | None) -> bytes:
    """Returns all bytes in one; NULL adds nothing."""
    return b"".join(part for part in parts if part is not None)


def joined(separator: Any, *parts: Any) -> Any:
    """Returns the parts with the separator between them; NULL parts are left out, a NULL separator gives NULL."""
    if separator is None or not parts:
        return None
    return separator.join(part for part in parts if part is not None)


def chosen(index: int | None, *texts: str | None) -> str | None:
    """Returns the text at a place counted from 1, NULL if there is none."""
    return texts[index - 1] if index is not None and 0 < index <= len(texts) else None


def place_among(text: str | None, *texts: str | None) -> int:
    """Returns the place of a text among others, counted from 1; 0 if it is not there."""
    return texts.index(text) + 1 if text is not None and text in texts else 0


def capitalized(text: str) -> str:
    """Returns the text with the first letter of each word in upper case, all others in lower case.

    As in ksqlDB, blanks in front of the first word are left out.
    """
    return "".join(word[:1].upper() + word[1:].lower() for word in re.split(r"(\s+)", text.lstrip()))


def place_of(text: str | None, part: str | None, position: int | None = 1, occurrence: int | None = 1) -> int | None:
    """Returns where a part occurs, counted from 1, 0 if it does not.

    A negative position searches backwards from that many characters before the end.
    """
    if position is None or occurrence is None:
        return None
    if text is None or part is None:
        return 0
    if occurrence < 1 or position == 0 or abs(position) > len(text):
        return 0
    if position > 0:
        found = position - 2
        for _ in range(occurrence):
            found = text.find(part, found + 1)
            if found < 0:
                return 0
        return found + 1
    found = len(text) + position + 1
    for _ in range(occurrence):
        found = text.rfind(part, 0, found - 1 + len(part)) if found > 0 else -1
        if found < 0:
            return 0
    return found + 1


def left_padded(text: Any, length: int, padding: Any) -> Any:
    """Returns the value with padding in front of it, cut to the length; NULL for no padding or a negative length."""
    if length < 0 or not padding:
        return None
    check_size("LPAD", length, max(MOST_CHARACTERS, len(text)), "characters")
    missing = length - len(text)
    return text[:length] if missing <= 0 else (padding * (missing // len(padding) + 1))[:missing] + text


def right_padded(text: Any, length: int, padding: Any) -> Any:
    """Returns the value with padding behind it, cut to the length; NULL for no padding or a negative length."""
    if length < 0 or not padding:
        return None
    check_size("RPAD", length, max(MOST_CHARACTERS, len(text)), "characters")
    missing = length - len(text)
    return text[:length] if missing <= 0 else text + (padding * (missing // len(padding) + 1))[:missing]


def replaced(text: str, old: str, new: str) -> str:
    """Returns the text with every occurrence of one part replaced by another."""
    return text.replace(old, new)


def split(text: Any, delimiter: Any) -> list[Any]:
    """Returns the parts between delimiters; an empty delimiter splits after each character."""
    if not delimiter:
        return [text[index : index + 1] for index in range(len(text))] or [text]
    parts: list[Any] = text.split(delimiter)
    return parts


def split_to_map(text: str, entry_delimiter: str, key_delimiter: str) -> dict[str, str] | None:
    """Returns the entries of a text as a map; a part without a key delimiter is no entry."""
    if not entry_delimiter or not key_delimiter or entry_delimiter == key_delimiter:
        return None
    entries = (part.split(key_delimiter) for part in text.split(entry_delimiter))
    return {entry[0]: entry[1] for entry in entries if len(entry) > 1}


def part_of(text: Any, position: int, length: int | None = None) -> Any:
    """Returns the part from a position, counted from 1 or back from the end, with at most ``length`` characters."""
    size = len(text)
    start = max(size + position, 0) if position < 0 else max(min(position - 1, size), 0)
    return text[start:] if length is None else text[start : max(min(start + length, size), start)]


def part_between(text: Any, start: int, end: int | None = None) -> Any:
    """Returns the part between two places counted from 0, as older versions of SUBSTRING did."""
    last = len(text) if end is None else min(end, len(text))
    if start < 0 or start > last:
        message = f"begin {start}, end {last}, length {len(text)}"
        raise IndexError(message)
    return text[start:last]


def _substring(site: CallSite) -> Callable[..., Any]:
    legacy = str(site.settings.get("ksql.functions.substring.legacy.args", False)).lower() == "true"
    return part_between if legacy else part_of


def digest(text: str) -> str:
    """Returns the MD5 digest of a text in hexadecimal figures."""
    return hashlib.md5(text.encode(), usedforsecurity=False).hexdigest()


def random_identifier() -> str:
    """Returns a random UUID."""
    return str(uuid.uuid4())


def identifier_of(data: bytes) -> str | None:
    """Returns the UUID of 16 bytes, NULL for any other number of them."""
    return str(uuid.UUID(bytes=data)) if len(data) == 16 else None


FUNCTIONS = (
    scalar(
        "chr",
        "Returns the character of a Unicode code, given as a number or as an escape such as '\\u0041'.",
        CATEGORY,
        [("CHR(65)", "'A'")],
        overload("(code INT) STRING", character),
        overload("(escape STRING) STRING", character_of_escape),
    ),
    scalar(
        "concat",
        "Returns all arguments in one; NULL adds nothing.",
        CATEGORY,
        [("CONCAT('a', NULL, 'b')", "'ab'")],
        overload("(inputs STRING...) STRING", concatenated, strict=False),
        overload("(inputs BYTES...) BYTES", concatenated_bytes, strict=False),
    ),
    scalar(
        "concat_ws",
        "Returns all arguments behind the first in one, with the first between them; NULL arguments are left out.",
        CATEGORY,
        [("CONCAT_WS('-', 'a', NULL, 'b')", "'a-b'")],
        overload("(separator STRING, inputs STRING...) STRING", joined, strict=False),
        overload("(separator BYTES, inputs BYTES...) BYTES", joined, strict=False),
    ),
    scalar(
        "elt",
        "Returns the argument at a place counted from 1, NULL if there is none.",
        CATEGORY,
        [("ELT(2, 'a', 'b')", "'b'")],
        overload("(place INT, texts STRING...) STRING", chosen, strict=False),
    ),
    scalar(
        "field",
        "Returns the place of a text among the other arguments, counted from 1; 0 if it is not there.",
        CATEGORY,
        [("FIELD('b', 'a', 'b')", "2")],
        overload("(text STRING, texts STRING...) INT", place_among, strict=False),
    ),
    scalar(
        "initcap",
        "Returns the text with each word beginning in upper case and going on in lower case.",
        CATEGORY,
        [("INITCAP('the laST rivEr')", "'The Last River'")],
        overload("(text STRING) STRING", capitalized),
    ),
    scalar(
        "instr",
        "Returns where a text occurs in another, counted from 1, or 0; from a position, backwards if that is negative, "
        "and the occurrence of that number.",
        CATEGORY,
        [("INSTR('river', 'r', 2)", "5")],
        overload("(text STRING, part STRING) INT", place_of, strict=False),
        overload("(text STRING, part STRING, position INT) INT", place_of, strict=False),
        overload("(text STRING, part STRING, position INT, occurrence INT) INT", place_of, strict=False),
    ),
    scalar(
        "lcase",
        "Returns the text in lower case.",
        CATEGORY,
        [("LCASE('Ab')", "'ab'")],
        overload("(text STRING) STRING", lower_case),
    ),
    scalar(
        "len",
        "Returns the number of characters or bytes.",
        CATEGORY,
        [("LEN('river')", "5")],
        overload("(text STRING) INT", len),
        overload("(data BYTES) INT", len),
    ),
    scalar(
        "lpad",
        "Returns the value with padding in front up to a length, or cut to it.",
        CATEGORY,
        [("LPAD('7', 3, '0')", "'007'")],
        overload("(text STRING, length INT, padding STRING) STRING", left_padded),
        overload("(data BYTES, length INT, padding BYTES) BYTES", left_padded),
    ),
    scalar(
        "rpad",
        "Returns the value with padding behind it up to a length, or cut to it.",
        CATEGORY,
        [("RPAD('a', 4, '-=')", "'a-=-'")],
        overload("(text STRING, length INT, padding STRING) STRING", right_padded),
        overload("(data BYTES, length INT, padding BYTES) BYTES", right_padded),
    ),
    scalar(
        "md5",
        "Returns the MD5 digest of a text in hexadecimal figures.",
        CATEGORY,
        [("MD5('a')", "'0cc175b9c0f1b6a831c399e269772661'")],
        overload("(text STRING) STRING", digest),
    ),
    scalar(
        "replace",
        "Returns the text with every occurrence of one part replaced by another.",
        CATEGORY,
        [("REPLACE('a-b-c', '-', '+')", "'a+b+c'")],
        overload("(text STRING, old STRING, new STRING) STRING", replaced),
    ),
    scalar(
        "split",
        "Returns the parts of a text between delimiters as an array.",
        CATEGORY,
        [("SPLIT('a,b', ',')", "ARRAY['a', 'b']")],
        overload("(text STRING, delimiter STRING) ARRAY<STRING>", split),
        overload("(data BYTES, delimiter BYTES) ARRAY<BYTES>", split),
    ),
    scalar(
        "split_to_map",
        "Returns the entries of a text as a map, from one delimiter between entries and one between key and value.",
        CATEGORY,
        [("SPLIT_TO_MAP('a=1;b=2', ';', '=')", "MAP('a' := '1', 'b' := '2')")],
        overload("(text STRING, entryDelimiter STRING, keyDelimiter STRING) MAP<STRING, STRING>", split_to_map),
    ),
    scalar(
        "substring",
        "Returns the part of a value from a position, counted from 1 or back from the end, with at most a length.",
        CATEGORY,
        [("SUBSTRING('headrace', 5, 2)", "'ra'"), ("SUBSTRING('headrace', -4)", "'race'")],
        overload("(text STRING, position INT) STRING", bind=_substring),
        overload("(text STRING, position INT, length INT) STRING", bind=_substring),
        overload("(data BYTES, position INT) BYTES", bind=_substring),
        overload("(data BYTES, position INT, length INT) BYTES", bind=_substring),
    ),
    scalar(
        "trim",
        "Returns the text without blanks around it.",
        CATEGORY,
        [("TRIM(' a ')", "'a'")],
        overload("(text STRING) STRING", trimmed),
    ),
    scalar(
        "ucase",
        "Returns the text in upper case.",
        CATEGORY,
        [("UCASE('Ab')", "'AB'")],
        overload("(text STRING) STRING", upper_case),
    ),
    scalar(
        "uuid",
        "Returns a random UUID, or the one that 16 bytes stand for.",
        CATEGORY,
        [("LEN(UUID())", "36")],
        overload("() STRING", random_identifier),
        overload("(data BYTES) STRING", identifier_of),
    ),
)

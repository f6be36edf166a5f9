"""Parts of URLs, and text in them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from urllib.parse import quote_plus, unquote, unquote_plus

from headrace.sql.functions.definitions import overload, scalar

CATEGORY = "URL"
_URI = re.compile(r"(?:([A-Za-z][A-Za-z0-9+.-]*):)?(?://([^/?#]*))?([^?#]*)(?:\?([^#]*))?(?:#(.*))?", re.DOTALL)
# An authority of another form, such as one with an underscore, has neither host nor port, as in Java.
_SERVER = re.compile(
    r"(\[[0-9A-Fa-f:.]+\]|\d{1,3}(?:\.\d{1,3}){3}|(?:[A-Za-z0-9](?:[A-Za-z0-9-]*[A-Za-z0-9])?\.)*"
    r"[A-Za-z](?:[A-Za-z0-9-]*[A-Za-z0-9])?\.?)(?::(\d{0,9}))?"
)
_NO_ESCAPE = re.compile(r"%(?![0-9A-Fa-f]{2})")
_ILLEGAL = re.compile(rf"[\s\"<>\\^`{{|}}]|{_NO_ESCAPE.pattern}")


@dataclass(frozen=True, slots=True)
class Uri:
    """The parts of a URI; None where it has none."""

    scheme: str | None
    host: str | None
    port: int | None
    path: str | None
    query: str | None
    fragment: str | None


@lru_cache(maxsize=4096)
def uri_of(text: str) -> Uri:
    """Returns the parts of a URI; raises ``ValueError`` for a text that is none."""
    found = _URI.fullmatch(text)
    if found is None or _ILLEGAL.search(text):
        message = f"URL input has invalid syntax: {text}"
        raise ValueError(message)
    scheme, authority, path, query, fragment = found.groups()
    host: str | None = None
    port: int | None = None
    server = _SERVER.fullmatch(authority.rpartition("@")[2]) if authority else None
    if server is not None:
        host = server[1]
        port = int(server[2]) if server[2] else None
    # Behind something like mailto: there is no path.
    is_opaque = scheme is not None and authority is None and not path.startswith("/")
    return Uri(scheme, host, port, *(_decoded(one) for one in (None if is_opaque else path, query, fragment)))


def _decoded(part: str | None) -> str | None:
    return None if part is None else unquote(part)


def scheme(text: str) -> str | None:
    """Returns the protocol of a URL."""
    return uri_of(text).scheme


def host(text: str) -> str | None:
    """Returns the host of a URL."""
    return uri_of(text).host


def port(text: str) -> int | None:
    """Returns the port of a URL."""
    return uri_of(text).port


def path(text: str) -> str | None:
    """Returns the path of a URL."""
    return uri_of(text).path


def query(text: str) -> str | None:
    """Returns the query of a URL."""
    return uri_of(text).query


def fragment(text: str) -> str | None:
    """Returns the fragment of a URL."""
    return uri_of(text).fragment


def parameter(text: str, name: str) -> str | None:
    """Returns a parameter of a URL's query: empty if it has no value, NULL if it is not there."""
    # The raw query: a decoded & or = would be taken for one of the query's own.
    uri_of(text)
    found = _URI.fullmatch(text)
    raw = None if found is None else found[4]
    for part in (raw or "").split("&") if raw else ():
        key, _, value = part.partition("=")
        if unquote(key) == name:
            return unquote(value)
    return None


def encoded(text: str) -> str:
    """Returns the text as it may stand in a URL's query."""
    return quote_plus(text, safe="*").replace("~", "%7E")


def decoded(text: str) -> str:
    """Returns the text that stands encoded in a URL's query; raises ``ValueError`` if it cannot stand there."""
    if _NO_ESCAPE.search(text):
        message = f"Illegal hex characters in escape (%) pattern: {text}"
        raise ValueError(message)
    return unquote_plus(text)


_PARTS = (
    ("PROTOCOL", "protocol", scheme, "'https'", "STRING"),
    ("HOST", "host", host, "'example.org'", "STRING"),
    ("PORT", "port", port, "8080", "INT"),
    ("PATH", "path", path, "'/a'", "STRING"),
    ("QUERY", "query", query, "'b=1'", "STRING"),
    ("FRAGMENT", "fragment", fragment, "'c'", "STRING"),
)
_EXAMPLE = "'https://example.org:8080/a?b=1#c'"

FUNCTIONS = (
    *(
        scalar(
            f"url_extract_{name.lower()}",
            f"Returns the {words} of a URL, NULL if it has none.",
            CATEGORY,
            [(f"URL_EXTRACT_{name}({_EXAMPLE})", example)],
            overload(f"(url STRING) {result}", function),
        )
        for name, words, function, example, result in _PARTS
    ),
    scalar(
        "url_extract_parameter",
        "Returns a parameter of a URL's query, NULL if it is not there.",
        CATEGORY,
        [(f"URL_EXTRACT_PARAMETER({_EXAMPLE}, 'b')", "'1'")],
        overload("(url STRING, name STRING) STRING", parameter),
    ),
    scalar(
        "url_encode_param",
        "Returns the text as it may stand in a URL's query.",
        CATEGORY,
        [("URL_ENCODE_PARAM('a b&c')", "'a+b%26c'")],
        overload("(text STRING) STRING", encoded),
    ),
    scalar(
        "url_decode_param",
        "Returns the text that stands encoded in a URL's query.",
        CATEGORY,
        [("URL_DECODE_PARAM('a+b%26c')", "'a b&c'")],
        overload("(text STRING) STRING", decoded),
    ),
)

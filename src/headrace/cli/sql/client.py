"""A client of a server of statements: ksqlDB's HTTP API, with nothing but the standard library."""

from __future__ import annotations

import base64
import json
import os
import ssl
from collections.abc import Iterator, Mapping
from contextlib import closing, suppress
from dataclasses import dataclass
from http.client import HTTPConnection, HTTPException, HTTPResponse, HTTPSConnection, RemoteDisconnected
from typing import Any
from urllib.parse import quote, urlsplit

from headrace.errors import StreamsError
from headrace.http.tls import certificate_problem, client_context

_TYPE = "application/vnd.ksql.v1+json"
_SECONDS = 60
"""How long an answer may take; rows of a query may take any time."""
_CHUNK = 1 << 16


class SqlRequestError(StreamsError):
    """A server refuses a request, or cannot be reached. The message is the server's."""

    # Any: the JSON of answers.
    def __init__(self, message: str, *, code: int | None = None, entities: list[dict[str, Any]] | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.entities = entities or []
        """What came of the statements before the one that failed."""


class NumberText(str):
    """A number with a fraction, written as the server has written it."""

    __slots__ = ()


@dataclass(frozen=True)
class Piece:
    """A part of a streamed answer: its text, and what it says."""

    text: str
    content: Any


class SqlClient:
    """Talks to one server.

    >>> SqlClient("localhost:8088").url
    'http://localhost:8088'
    """

    def __init__(
        self,
        server: str,
        *,
        token: str | None = None,
        user: str | None = None,
        authority: str | os.PathLike[str] | None = None,
    ) -> None:
        address = urlsplit(server if "://" in server else f"http://{server}")
        if address.scheme not in ("http", "https") or not address.hostname:
            message = f"'{server}' is no address of a server; write it as http://localhost:8088"
            raise SqlRequestError(message)
        self.url = f"{address.scheme}://{address.netloc}"
        self._authority = authority
        self._tls = client_context(authority) if address.scheme == "https" else None
        self._host = address.hostname
        self._port = address.port or (8088 if self._tls is None else 443)
        self._headers = {"Content-Type": _TYPE, "Accept": _TYPE}
        if token is not None:
            self._headers["Authorization"] = f"Bearer {token}"
        elif user is not None:
            self._headers["Authorization"] = f"Basic {base64.b64encode(user.encode()).decode()}"

    def of(self, server: str) -> SqlClient:
        """Returns a client of another server, which does not get the token of this one."""
        return SqlClient(server, authority=self._authority)

    def info(self) -> dict[str, Any]:
        """Returns what the server says of itself."""
        found: dict[str, Any] = self._answer("GET", "/info")["KsqlServerInfo"]
        return found

    def check_property(self, name: str) -> None:
        """Raises if the server knows no setting of that name, or it cannot be set."""
        self._answer("GET", f"/is_valid_property/{quote(name, safe='')}")

    def execute(
        self,
        text: str,
        *,
        settings: Mapping[str, object] | None = None,
        variables: Mapping[str, str] | None = None,
        after_command: int | None = None,
    ) -> list[dict[str, Any]]:
        """Carries out statements that are no queries; returns an entity for each that has an answer."""
        body: dict[str, Any] = {
            "ksql": text,
            "streamsProperties": dict(settings or {}),
            "sessionVariables": dict(variables or {}),
        }
        if after_command is not None:
            body["commandSequenceNumber"] = after_command
        found: list[dict[str, Any]] = self._answer("POST", "/ksql", body)
        return found

    def query(
        self,
        text: str,
        *,
        settings: Mapping[str, object] | None = None,
        variables: Mapping[str, str] | None = None,
    ) -> Answer:
        """Starts a query, or a PRINT; its answer has to be closed."""
        body = {"ksql": text, "streamsProperties": dict(settings or {}), "sessionVariables": dict(variables or {})}
        connection, response = self._request("POST", "/query", body, timeout=None)
        if response.status != 200:
            with closing(connection):
                raise _error(response.status, response.read())
        return Answer(self, connection, response)

    def close_query(self, query_id: str) -> None:
        """Ends a query; one that has ended already is left alone."""
        with suppress(SqlRequestError):
            self._answer("POST", "/close-query", {"queryId": query_id})

    def _answer(self, method: str, path: str, body: Any = None) -> Any:
        connection, response = self._request(method, path, body, timeout=_SECONDS)
        with closing(connection):
            try:
                data = response.read()
            except (OSError, HTTPException) as error:
                raise self._lost(error) from error
            if response.status != 200:
                raise _error(response.status, data)
            return json.loads(data, parse_float=NumberText)

    def _request(
        self, method: str, path: str, body: Any, *, timeout: float | None
    ) -> tuple[HTTPConnection, HTTPResponse]:
        connection: HTTPConnection
        if self._tls is None:
            connection = HTTPConnection(self._host, self._port, timeout=timeout)
        else:
            connection = HTTPSConnection(self._host, self._port, timeout=timeout, context=self._tls)
        try:
            connection.request(method, path, None if body is None else json.dumps(body), self._headers)
            return connection, connection.getresponse()
        except (OSError, HTTPException) as error:
            connection.close()
            raise self._lost(error) from error
        except BaseException:
            connection.close()
            raise

    def _lost(self, error: Exception) -> SqlRequestError:
        if (problem := certificate_problem(error)) is not None:
            message = (
                f"the certificate of the server at {self.url} is not trusted: {problem}; name the file of its "
                "authority with --authority"
            )
            return SqlRequestError(message)
        reason = getattr(error, "strerror", None) or str(error) or type(error).__name__
        remedy = "start one with 'headrace sql server'"
        if isinstance(error, ssl.SSLError):
            remedy = "if it speaks no TLS, its address begins with http://"
        elif self._tls is None and isinstance(error, RemoteDisconnected):
            remedy = "if it speaks TLS, its address begins with https://"
        return SqlRequestError(f"the server at {self.url} does not answer: {reason}; {remedy}")


class Answer:
    """The answer of a query while it comes. ``pieces`` are header, rows and a last message; PRINT has lines."""

    def __init__(self, client: SqlClient, connection: HTTPConnection, response: HTTPResponse) -> None:
        self._client = client
        self._connection = connection
        self._response = response
        self._query_id: str | None = None
        self.is_text = "json" not in (response.getheader("Content-Type") or "")

    def lines(self) -> Iterator[str]:
        """Yields the lines of a PRINT."""
        waiting = b""
        for chunk in self._chunks():
            *whole, waiting = (waiting + chunk).split(b"\n")
            yield from (line.decode(errors="replace") for line in whole if line.strip())
        if waiting.strip():
            yield waiting.decode(errors="replace")

    def pieces(self) -> Iterator[list[Piece]]:
        """Yields what has come, as soon as it has come; raises what the server says went wrong."""
        decoder = json.JSONDecoder(parse_float=NumberText)
        waiting = ""
        # A letter of several bytes may be cut in two.
        undecoded = b""
        for chunk in self._chunks():
            data = undecoded + chunk
            end = _whole_letters(data)
            waiting += data[:end].decode()
            undecoded = data[end:]
            found: list[Piece] = []
            while waiting := waiting.lstrip("[,] \r\n\t"):
                try:
                    content, length = decoder.raw_decode(waiting)
                except ValueError:
                    break
                found.append(Piece(waiting[:length], content))
                waiting = waiting[length:]
            for piece in found:
                self._look_at(piece)
            if found:
                yield found

    def _look_at(self, piece: Piece) -> None:
        if "header" in piece.content:
            self._query_id = piece.content["header"].get("queryId")
        failed = piece.content.get("errorMessage")
        if failed:
            message = failed.get("message", "the query has failed") + _place(failed)
            raise SqlRequestError(message, code=failed.get("error_code"))

    def _chunks(self) -> Iterator[bytes]:
        try:
            while chunk := self._response.read1(_CHUNK):
                yield chunk
        except (OSError, HTTPException) as error:
            raise self._client._lost(error) from error

    def close(self) -> None:
        """Ends the query if it has not ended."""
        ended = self._response.isclosed()
        self._connection.close()
        if not ended and self._query_id is not None:
            self._client.close_query(self._query_id)

    def __enter__(self) -> Answer:
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()


def _whole_letters(data: bytes) -> int:
    """Returns where the last letter of UTF-8 ends that is there as a whole.

    >>> _whole_letters("aé".encode()[:2]), _whole_letters("aé".encode())
    (1, 3)
    """
    for back in range(1, min(4, len(data)) + 1):
        byte = data[-back]
        if byte & 0b1100_0000 == 0b1000_0000:
            continue
        size = 1 if byte < 0x80 else 2 if byte < 0xE0 else 3 if byte < 0xF0 else 4
        return len(data) if size <= back else len(data) - back
    return len(data)


# Any: the JSON of an error.
def _place(content: dict[str, Any]) -> str:
    r"""Returns where a statement is wrong, to be written below what is wrong; nothing if the server does not say.

    >>> print(_place({"line": 1, "column": 6, "excerpt": "DROP STREM S\n     ^"}).strip())
    line 1:6
        DROP STREM S
             ^
    """
    if not content.get("excerpt"):
        return ""
    lines = "\n".join(f"    {line}" for line in str(content["excerpt"]).split("\n"))
    return f"\nline {content.get('line')}:{content.get('column')}\n{lines}"


def _error(status: int, data: bytes) -> SqlRequestError:
    try:
        content = json.loads(data, parse_float=NumberText)
        message, code = str(content["message"]), content.get("error_code")
        if status == 401:
            message = f"{message}; give a --token, or a --user"
        message += _place(content)
        return SqlRequestError(message, code=code, entities=content.get("entities"))
    except (ValueError, KeyError, TypeError, AttributeError):
        text = data.decode(errors="replace").strip()[:200]
        return SqlRequestError(f"the server answers with status {status}: {text}")

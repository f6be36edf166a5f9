"""A client of Connect's REST interface."""

from __future__ import annotations

import re
import ssl
import time
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any, TypeVar
from urllib.parse import quote

import httpx

from headrace.errors import StreamsError
from headrace.sql.connect.settings import TIMEOUT, URL, ConnectSettings

T = TypeVar("T")
# The JSON of a worker.
Json = dict[str, Any]

_PAUSE_S = 0.2
_TAG = re.compile("<[^>]*>")
_SHOWN = 200
"""How much is shown of an answer that nobody expects."""


class ConnectError(StreamsError):
    """No Connect worker answers. The message says where it was looked for, and which setting to check.

    ``status`` is that of the answer over HTTP, and 500 if there was none.
    """

    def __init__(self, message: str, *, status: int = HTTPStatus.INTERNAL_SERVER_ERROR) -> None:
        super().__init__(message)
        self.status = int(status)


class ConnectRefusalError(ConnectError):
    """A Connect worker refuses what it was asked for. The message is the worker's."""


class ConnectClient:
    """Asks one worker; any thread may call it. All methods raise ``ConnectError``."""

    def __init__(self, settings: ConnectSettings) -> None:
        self._settings = settings
        self._seconds = settings.timeout.total_seconds()
        # Neither a proxy of the environment nor a connection that the worker may just be closing.
        self._http = httpx.Client(
            timeout=self._seconds,
            auth=settings.credentials,
            trust_env=False,
            limits=httpx.Limits(max_keepalive_connections=0),
            verify=ssl.create_default_context() if settings.url.startswith("https:") else False,
        )

    def close(self) -> None:
        self._http.close()

    def names(self) -> list[str]:
        """Returns the names of all connectors."""
        return sorted(map(str, self._ask(list, "GET", "/connectors")))

    def info(self, name: str) -> Json:
        """Returns what a connector is: ``name``, ``type``, ``config``, ``tasks``."""
        return self._ask(dict, "GET", _path(name))

    def status(self, name: str) -> Json:
        """Returns how a connector and its tasks are: ``connector``, ``tasks``, ``type``."""
        return self._ask(dict, "GET", f"{_path(name)}/status")

    def topics(self, name: str) -> list[str]:
        """Returns the topics that a connector has read or written so far."""
        found = self._ask(dict, "GET", f"{_path(name)}/topics").get(name)
        return sorted(found.get("topics") or ()) if isinstance(found, dict) else []

    def plugins(self) -> list[Json]:
        """Returns the connectors that the worker can make: ``class``, ``type``, ``version``."""
        return [each for each in self._ask(list, "GET", "/connector-plugins") if isinstance(each, dict)]

    def problems(self, config: Mapping[str, str]) -> list[str]:
        """Returns what is wrong with a configuration, which names its ``connector.class``."""
        path = f"/connector-plugins/{quote(config['connector.class'], safe='$')}/config/validate"
        values = [each.get("value") or {} for each in self._ask(dict, "PUT", path, config).get("configs") or ()]
        return [f"{each['name']} - {'. '.join(each['errors'])}" for each in values if each.get("errors")]

    def create(self, name: str, config: Mapping[str, str]) -> Json:
        """Makes a connector and returns what it is."""
        return self._ask(dict, "POST", "/connectors", {"name": name, "config": dict(config)})

    def delete(self, name: str) -> None:
        """Deletes a connector."""
        self._answer("DELETE", _path(name), None)

    def _ask(self, kind: type[T], method: str, path: str, body: object = None) -> T:
        answer = self._answer(method, path, body)
        try:
            found = answer.json()
        except ValueError:
            found = None
        if isinstance(found, kind):
            return found
        raise self._not_a_worker(answer)

    def _answer(self, method: str, path: str, body: object) -> httpx.Response:
        """Returns the answer to a request, which is sent again as long as the workers are rearranging themselves."""
        deadline = time.monotonic() + self._seconds
        while True:
            answer = self._sent(method, path, body)
            if answer.is_success:
                return answer
            said = _message(answer)
            if said is None:
                raise self._not_a_worker(answer)
            busy = answer.status_code == HTTPStatus.CONFLICT and "already exists" not in said
            if not busy or time.monotonic() > deadline:
                raise ConnectRefusalError(said, status=answer.status_code)
            time.sleep(_PAUSE_S)

    def _sent(self, method: str, path: str, body: object) -> httpx.Response:
        try:
            return self._http.request(method, f"{self._settings.url}{path}", json=body)
        except httpx.TimeoutException as error:
            message = f"{self._where} has not answered within {self._seconds:g} s; {TIMEOUT} is how long it may take"
            raise ConnectError(message) from error
        except httpx.HTTPError as error:
            message = f"{self._where} cannot be reached: {error}; start it, or correct {URL}"
            raise ConnectError(message) from error

    def _not_a_worker(self, answer: httpx.Response) -> ConnectError:
        text = " ".join(_TAG.sub(" ", answer.text).split())[:_SHOWN]
        said = f"{answer.status_code} {answer.reason_phrase}{': ' if text else ''}{text}"
        message = f"{self._where} answers as none does; it may be starting, or {URL} is wrong: {said}"
        # A worker that is starting finds nothing, which does not mean that there is no connector.
        known = answer.is_error and answer.status_code != HTTPStatus.NOT_FOUND
        return ConnectError(message, status=answer.status_code if known else HTTPStatus.SERVICE_UNAVAILABLE)

    @property
    def _where(self) -> str:
        return f"the Connect worker at {self._settings.url}"


def _path(name: str) -> str:
    # They would be other places of the interface.
    if name in ("", ".", ".."):
        message = f"'{name}' is no name of a connector"
        raise ConnectRefusalError(message, status=HTTPStatus.BAD_REQUEST)
    return f"/connectors/{quote(name, safe='')}"


def _message(answer: httpx.Response) -> str | None:
    """Returns what is wrong in the words of a worker; None if these are not the words of one."""
    try:
        said = answer.json()
    except ValueError:
        return None
    return str(said["message"]) if isinstance(said, dict) and "message" in said else None

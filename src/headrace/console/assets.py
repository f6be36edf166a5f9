"""The files of the console, read once; whatever is asked for, nothing else of the disk is served."""

from __future__ import annotations

import hashlib
from importlib.resources import files

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import BaseRoute, Route

from headrace.http.errors import RequestError

_TYPES = {
    "css": "text/css",
    "html": "text/html",
    "js": "text/javascript",
    "svg": "image/svg+xml",
}


class Assets:
    """The console's files by name. A name that is not one of theirs is not found, however it is spelled.

    ``page`` is the one that opens: there is one for applications and one for servers of SQL.
    """

    def __init__(self, page: str = "index.html") -> None:
        self._page = page
        folder = files("headrace.console").joinpath("static")
        self._files = {each.name: each.read_bytes() for each in folder.iterdir() if each.is_file()}

    def routes(self) -> list[BaseRoute]:
        return [
            Route("/console", self.root),
            Route("/console/", self.page),
            Route("/console/static/{name:path}", self.file),
        ]

    async def root(self, request: Request) -> Response:
        return RedirectResponse("/console/")

    async def page(self, request: Request) -> Response:
        return self._answer(request, self._page)

    async def file(self, request: Request) -> Response:
        return self._answer(request, request.path_params["name"])

    def _answer(self, request: Request, name: str) -> Response:
        data = self._files.get(name)
        kind = _TYPES.get(name.rpartition(".")[2])
        if data is None or kind is None:
            return RequestError(404, "not-found", "there is no such file").response()
        tag = f'"{hashlib.sha256(data).hexdigest()[:16]}"'
        headers = {"ETag": tag, "Cache-Control": "no-cache"}
        if request.headers.get("if-none-match") == tag:
            return Response(status_code=304, headers=headers)
        return Response(data, headers=headers, media_type=kind)

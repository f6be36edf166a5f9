"""Security of the web server: access with a token, and none without."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from starlette.applications import Starlette
from starlette.routing import Route, WebSocketRoute
from websockets.exceptions import InvalidStatus
from websockets.sync.client import connect
from websockets.typing import Origin

from headrace.console.asgi_application import make_application
from headrace.console.recorder import Recorder
from headrace.http.server import Listening
from tests.console.client import Client, served
from tests.console.kit import FakeObserved, Site
from tests.views_http.kit import RunningInstance

TOKEN = "open-sesame"
WRONG = (
    *(None, "Bearer wrong", TOKEN, "Basic b3Blbg==", "Basic %%", "Basic", "Bearer", "Bearer €"),
    *(f"Bearer {TOKEN}x", f"Digest {TOKEN}"),
)
EVIL = Origin("https://evil.example")


class Everything:
    """All that can be served, behind a token."""

    def __init__(self, directory: Path) -> None:
        self._observed = FakeObserved(directory)
        observed = self._observed
        self._instance = RunningInstance(observed._log, observed.topology, observed.config)
        self.application: Starlette = make_application(self._instance, observed, Recorder(observed), token=TOKEN)
        self.client = Client(self.application)

    def close(self) -> None:
        self.client.close()
        self._instance.close()
        self._observed.close()


@pytest.fixture
def everything(tmp_path: Path) -> Iterator[Everything]:
    found = Everything(tmp_path)
    yield found
    found.close()


def addresses(application: Starlette) -> list[str]:
    found = [route.path for route in application.routes if isinstance(route, Route)]
    names = {"{store}": "counts", "{key:path}": "a", "{topic}": "words", "{name:path}": "dom.js"}
    for name, value in names.items():
        found = [path.replace(name, value) for path in found]
    return found


def test_no_address_answers_without_the_token(everything: Everything) -> None:
    paths = addresses(everything.application)
    assert len(paths) >= 18
    for path in [*paths, "/nowhere", "/console/static/../../../etc/passwd"]:
        for given in (
            None,
            "Bearer wrong",
            TOKEN,
            "Basic b3Blbg==",
            "Basic %%",
            "Basic",
            "Bearer",
            f"Bearer {TOKEN}x",
            "Bearer €",
        ):
            headers = {} if given is None else {"Authorization": given.encode()}
            found = everything.client.get(path, headers=headers)
            assert found.status_code == 401, path
            assert found.headers["WWW-Authenticate"] == 'Basic realm="headrace", Bearer'
            assert "words" not in found.text


def test_no_method_answers_without_the_token(everything: Everything) -> None:
    for method in ("POST", "PUT", "DELETE", "OPTIONS", "HEAD", "PATCH"):
        assert everything.client.request(method, "/stores").status_code == 401


def test_no_socket_opens_without_the_token(everything: Everything) -> None:
    sockets = [route for route in everything.application.routes if isinstance(route, WebSocketRoute)]
    assert len(sockets) == 1
    with served(everything.application) as server:
        address = f"ws://localhost:{server.port}/stores/counts/changes/ws"
        with pytest.raises(InvalidStatus) as denied, connect(address):
            pass
        assert denied.value.response.status_code == 401
        right = {"Authorization": f"Bearer {TOKEN}"}
        # What another program serves on this machine is another site, too.
        for origin in (EVIL, Origin("http://localhost:1"), Origin("null")):
            with pytest.raises(InvalidStatus) as foreign, connect(address, additional_headers=right, origin=origin):
                pass
            assert foreign.value.response.status_code == 403
        for own in (None, Origin(f"http://localhost:{server.port}")):
            with connect(address, additional_headers=right, origin=own):
                pass


def test_with_the_token_everything_answers(everything: Everything) -> None:
    right = {"Authorization": f"Bearer {TOKEN}"}
    for path in addresses(everything.application):
        if not path.endswith(("/live", "/changes")):
            assert everything.client.get(path, headers=right).status_code in (200, 307, 404), path
            assert everything.client.get(path, auth=("anybody", TOKEN)).status_code in (200, 307, 404), path


@pytest.mark.parametrize(
    "name",
    [
        "../recorder.py",
        "..%2frecorder.py",
        "%2e%2e/recorder.py",
        "....//recorder.py",
        "/etc/passwd",
        "%2fetc%2fpasswd",
        "..\\recorder.py",
        "static/../../recorder.py",
        "dom.js/../../recorder.py",
        "dom.js%00.html",
        "",
        ".",
        "__init__.py",
    ],
)
def test_no_path_leaves_the_served_folder(site: Site, name: str) -> None:
    found = site.get(f"/console/static/{name}")
    assert found.status_code == 404
    assert "import" not in found.text


def test_the_page_runs_only_its_own_files(site: Site) -> None:
    page = site.get("/console/")
    policy = page.headers["Content-Security-Policy"]
    assert "default-src 'none'" in policy
    assert "script-src 'self';" in policy
    assert "frame-ancestors 'none'" in policy
    assert page.headers["X-Content-Type-Options"] == "nosniff"
    assert "<script>" not in page.text


def test_no_file_of_the_console_makes_markup_of_data() -> None:
    folder = Path(__file__).parents[2] / "src" / "headrace" / "console" / "static"
    for file in folder.glob("*.js"):
        text = file.read_text(encoding="utf-8")
        for dangerous in ("innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "new Function"):
            assert dangerous not in text, file.name
        assert "http://" not in text.replace("http://www.w3.org/2000/svg", "")
        assert "https://" not in text


def test_data_is_sent_as_json_whatever_is_in_it(site: Site) -> None:
    key, value = b"</script><script>alert(1)</script>", b'"<img src=x onerror=alert(1)>"'
    site.observed._log.append("words", [(0, 1, key, value, ())])
    found = site.get("/console/api/topics/words/records")
    assert found.headers["content-type"] == "application/json"
    assert found.headers["X-Content-Type-Options"] == "nosniff"
    assert found.json()["records"][0]["key"] == key.decode()


def test_a_name_that_leads_here_from_elsewhere_is_not_served(tmp_path: Path) -> None:
    observed = FakeObserved(tmp_path)
    application = make_application(None, observed, Recorder(observed), listening=Listening())
    client = Client(application, "http://localhost:8080")
    assert client.get("/healthz").status_code == 200
    assert client.get("/healthz", headers={"Host": "127.0.0.1:8080"}).status_code == 200
    found = client.get("/healthz", headers={"Host": "evil.example:8080"})
    assert (found.status_code, found.json()["error"]["code"]) == (421, "wrong-host")
    client.close()
    observed.close()


def test_a_large_body_is_refused(site: Site) -> None:
    assert site.client.request("GET", "/healthz", content=b"x" * 100_000).status_code == 413
    assert site.client.request("GET", "/healthz", headers={"Content-Length": "-5"}).status_code == 413


def test_only_get_is_answered(site: Site) -> None:
    found = site.client.request("POST", "/healthz")
    assert (found.status_code, found.json()["error"]["code"]) == (405, "method-not-allowed")


def test_a_failure_tells_nothing_of_itself(site: Site, caplog: pytest.LogCaptureFixture) -> None:
    site.observed.log_failure = ZeroDivisionError("secret path /home/someone")
    found = site.get("/console/api/topics")
    assert (found.status_code, found.json()["error"]["code"]) == (500, "internal")
    assert "secret" not in found.text
    assert "ZeroDivisionError" in caplog.text

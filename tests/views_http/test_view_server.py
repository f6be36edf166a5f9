"""The server of a process of views, as its settings say: how values are shown, and TLS."""

from __future__ import annotations

import json
import os
import ssl
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest

from headrace import Consumed, Materialized, Serdes, StreamsBuilder
from headrace.console.view_server import serve_views
from headrace.http.json_values import FORMATTERS
from headrace.http.server import Server
from headrace.views.changelog_follower import wall_clock_ms
from headrace.views.membership import MembershipTable
from headrace.views.view_node import ViewNode
from tests.certificates import make_certificate
from tests.views.kit import Place, topology_of
from tests.views.processes import ROOT, wait_until

SOON = timedelta(seconds=20)


class Money:
    def __init__(self, cents: int) -> None:
        self.cents = cents


MONEY = Serdes.of(lambda money: str(money.cents).encode(), lambda data: Money(int(data)))


def show(value: object) -> object:
    return f"{value.cents / 100:.2f} EUR" if isinstance(value, Money) else NotImplemented


def build(builder: StreamsBuilder) -> None:
    builder.table("prices", Consumed(Serdes.string(), MONEY), Materialized("prices"))


@dataclass(frozen=True)
class Served:
    """A view that is kept and served, of an application that runs."""

    place: Place
    server: Server

    def get(self, path: str, **options: Any) -> httpx.Response:
        return httpx.get(f"{self.server.url}{path}", timeout=20, **options)


@contextmanager
def served(directory: Path, **settings: str) -> Iterator[Served]:
    place = Place(directory, prices=1)
    config = place.config(**settings)
    with place.streams(build) as streams:
        bound = place.write("prices", [("tea", 150, 1000)])
        assert streams._own_views.views().wait_for(bound.position, SOON)
        node = ViewNode(topology_of(build, config), config, place.log, directory / "view")
        while node.tick() or not node.ready_tasks():
            pass
        keeping = threading.Thread(target=node.run)
        keeping.start()
        server = serve_views(node)
        try:
            yield Served(place, server)
        finally:
            server.stop()
            node.stop()
            keeping.join()
            node.close()
    place.close()


def test_values_of_custom_serdes_are_shown_by_the_formatter(tmp_path: Path) -> None:
    with served(tmp_path, **{"http.formatter": f"{__name__}:show"}) as view:
        assert view.get("/stores/prices/keys/tea").json()["value"] == "1.50 EUR"
        assert [row["value"] for row in view.get("/stores/prices/range").json()["rows"]] == ["1.50 EUR"]
        with httpx.stream("GET", f"{view.server.url}/stores/prices/changes?snapshot=true", timeout=20) as answer:
            found = (json.loads(line.removeprefix("data:")) for line in answer.iter_lines() if line[:5] == "data:")
            assert next(found)["value"] == "1.50 EUR"
            view.place.write("prices", [("coffee", 275, 2000)])
            change = next(each for each in found if each.get("key") == "coffee")
            assert change["value"] == "2.75 EUR"


def test_a_server_that_has_stopped_leaves_the_formatters_as_they_were(tmp_path: Path) -> None:
    before = list(FORMATTERS)
    with served(tmp_path, **{"http.formatter": f"{__name__}:show"}):
        assert [*before, show] == FORMATTERS
    assert before == FORMATTERS


def test_a_certificate_in_the_settings_leaves_only_tls(tmp_path: Path) -> None:
    certificate, key = make_certificate(tmp_path)
    with served(tmp_path, **{"http.tls.certificate": str(certificate), "http.tls.key": str(key)}) as view:
        assert view.server.url.startswith("https://localhost:")
        verify = ssl.create_default_context(cafile=certificate)
        assert view.get("/stores/prices/keys/tea", verify=verify).json()["value"] == {"cents": 150}
        with pytest.raises(httpx.RemoteProtocolError, match="disconnected"):
            httpx.get(f"http://localhost:{view.server.port}/stores/prices/keys/tea")


def test_the_command_view_takes_the_formatter_from_a_file(tmp_path: Path) -> None:
    settings = tmp_path / "view.properties"
    settings.write_text(f"http.formatter={__name__}:show\nlog.sync=none\n")
    place = Place(tmp_path, prices=1)
    with place.streams(build) as streams:
        bound = place.write("prices", [("tea", 150, 1000)])
        assert streams._own_views.views().wait_for(bound.position, SOON)
    command = [sys.executable, "-m", "headrace.cli", "view", f"{__name__}:build", "-a", "app", "--http", "localhost:0"]
    path = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
    process = subprocess.Popen(
        [*command, "--state-dir", str(tmp_path), "--config", str(settings)],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": path},
        stderr=subprocess.PIPE,
        text=True,
    )
    membership = MembershipTable("app", place.log)

    def ready() -> list[str]:
        membership.refresh()
        live = membership.live(wall_clock_ms(), 60_000).values()
        return [member.host.address for member in live if member.lags.get("0_0", -1) >= 0]

    try:
        wait_until(lambda: bool(ready()), "it has everything")
        (address,) = ready()
        assert httpx.get(f"http://{address}/stores/prices/keys/tea", timeout=20).json()["value"] == "1.50 EUR"
    finally:
        process.terminate()
        _, told = process.communicate(timeout=SOON.total_seconds())
        assert process.returncode == 0
        assert f"view: answers at {address}\n" in told
        place.close()
